/* SPDX-License-Identifier: MIT */
/* Stacks that are kept as they are stored: in any order they are what a reader gives. */
#include "api/fixture.h"
#include "support/chunk_edit.h"

#include <stdlib.h>
#include <string.h>

#include <ttdtrace/advanced.h>

/* More than two chunks can have. */
#define STACKS     150000
#define CHUNKS_MAX 16

/* A trace, and its stacks by id as a reader gives them. */
static struct ttd_memory_output trace_file;
static struct ttd_stack *stacks;

/* Frames that are new and frames that come again; callers near by and far off, and none. */
static void write_trace(void)
{
    struct entropy from = {.state = 5};
    struct ttd_trace trace = fixture_trace();
    struct ttd_writer *writer = fixture_writer(&trace_file, &trace, NULL);
    for (ttd_id i = 1; i <= STACKS; i++) {
        uint64_t reach = entropy_below(&from, 3) && i > 20 ? 20 : i;
        ttd_id back = (ttd_id)entropy_below(&from, reach);
        uint64_t offset = entropy_below(&from, 2) ? entropy_next(&from) : entropy_below(&from, 999);
        ttd_id id;
        cr_assert_eq(ttd_writer_stack(writer, back ? i - back : TTD_NONE, TTD_NONE, offset, &id),
                     TTD_OK);
        cr_assert_eq(id, i);
    }
    fixture_close(writer);
}

static void read_trace(void)
{
    struct ttd_reader *reader = fixture_reader(&trace_file, false);
    struct ttd_batch batch;
    stacks = calloc(STACKS + 1, sizeof *stacks);
    cr_assert_eq(ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_STACKS)), TTD_OK);
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
        cr_assert_null(batch.stored);
        memcpy(&stacks[batch.u.stacks[0].id], batch.u.stacks, batch.count * sizeof *stacks);
    }
    ttd_reader_close(reader);
}

static void begin(void)
{
    write_trace();
    read_trace();
}

static void finish(void)
{
    free(stacks);
    ttd_memory_output_free(&trace_file);
}

TestSuite(stacks, .init = begin, .fini = finish);

static struct ttd_reader *stored_reader(void)
{
    struct ttd_input input;
    struct ttd_reader *reader = NULL;
    struct ttd_reader_options options = ttd_reader_options_default();
    options.kinds = TTD_KIND_BIT(TTD_KIND_STACKS);
    options.lazy_stacks = true;
    cr_assert_eq(ttd_input_memory(trace_file.data, trace_file.size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_reader_open(&input, &options, NULL, &reader, NULL), TTD_OK);
    return reader;
}

static bool is_same(const struct ttd_stack *a, const struct ttd_stack *b)
{
    return a->id == b->id && a->parent == b->parent && a->module == b->module &&
           a->offset == b->offset;
}

static void check_get(struct ttd_stacks *kept, ttd_id id)
{
    struct ttd_stack found;
    struct ttd_error error = {.what = "-"};
    cr_assert_eq(ttd_stacks_get(kept, id, &found, &error), TTD_OK, "stack %u: %s", id, error.what);
    cr_assert(is_same(&found, &stacks[id]), "stack %u", id);
}

Test(stacks, in_any_order)
{
    struct ttd_stacks *chunks[CHUNKS_MAX];
    ttd_id firsts[CHUNKS_MAX + 1] = {1};
    size_t count = 0;
    struct ttd_reader *reader = stored_reader();
    struct ttd_batch batch;
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
        cr_assert_eq(batch.chunk.first_record, firsts[count]);
        cr_assert_eq(batch.count, batch.chunk.record_count);
        cr_assert_null(batch.u.stacks);
        cr_assert_eq(ttd_stacks_open(&batch, NULL, &chunks[count]), TTD_OK);
        firsts[++count] = (ttd_id)(batch.chunk.first_record + batch.count);
    }
    ttd_reader_close(reader);
    cr_assert_eq(firsts[count], STACKS + 1);
    cr_assert_gt(count, 2);
    struct entropy from = {.state = 9};
    for (size_t i = 0; i < count; i++) {
        struct ttd_stack none;
        cr_assert_eq(ttd_stacks_get(chunks[i], firsts[i] - 1, &none, NULL), TTD_END);
        for (int k = 0; k < 2000; k++)
            check_get(chunks[i],
                      (ttd_id)(firsts[i] + entropy_below(&from, firsts[i + 1] - firsts[i])));
        for (ttd_id id = firsts[i]; id < firsts[i + 1]; id++)
            check_get(chunks[i], id);
        cr_assert_eq(ttd_stacks_get(chunks[i], firsts[i + 1], &none, NULL), TTD_END);
        ttd_stacks_close(chunks[i]);
    }
}

/* Opens the first chunk and looks up three stacks. Each call that fails is done once more, when
 * there is memory again. Returns the number of calls of the allocator. */
static uint64_t run_with_faults(const struct ttd_batch *batch, uint64_t fail_at)
{
    static const ttd_id ids[] = {300, 7, 20000};
    struct chaos_memory memory;
    chaos_memory_init(&memory, fail_at);
    struct ttd_allocator allocator = chaos_allocator(&memory);
    struct ttd_stacks *kept = NULL;
    enum ttd_status status = ttd_stacks_open(batch, &allocator, &kept);
    uint64_t failures = status == TTD_ERROR_NO_MEMORY;
    if (failures)
        cr_assert_eq(ttd_stacks_open(batch, &allocator, &kept), TTD_OK);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct ttd_stack found;
        struct ttd_error error = {.what = NULL};
        status = ttd_stacks_get(kept, ids[i], &found, &error);
        if (status == TTD_ERROR_NO_MEMORY) {
            cr_assert_str_eq(error.what, "memory");
            failures++;
        }
        check_get(kept, ids[i]);
    }
    ttd_stacks_close(kept);
    cr_assert_eq(memory.blocks, 0);
    cr_assert_eq(failures, fail_at != CHAOS_NEVER);
    return memory.counter.calls;
}

Test(stacks, without_memory)
{
    struct ttd_reader *reader = stored_reader();
    struct ttd_batch batch;
    cr_assert_eq(ttd_reader_next(reader, &batch, NULL), TTD_OK);
    uint64_t calls = run_with_faults(&batch, CHAOS_NEVER);
    cr_assert_gt(calls, 5);
    for (uint64_t i = 0; i < calls; i++)
        run_with_faults(&batch, i);
    ttd_reader_close(reader);
}

/* A payload that was compressed far is not kept: a small file must not take much memory. */
Test(stacks, bounded_memory)
{
    struct ttd_memory_output file;
    struct ttd_trace trace = fixture_trace();
    struct ttd_writer *writer = fixture_writer(&file, &trace, NULL);
    ttd_id id;
    for (int i = 0; i < 60000; i++)
        cr_assert_eq(ttd_writer_stack(writer, TTD_NONE, TTD_NONE, 5, &id), TTD_OK);
    fixture_close(writer);
    struct ttd_memory_output other = trace_file;
    trace_file = file;
    struct ttd_reader *reader = stored_reader();
    trace_file = other;
    struct ttd_batch batch;
    cr_assert_eq(ttd_reader_next(reader, &batch, NULL), TTD_OK);
    cr_assert_eq(batch.chunk.record_count, 60000);
    cr_assert_gt(batch.chunk.raw_size, 100 * batch.chunk.stored_size);
    struct chaos_memory memory;
    chaos_memory_init(&memory, CHAOS_NEVER);
    struct ttd_allocator allocator = chaos_allocator(&memory);
    struct ttd_stacks *kept;
    struct ttd_stack found;
    cr_assert_eq(ttd_stacks_open(&batch, &allocator, &kept), TTD_OK);
    cr_assert_lt(memory.bytes, 10000);
    cr_assert_eq(ttd_stacks_get(kept, 1, &found, NULL), TTD_OK);
    cr_assert_lt(memory.bytes, 60000 * 8 + 10000, "two numbers for each stack, and no payload");
    ttd_stacks_close(kept);
    ttd_reader_close(reader);
    ttd_memory_output_free(&file);
}

/* A payload of 300 stacks without callers, of the same new frame; `wrong` is what the stack 201 has
 * for its frame. */
static struct ttd_batch damaged(uint8_t payload[1024], uint8_t wrong)
{
    static const uint32_t lengths[] = {300, 300, 1, 1};
    memset(payload, 0, 1024);
    for (size_t i = 0; i < 4; i++) {
        payload[4 * i] = (uint8_t)lengths[i];
        payload[4 * i + 1] = (uint8_t)(lengths[i] >> 8);
    }
    uint8_t *frames = payload + 16 + 300;
    memset(frames + 1, 1, 299);
    frames[200] = wrong;
    frames[301] = 2 * 5; /* the offset */
    struct ttd_chunk chunk = {.number = 4,
                              .offset = 4096,
                              .kind = TTD_KIND_STACKS,
                              .codec = TTD_CODEC_RAW,
                              .stored_size = 16 + 602,
                              .raw_size = 16 + 602,
                              .first_record = 1,
                              .record_count = 300};
    return (struct ttd_batch){
        .kind = TTD_KIND_STACKS, .count = 300, .chunk = chunk, .stored = payload};
}

Test(stacks, damage)
{
    uint8_t payload[1024];
    struct ttd_stack found;
    struct ttd_error error;
    struct ttd_stacks *kept;
    struct ttd_batch batch = damaged(payload, 1);
    cr_assert_eq(ttd_stacks_open(&batch, NULL, &kept), TTD_OK);
    cr_assert_eq(ttd_stacks_get(kept, 300, &found, NULL), TTD_OK);
    cr_assert(is_same(&found, &(struct ttd_stack){
                                  .id = 300, .parent = TTD_NONE, .module = TTD_NONE, .offset = 5}));
    ttd_stacks_close(kept);
    batch = damaged(payload, 2);
    cr_assert_eq(ttd_stacks_open(&batch, NULL, &kept), TTD_OK);
    for (int again = 0; again < 2; again++) {
        cr_assert_eq(ttd_stacks_get(kept, 300, &found, &error), TTD_ERROR_CORRUPT);
        cr_assert_str_eq(error.what, "frame of a stack");
        cr_assert_eq(error.offset, 4096);
        cr_assert_eq(error.chunk, 4);
        cr_assert_eq(ttd_stacks_get(kept, 1, &found, NULL), TTD_OK, "before the damage");
        cr_assert_eq(found.offset, 5);
    }
    ttd_stacks_close(kept);
    /* Bytes that are left over are noticed at the end. */
    batch = damaged(payload, 1);
    batch.chunk.record_count = 299;
    cr_assert_eq(ttd_stacks_open(&batch, NULL, &kept), TTD_OK);
    cr_assert_eq(ttd_stacks_get(kept, 256, &found, NULL), TTD_OK);
    cr_assert_eq(ttd_stacks_get(kept, 257, &found, NULL), TTD_ERROR_CORRUPT);
    ttd_stacks_close(kept);
}

Test(stacks, arguments)
{
    struct ttd_stacks *kept = NULL;
    struct ttd_reader *reader = fixture_reader(&trace_file, false);
    struct ttd_batch batch;
    do
        cr_assert_eq(ttd_reader_next(reader, &batch, NULL), TTD_OK);
    while (batch.kind != TTD_KIND_STACKS);
    cr_assert_eq(ttd_stacks_open(&batch, NULL, &kept), TTD_ERROR_ARGUMENT, "not stored");
    cr_assert_eq(ttd_stacks_open(NULL, NULL, &kept), TTD_ERROR_ARGUMENT);
    ttd_reader_close(reader);
    reader = stored_reader();
    cr_assert_eq(ttd_reader_next(reader, &batch, NULL), TTD_OK);
    cr_assert_eq(ttd_stacks_open(&batch, NULL, NULL), TTD_ERROR_ARGUMENT);
    cr_assert_eq(ttd_stacks_open(&batch, &(struct ttd_allocator){NULL, NULL, NULL}, &kept),
                 TTD_ERROR_ARGUMENT);
    ttd_reader_close(reader);
    cr_assert_null(kept);
    ttd_stacks_close(NULL);
}

/* A payload that cannot be decompressed is refused at once, as it is where stacks are decoded. */
Test(stacks, unknown_codec)
{
    size_t at = chunk_edit_find_kind(trace_file.data, trace_file.size, TTD_KIND_STACKS);
    trace_file.data[at + TTD_HEADER_CODEC] = TTD_CODEC_ZSTD;
    chunk_edit_seal_header(trace_file.data + at);
    struct ttd_reader *reader = stored_reader();
    struct ttd_batch batch;
    struct ttd_error error;
    cr_assert_eq(ttd_reader_next(reader, &batch, &error), TTD_ERROR_UNSUPPORTED);
    cr_assert_str_eq(error.what, "codec");
    ttd_reader_close(reader);
}
