/* SPDX-License-Identifier: MIT */
/* What is read ahead by another thread is what the reader gives, whatever happens meanwhile. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "travel/prefetcher.h"
#include "support/model.h"

#define RECORDS  60000
#define TRACES   4
#define ANYWHERE 8

static struct entropy random_source;

static uint64_t pick(uint64_t limit)
{
    return entropy_below(&random_source, limit);
}

/* A trace of many small chunks. */
static void write_trace(struct ttd_memory *memory, uint64_t seed)
{
    struct model m;
    struct ttd_output output;
    struct ttd_writer *writer;
    struct ttd_writer_options options = ttd_writer_options_default();
    struct ttd_trace trace = model_begin(&m, (struct entropy){.state = seed}, MODEL_REALISTIC);
    random_source = (struct entropy){.state = seed};
    options.events_per_chunk = (uint32_t)(1 + pick(100));
    cr_assert_eq(ttd_output_memory(memory, NULL, &output), TTD_OK);
    cr_assert_eq(ttd_writer_open(&output, &trace, &options, NULL, &writer, NULL), TTD_OK);
    for (int i = 0; i < RECORDS; i++) {
        enum ttd_status status = pick(50) ? model_event(&m, writer) : model_step(&m, writer);
        cr_assert_eq(status, TTD_OK, "%s", ttd_writer_error(writer).what);
    }
    cr_assert_eq(ttd_writer_close(writer, &(struct ttd_end){.reason = TTD_END_EXITED}, NULL),
                 TTD_OK);
    model_free(&m);
}

static struct ttd_reader *open_reader(const struct ttd_memory *memory, uint32_t batches)
{
    struct ttd_input input;
    struct ttd_reader *reader;
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    options.event_batches = batches;
    cr_assert_eq(ttd_input_memory(memory->data, memory->size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_reader_open(&input, &options, NULL, &reader, NULL), TTD_OK);
    return reader;
}

static void add(struct text *to, const struct ttd_batch *batch)
{
    text_append(to, "chunk %llu%s\n", (unsigned long long)batch->chunk.number,
                batch->made_up ? ": made up" : "");
    text_of_batch(to, batch);
}

/* All that the reader gives, and its last status. */
static enum ttd_status read_plainly(const struct ttd_memory *memory, struct text *to)
{
    struct ttd_reader *reader = open_reader(memory, 1);
    struct ttd_batch batch;
    struct ttd_error error = {.what = NULL};
    enum ttd_status status;
    while ((status = ttd_reader_next(reader, &batch, &error)) == TTD_OK)
        add(to, &batch);
    ttd_reader_close(reader);
    return status;
}

/* The same, ahead, with interruptions of a kind for each bit of `disturb`. */
enum { PAUSE = 1, FORGET = 2 };
static enum ttd_status read_ahead(const struct ttd_memory *memory, unsigned disturb,
                                  struct text *to)
{
    struct ttd_reader *reader = open_reader(memory, HEAP_PREFETCH_BATCHES);
    struct heap_prefetcher ahead;
    struct ttd_batch batch;
    struct ttd_error error = {.what = NULL};
    enum ttd_status status;
    bool used = false;
    heap_prefetcher_init(&ahead, reader);
    while ((status = heap_prefetcher_next(&ahead, &batch, &error)) == TTD_OK) {
        add(to, &batch);
        used = used || ahead.is_running;
        if (disturb & PAUSE && !pick(200))
            heap_prefetcher_pause(&ahead);
        if (disturb & FORGET && used && !pick(3000)) {
            disturb &= ~(unsigned)FORGET;
            heap_prefetcher_forget(&ahead);
            cr_assert_eq(ttd_reader_rewind(reader, TTD_KINDS_ALL), TTD_OK);
            to->size = 0;
        }
    }
    cr_assert(used, "nothing was read ahead");
    heap_prefetcher_free(&ahead);
    ttd_reader_close(reader);
    return status;
}

static void compare(const struct ttd_memory *memory, unsigned disturb)
{
    struct text plain = {0}, found = {0};
    enum ttd_status expected = read_plainly(memory, &plain);
    cr_assert_eq(read_ahead(memory, disturb, &found), expected);
    cr_assert_eq(found.size, plain.size);
    cr_assert(memcmp(found.data, plain.data, plain.size) == 0);
    text_free(&plain);
    text_free(&found);
}

Test(ahead, is_the_same)
{
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct ttd_memory memory = {0};
        write_trace(&memory, seed);
        for (unsigned disturb = 0; disturb <= (PAUSE | FORGET); disturb++)
            compare(&memory, disturb);
        ttd_memory_free(&memory);
    }
}

Test(ahead, of_damaged_and_truncated_traces)
{
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct ttd_memory memory = {0};
        write_trace(&memory, seed);
        /* Not in the first chunks, so that much can be read. */
        for (int i = 0; i < ANYWHERE; i++)
            memory.data[memory.size / 2 + pick(memory.size / 2)] ^= (uint8_t)(1 + pick(255));
        compare(&memory, PAUSE);
        memory.size -= pick(memory.size / 4);
        compare(&memory, PAUSE);
        ttd_memory_free(&memory);
    }
}

/* A reader of a growing trace is asked again. */
Test(ahead, goes_on_after_the_end)
{
    struct ttd_memory memory = {0};
    write_trace(&memory, 99);
    struct ttd_reader *reader = open_reader(&memory, HEAP_PREFETCH_BATCHES);
    struct heap_prefetcher ahead;
    struct ttd_batch batch;
    struct ttd_error error;
    enum ttd_status status;
    heap_prefetcher_init(&ahead, reader);
    while ((status = heap_prefetcher_next(&ahead, &batch, &error)) == TTD_OK)
        ;
    for (int i = 0; i < 3; i++)
        cr_assert_eq(heap_prefetcher_next(&ahead, &batch, &error), TTD_END);
    cr_assert_eq(status, TTD_END);
    heap_prefetcher_free(&ahead);
    ttd_reader_close(reader);
    ttd_memory_free(&memory);
}

/* A reader that keeps only one batch is left alone. */
Test(ahead, not_without_batches)
{
    struct ttd_memory memory = {0};
    write_trace(&memory, 7);
    struct ttd_reader *reader = open_reader(&memory, HEAP_PREFETCH_BATCHES - 1);
    struct heap_prefetcher ahead;
    struct ttd_batch batch;
    struct ttd_error error;
    heap_prefetcher_init(&ahead, reader);
    while (heap_prefetcher_next(&ahead, &batch, &error) == TTD_OK)
        cr_assert_not(ahead.is_running);
    heap_prefetcher_free(&ahead);
    ttd_reader_close(reader);
    ttd_memory_free(&memory);
}
