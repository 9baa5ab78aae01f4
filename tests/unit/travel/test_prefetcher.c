/* SPDX-License-Identifier: MIT */
/* Another thread reads ahead what the reader gives, whatever happens meanwhile. */
#include <criterion/criterion.h>
#include <string.h>

#include "travel/heap_cursor.h"
#include "support/records/model.h"

#define RECORDS       60000
#define TRACES        4
#define DAMAGED_BYTES 8

/* A trace of many small chunks. */
static void write_trace(struct ttd_memory_output *memory, struct entropy *entropy)
{
    struct model model;
    struct ttd_output output;
    struct ttd_writer *writer;
    struct ttd_writer_options options = ttd_writer_options_default();
    struct ttd_trace trace = model_begin(&model, *entropy, MODEL_REALISTIC);
    options.events_per_chunk = 1 + entropy_pick(entropy, 100);
    cr_assert_eq(ttd_output_memory(memory, NULL, &output), TTD_OK);
    cr_assert_eq(ttd_writer_open(&output, &trace, &options, NULL, &writer, NULL), TTD_OK);
    for (int i = 0; i < RECORDS; i++) {
        enum ttd_status status =
            entropy_pick(entropy, 50) ? model_event(&model, writer) : model_step(&model, writer);
        cr_assert_eq(status, TTD_OK, "%s", ttd_writer_error(writer).what);
    }
    cr_assert_eq(ttd_writer_close(writer, &(struct ttd_end){.reason = TTD_END_REASON_EXITED}, NULL),
                 TTD_OK);
    model_free(&model);
}

static struct ttd_reader *open_reader(const struct ttd_memory_output *memory, uint32_t batches)
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

static void append_batch(struct text *text, const struct ttd_batch *batch)
{
    text_append(text, "chunk %llu%s\n", (unsigned long long)batch->chunk.number,
                batch->synthetic ? ": made up" : "");
    text_of_batch(text, batch);
}

/* All that the reader gives, and its last status. */
static enum ttd_status read_plainly(const struct ttd_memory_output *memory, struct text *text)
{
    struct ttd_reader *reader = open_reader(memory, 1);
    struct ttd_batch batch;
    struct ttd_error error = {.what = NULL};
    enum ttd_status status;
    while ((status = ttd_reader_next(reader, &batch, &error)) == TTD_OK)
        append_batch(text, &batch);
    ttd_reader_close(reader);
    return status;
}

/* Disturbances of the prefetcher while it reads; bits. */
enum { UNDISTURBED = 0, PAUSED = 1, REWOUND = 2 };

/* Once in a while pauses it; once lets it forget all and begins again, which empties the text. */
static void disturb(struct heap_prefetcher *prefetcher, struct ttd_reader *reader,
                    struct entropy *entropy, unsigned *disturbance, struct text *text)
{
    if (*disturbance & PAUSED && !entropy_pick(entropy, 200))
        heap_prefetcher_pause(prefetcher);
    if (*disturbance & REWOUND && !entropy_pick(entropy, 3000)) {
        *disturbance &= ~(unsigned)REWOUND;
        heap_prefetcher_forget(prefetcher);
        cr_assert_eq(ttd_reader_rewind(reader, TTD_KINDS_ALL), TTD_OK);
        text->size = 0;
    }
}

/* The same as read_plainly(), through a prefetcher. */
static enum ttd_status read_ahead(const struct ttd_memory_output *memory, struct entropy *entropy,
                                  unsigned disturbance, struct text *text)
{
    struct ttd_reader *reader = open_reader(memory, HEAP_PREFETCH_BATCHES);
    struct heap_prefetcher prefetcher;
    struct ttd_batch batch;
    struct ttd_error error = {.what = NULL};
    enum ttd_status status;
    bool has_run = false;
    heap_prefetcher_init(&prefetcher, reader);
    while ((status = heap_prefetcher_next(&prefetcher, &batch, &error)) == TTD_OK) {
        append_batch(text, &batch);
        has_run = has_run || prefetcher.is_running;
        if (has_run)
            disturb(&prefetcher, reader, entropy, &disturbance, text);
    }
    cr_assert(has_run, "nothing was read ahead");
    heap_prefetcher_free(&prefetcher);
    ttd_reader_close(reader);
    return status;
}

static void expect_same_reading(const struct ttd_memory_output *memory, struct entropy *entropy,
                                unsigned disturbance)
{
    struct text expected = {0};
    struct text text = {0};
    enum ttd_status status = read_plainly(memory, &expected);
    cr_assert_eq(read_ahead(memory, entropy, disturbance, &text), status);
    cr_assert_eq(text.size, expected.size);
    cr_assert(memcmp(text.data, expected.data, expected.size) == 0);
    text_free(&expected);
    text_free(&text);
}

Test(prefetcher, gives_what_the_reader_gives_however_it_is_disturbed)
{
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct entropy entropy = entropy_of_seed(seed);
        struct ttd_memory_output memory = {0};
        write_trace(&memory, &entropy);
        for (unsigned disturbance = UNDISTURBED; disturbance <= (PAUSED | REWOUND); disturbance++)
            expect_same_reading(&memory, &entropy, disturbance);
        ttd_memory_output_free(&memory);
    }
}

/* Not in the first chunks, so that much can be read. */
static void damage_second_half(struct ttd_memory_output *memory, struct entropy *entropy)
{
    for (int i = 0; i < DAMAGED_BYTES; i++) {
        size_t at = memory->size / 2 + (size_t)entropy_below(entropy, memory->size / 2);
        memory->data[at] ^= (uint8_t)(1 + entropy_pick(entropy, 255));
    }
}

Test(prefetcher, gives_what_the_reader_gives_of_a_damaged_trace)
{
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct entropy entropy = entropy_of_seed(seed);
        struct ttd_memory_output memory = {0};
        write_trace(&memory, &entropy);
        damage_second_half(&memory, &entropy);
        expect_same_reading(&memory, &entropy, PAUSED);
        ttd_memory_output_free(&memory);
    }
}

Test(prefetcher, gives_what_the_reader_gives_of_a_truncated_trace)
{
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct entropy entropy = entropy_of_seed(seed);
        struct ttd_memory_output memory = {0};
        write_trace(&memory, &entropy);
        damage_second_half(&memory, &entropy);
        memory.size -= (size_t)entropy_below(&entropy, memory.size / 4);
        expect_same_reading(&memory, &entropy, PAUSED);
        ttd_memory_output_free(&memory);
    }
}

/* Reads to the end; returns the status there. */
static enum ttd_status read_all(struct heap_prefetcher *prefetcher)
{
    struct ttd_batch batch;
    struct ttd_error error;
    enum ttd_status status;
    do
        status = heap_prefetcher_next(prefetcher, &batch, &error);
    while (status == TTD_OK);
    return status;
}

/* A reader of a growing trace is asked again. */
Test(prefetcher, may_be_asked_again_at_the_end)
{
    struct entropy entropy = entropy_of_seed(99);
    struct ttd_memory_output memory = {0};
    write_trace(&memory, &entropy);
    struct ttd_reader *reader = open_reader(&memory, HEAP_PREFETCH_BATCHES);
    struct heap_prefetcher prefetcher;
    heap_prefetcher_init(&prefetcher, reader);

    for (int i = 0; i < 4; i++)
        cr_assert_eq(read_all(&prefetcher), TTD_END);

    heap_prefetcher_free(&prefetcher);
    ttd_reader_close(reader);
    ttd_memory_output_free(&memory);
}

Test(prefetcher, does_not_run_where_the_reader_keeps_too_few_batches)
{
    struct entropy entropy = entropy_of_seed(7);
    struct ttd_memory_output memory = {0};
    write_trace(&memory, &entropy);
    struct ttd_reader *reader = open_reader(&memory, HEAP_PREFETCH_BATCHES - 1);
    struct heap_prefetcher prefetcher;
    struct ttd_batch batch;
    struct ttd_error error;
    heap_prefetcher_init(&prefetcher, reader);

    while (heap_prefetcher_next(&prefetcher, &batch, &error) == TTD_OK)
        cr_assert_not(prefetcher.is_running);

    heap_prefetcher_free(&prefetcher);
    ttd_reader_close(reader);
    ttd_memory_output_free(&memory);
}
