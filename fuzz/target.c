/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ttdtrace/advanced.h>

#include "support/address_book.h"

/** More than any array of the reader needs for a chunk of 16 MiB. */
#define REQUEST_MAX (UINT32_C(64) << 20)

void target_require(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}

uint8_t *target_copy(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes)
        abort();
    if (size)
        memcpy(bytes, data, size);
    return bytes;
}

static void *resize(void *context, void *block, size_t size)
{
    (void)context;
    target_require(size <= REQUEST_MAX, "a request for memory is in proportion");
    return realloc(block, size);
}

static void release(void *context, void *block)
{
    (void)context;
    free(block);
}

const struct ttd_allocator target_allocator = {NULL, resize, release};

struct ttd_input target_input(const uint8_t *bytes, size_t size)
{
    struct ttd_input input;
    target_require(ttd_input_memory(bytes, size, NULL, &input) == TTD_OK, "input of memory");
    return input;
}

static int may_refuse(enum ttd_status status)
{
    return status == TTD_ERROR_NOT_A_TRACE || status == TTD_ERROR_CORRUPT ||
           status == TTD_ERROR_TRUNCATED || status == TTD_ERROR_UNSUPPORTED;
}

struct ttd_reader *target_open(const uint8_t *bytes, size_t size, int tolerant)
{
    struct ttd_input input = target_input(bytes, size);
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = tolerant != 0;
    struct ttd_error error = {.status = TTD_OK};
    struct ttd_reader *reader = NULL;
    enum ttd_status status = ttd_reader_open(&input, &options, &target_allocator, &reader, &error);
    if (status == TTD_OK)
        return reader;
    target_require(may_refuse(status), "documented status of open");
    target_require(error.status == status && error.what, "detail of a failure of open");
    return NULL;
}

static uint64_t mix(uint64_t hash, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)data[i]) * UINT64_C(0x100000001B3);
    return hash;
}

enum ttd_status target_read(struct ttd_reader *reader, struct target_digest *digest)
{
    struct text lines = {0};
    struct address_book book = {.items = NULL};
    *digest = (struct target_digest){0};
    for (;;) {
        struct ttd_batch batch;
        struct ttd_error error = {.status = TTD_OK};
        enum ttd_status status = ttd_reader_next(reader, &batch, &error);
        if (status != TTD_OK) {
            target_require(status == TTD_END || may_refuse(status), "documented status of next");
            target_require(status == TTD_END || (error.status == status && error.what),
                           "detail of a failure of next");
            text_free(&lines);
            address_book_free(&book);
            return status;
        }
        target_require(!batch.synthetic || batch.error.status != TTD_OK,
                       "reason of a synthetic loss");
        lines.size = 0;
        text_of_batch(&lines, &batch);
        digest->hash = mix(digest->hash, lines.data, lines.size);
        if (batch.kind == TTD_KIND_EVENTS) {
            const char *wrong = address_book_add(&book, &batch);
            target_require(!wrong, wrong);
            digest->events += batch.count;
            digest->events_hash = mix(digest->events_hash, lines.data, lines.size);
        }
        digest->records += batch.synthetic ? 0 : batch.count;
    }
}

/* A reader of stacks one by one, across batches. */
struct stack_reader {
    struct ttd_reader *reader;
    struct ttd_batch batch;
    size_t next;
};

/* Returns the next stack of a chunk, read sequentially; NULL at the end of the chunk. */
static const struct ttd_stack *next_stack(struct stack_reader *plain, uint64_t chunk)
{
    while (plain->next == plain->batch.count) {
        if (ttd_reader_next(plain->reader, &plain->batch, NULL) != TTD_OK) {
            plain->batch = (struct ttd_batch){.count = 0};
            plain->next = 0;
            return NULL;
        }
        plain->next = plain->batch.kind == TTD_KIND_STACKS ? 0 : plain->batch.count;
    }
    if (plain->batch.chunk.offset != chunk)
        return NULL;
    return &plain->batch.u.stacks[plain->next++];
}

static int is_same(const struct ttd_stack *a, const struct ttd_stack *b)
{
    return a->id == b->id && a->parent == b->parent && a->module == b->module &&
           a->offset == b->offset;
}

static void check_chunk(const struct ttd_batch *batch, struct stack_reader *plain)
{
    struct ttd_stacks *stacks;
    target_require(ttd_stacks_open(batch, &target_allocator, &stacks) == TTD_OK, "kept stacks");
    struct ttd_stack found;
    ttd_id first = (ttd_id)batch->chunk.first_record;
    ttd_id last = first + (batch->chunk.record_count - 1);
    enum ttd_status status = ttd_stacks_get(stacks, last, &found, NULL);
    target_require(status == TTD_OK || status == TTD_ERROR_CORRUPT, "status of a look-up");
    target_require(ttd_stacks_get(stacks, first - 1, &found, NULL) == TTD_END, "one too low");
    target_require(ttd_stacks_get(stacks, last + 1, &found, NULL) == TTD_END, "one too high");
    int is_good = status == TTD_OK;
    for (ttd_id id = first; status == TTD_OK || id == first; id++) {
        const struct ttd_stack *stack = next_stack(plain, batch->chunk.offset);
        status = ttd_stacks_get(stacks, id, &found, NULL);
        target_require((stack != NULL) == (status == TTD_OK), "the same number of stacks");
        target_require(!stack || is_same(stack, &found), "the same stacks");
    }
    target_require(is_good == (status == TTD_END), "all stacks of a good chunk");
    ttd_stacks_close(stacks);
}

void target_check_stacks(const uint8_t *bytes, size_t size)
{
    struct stack_reader plain = {.reader = target_open(bytes, size, 1)};
    struct ttd_input input = target_input(bytes, size);
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    options.lazy_stacks = true;
    struct ttd_reader *reader = NULL;
    struct ttd_batch batch;
    enum ttd_status status = ttd_reader_open(&input, &options, &target_allocator, &reader, NULL);
    target_require((status == TTD_OK) == (plain.reader != NULL), "opened in either way");
    if (status != TTD_OK)
        return;
    ttd_reader_rewind(plain.reader, TTD_KIND_BIT(TTD_KIND_STACKS));
    ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_STACKS));
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
        if (batch.kind == TTD_KIND_STACKS)
            check_chunk(&batch, &plain);
    }
    ttd_reader_close(plain.reader);
    ttd_reader_close(reader);
}

int target_is_intact(const uint8_t *bytes, size_t size)
{
    struct ttd_input input = target_input(bytes, size);
    struct ttd_verdict verdict;
    enum ttd_status status = ttd_verify(&input, &target_allocator, NULL, &verdict, NULL);
    return status == TTD_OK && verdict.ok;
}
