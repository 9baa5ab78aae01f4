/* SPDX-License-Identifier: MIT */
/* Runs of usual calls are written as their events are, one by one. */
#include "api/fixture.h"

#include <stdlib.h>
#include <string.h>

#include <ttdtrace/advanced.h>

enum { CALLS = 300, STACKS = 5, ADDRESSES = 40 };

struct pair {
    struct ttd_memory_output memory[2];
    struct ttd_writer *writers[2]; /* by events; by runs */
};

static void define(struct ttd_writer *writer)
{
    ttd_id id;
    cr_assert_eq(ttd_writer_string(writer, "a", 1, &id), TTD_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(
            ttd_writer_thread(writer, &(struct ttd_thread){.action = TTD_THREAD_BEGIN}, &id),
            TTD_OK);
        cr_assert_eq(ttd_writer_heap(writer, &(struct ttd_heap){.name = 1}, &id), TTD_OK);
    }
    for (uint64_t i = 0; i < STACKS; i++)
        cr_assert_eq(ttd_writer_stack(writer, TTD_NONE, TTD_NONE, i, &id), TTD_OK);
}

static void begin(struct pair *pair, uint32_t events_per_chunk)
{
    struct ttd_trace trace = fixture_trace();
    struct ttd_writer_options options = fixture_options(TTD_CODEC_LZ4, 0, events_per_chunk);
    for (int i = 0; i < 2; i++) {
        pair->writers[i] = fixture_writer(&pair->memory[i], &trace, &options);
        define(pair->writers[i]);
    }
}

/* Returns the event of a call, `i` calls after `start`. */
static struct ttd_event event_of(const struct ttd_calls *calls, size_t i, uint64_t parameters[2])
{
    const struct ttd_call *call = &calls->calls[i];
    bool frees = call->action == TTD_ACTION_FREE;
    parameters[0] = frees ? call->address : call->size;
    parameters[1] = call->size;
    return (struct ttd_event){.action = call->action,
                              .api = call->api,
                              .heap = calls->heap,
                              .thread = calls->thread,
                              .stack = call->stack,
                              .address = frees ? 0 : call->address,
                              .base_address = frees ? call->address : 0,
                              .size = call->size,
                              .result = 1,
                              .wall_time = calls->wall_time,
                              .time_start = {calls->start.sequence, calls->start.steps + 2 * i},
                              .time_end = {calls->start.sequence, calls->start.steps + 2 * i + 1},
                              .parameters = parameters,
                              .parameter_count = call->parameter_count};
}

static void write_both(struct pair *pair, const struct ttd_calls *calls)
{
    size_t written = SIZE_MAX;
    for (size_t i = 0; i < calls->count; i++) {
        uint64_t parameters[2];
        struct ttd_event event = event_of(calls, i, parameters);
        cr_assert_eq(ttd_writer_event(pair->writers[0], &event), TTD_OK);
    }
    cr_assert_eq(ttd_writer_calls(pair->writers[1], calls, &written), TTD_OK);
    cr_assert_eq(written, calls->count);
}

/* Closes both, and checks that they are intact and alike. */
static void end(struct pair *pair)
{
    for (int i = 0; i < 2; i++)
        fixture_close(pair->writers[i]);
    fixture_check_intact(pair->memory[1].data, pair->memory[1].size);
    cr_assert_eq(pair->memory[0].size, pair->memory[1].size);
    cr_assert_arr_eq(pair->memory[0].data, pair->memory[1].data, pair->memory[0].size);
    for (int i = 0; i < 2; i++)
        ttd_memory_output_free(&pair->memory[i]);
}

/* A call of any kind; one in sixteen with parameters that its function does not have. */
static struct ttd_call any_call(struct entropy *from)
{
    static const uint8_t apis[2][3] = {
        {TTD_API_MALLOC, TTD_API_NEW, TTD_API_CALLOC},
        {TTD_API_FREE, TTD_API_DELETE, TTD_API_DELETE_SIZED},
    };
    bool frees = entropy_below(from, 2) != 0;
    uint64_t kind = entropy_below(from, 33) % 3;
    bool has_size = kind == 2 && entropy_below(from, 16) != 0;
    return (struct ttd_call){.address = 16 + 16 * entropy_below(from, ADDRESSES),
                             .size = frees && !has_size ? 0 : entropy_below(from, 4),
                             .stack = (ttd_id)entropy_below(from, STACKS + 1),
                             .action = frees ? TTD_ACTION_FREE : TTD_ACTION_ALLOC,
                             .api = apis[frees][kind],
                             .parameter_count = frees && has_size ? 2 : 1};
}

/* Runs of all lengths that follow each other, or come from another thread, heap, time or fragment.
 */
static void check_runs(uint64_t seed, uint32_t events_per_chunk)
{
    struct pair pair;
    begin(&pair, events_per_chunk);
    struct entropy from = entropy_of_seed(seed);
    struct ttd_calls calls = {.thread = 1, .heap = 1, .wall_time = 5, .start = {1, 1}};
    for (int run = 0; run < 50; run++) {
        struct ttd_call all[CALLS];
        calls.calls = all;
        calls.count =
            entropy_pick(&from, 4) == 0 ? entropy_pick(&from, CALLS) : entropy_pick(&from, 9);
        for (size_t i = 0; i < calls.count; i++)
            all[i] = any_call(&from);
        write_both(&pair, &calls);
        calls.start.steps += 2 * calls.count;
        if (entropy_below(&from, 3) == 0) {
            calls.start = (struct ttd_position){calls.start.sequence + 1, entropy_below(&from, 2)};
            calls.thread = 1 + (ttd_id)entropy_below(&from, 2);
        }
        calls.wall_time += entropy_below(&from, 8) == 0;
        calls.heap = 1 + (ttd_id)(entropy_below(&from, 8) == 0);
    }
    end(&pair);
}

Test(calls, runs_in_small_chunks)
{
    for (uint64_t seed = 0; seed < 40; seed++)
        check_runs(seed, 1 + (uint32_t)(seed % 20));
}

Test(calls, runs_in_large_chunks)
{
    for (uint64_t seed = 100; seed < 140; seed++)
        check_runs(seed, 65536);
}

/* The events that a reader gives are those of the calls. */
Test(calls, are_read)
{
    struct ttd_call all[CALLS];
    struct entropy from = entropy_of_seed(1);
    struct ttd_calls calls = {
        .calls = all, .count = CALLS, .thread = 2, .heap = 2, .start = {3, 7}};
    struct pair pair;
    begin(&pair, 64);
    for (size_t i = 0; i < CALLS; i++)
        all[i] = any_call(&from);
    write_both(&pair, &calls);
    cr_assert_eq(ttd_writer_flush(pair.writers[1]), TTD_OK);
    struct ttd_reader *reader = fixture_reader(&pair.memory[1], true);
    struct ttd_batch batch;
    size_t read = 0;
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
        for (size_t i = 0; batch.kind == TTD_KIND_EVENTS && i < batch.count; i++, read++) {
            uint64_t parameters[2];
            const struct ttd_event *event = &batch.u.events[i];
            struct ttd_event expected = event_of(&calls, read, parameters);
            cr_assert_eq(event->action, expected.action);
            cr_assert_eq(event->api, expected.api);
            cr_assert_eq(event->heap, 2);
            cr_assert_eq(event->thread, 2);
            cr_assert_eq(event->stack, expected.stack);
            cr_assert_eq(event->address, expected.address);
            cr_assert_eq(event->base_address, expected.base_address);
            cr_assert_eq(event->size, expected.size);
            cr_assert_eq(event->result, 1);
            cr_assert_eq(ttd_position_compare(event->time_start, expected.time_start), 0);
            cr_assert_eq(ttd_position_compare(event->time_end, expected.time_end), 0);
            cr_assert_eq(event->parameter_count, expected.parameter_count);
            cr_assert_arr_eq(event->parameters, parameters,
                             event->parameter_count * sizeof *parameters);
        }
    }
    cr_assert_eq(read, CALLS);
    ttd_reader_close(reader);
    end(&pair);
}

/* Calls up to the wrong one are written, and those behind it can be. */
static void check_refused(struct ttd_call wrong, const char *what)
{
    struct ttd_call all[10];
    struct entropy from = entropy_of_seed(2);
    struct ttd_calls calls = {.calls = all, .count = 10, .thread = 1, .heap = 1, .start = {1, 1}};
    struct pair pair;
    begin(&pair, 4);
    size_t written;
    for (size_t i = 0; i < 10; i++)
        all[i] = any_call(&from);
    struct ttd_call good = all[6];
    all[6] = wrong;
    cr_assert_eq(ttd_writer_calls(pair.writers[1], &calls, &written), TTD_ERROR_ARGUMENT, "%s",
                 what);
    cr_assert_eq(written, 6);
    cr_assert_str_eq(ttd_writer_error(pair.writers[1]).what, what);
    all[6] = good;
    struct ttd_calls rest = calls;
    rest.calls += written;
    rest.count -= written;
    rest.start.steps += 2 * written;
    cr_assert_eq(ttd_writer_calls(pair.writers[1], &rest, &written), TTD_OK);
    cr_assert_eq(written, 4);
    for (size_t i = 0; i < 10; i++) {
        uint64_t parameters[2];
        struct ttd_event event = event_of(&calls, i, parameters);
        cr_assert_eq(ttd_writer_event(pair.writers[0], &event), TTD_OK);
    }
    end(&pair);
}

Test(calls, refused)
{
    struct ttd_call good = {.address = 16,
                            .size = 1,
                            .action = TTD_ACTION_ALLOC,
                            .api = TTD_API_MALLOC,
                            .parameter_count = 1};
    struct ttd_call wrong = good;
    wrong.address = 0;
    check_refused(wrong, "call");
    wrong = good;
    wrong.action = TTD_ACTION_REALLOC;
    check_refused(wrong, "call");
    wrong = good;
    wrong.parameter_count = 2;
    check_refused(wrong, "call");
    wrong.parameter_count = 0;
    check_refused(wrong, "call");
    wrong = good;
    wrong.stack = STACKS + 1;
    check_refused(wrong, "stack");
}

/* The steps of a run must not go beyond their last number. */
Test(calls, refused_positions)
{
    struct ttd_call all[4];
    struct entropy from = entropy_of_seed(3);
    struct pair pair;
    begin(&pair, 64);
    size_t written;
    for (size_t i = 0; i < 4; i++)
        all[i] = any_call(&from);
    struct ttd_calls calls = {
        .calls = all, .count = 2, .thread = 1, .heap = 1, .start = {1, UINT64_MAX - 5}};
    write_both(&pair, &calls);
    calls.count = 4;
    calls.start.steps += 4;
    cr_assert_eq(ttd_writer_calls(pair.writers[1], &calls, &written), TTD_ERROR_ARGUMENT);
    cr_assert_eq(written, 1);
    uint64_t parameters[2];
    struct ttd_event event = event_of(&calls, 0, parameters);
    cr_assert_eq(ttd_writer_event(pair.writers[0], &event), TTD_OK);
    end(&pair);
}

/* Returns how many of the first calls can be written to an output that fails from the first chunk
 * of events on. */
static size_t count_before_failure(struct ttd_calls calls, bool as_run)
{
    struct chaos_output output = {.counter = {.fail_at = CHAOS_NEVER, .forever = true}};
    struct ttd_output table = chaos_output_table(&output);
    struct ttd_trace trace = fixture_trace();
    struct ttd_writer_options options = fixture_options(TTD_CODEC_LZ4, 0, 8);
    struct ttd_writer *writer;
    cr_assert_eq(ttd_writer_open(&table, &trace, &options, NULL, &writer, NULL), TTD_OK);
    define(writer);
    cr_assert_eq(ttd_writer_flush(writer), TTD_OK);
    output.counter.fail_at = output.counter.calls;
    size_t written = 0;
    enum ttd_status status = TTD_OK;
    if (as_run)
        status = ttd_writer_calls(writer, &calls, &written);
    while (!as_run && written < calls.count && status == TTD_OK) {
        uint64_t parameters[2];
        struct ttd_event event = event_of(&calls, written, parameters);
        status = ttd_writer_event(writer, &event);
        written += status == TTD_OK;
    }
    cr_assert_eq(status, TTD_ERROR_IO);
    cr_assert_eq(ttd_writer_close(writer, &(struct ttd_end){0}, NULL), TTD_ERROR_MISUSE);
    free(output.data);
    return written;
}

/* The call that fills a chunk has its status, also if it is the last of the run. */
Test(calls, that_cannot_be_written)
{
    struct ttd_call all[12];
    struct ttd_calls calls = {.calls = all, .thread = 1, .heap = 1, .start = {1, 1}};
    for (size_t i = 0; i < 12; i++)
        all[i] = (struct ttd_call){.address = 16,
                                   .size = 1,
                                   .action = TTD_ACTION_ALLOC,
                                   .api = TTD_API_MALLOC,
                                   .parameter_count = 1};
    for (calls.count = 8; calls.count <= 12; calls.count++) {
        cr_assert_eq(count_before_failure(calls, false), 7);
        cr_assert_eq(count_before_failure(calls, true), 7, "of %zu", calls.count);
    }
}
