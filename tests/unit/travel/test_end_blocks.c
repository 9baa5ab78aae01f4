/* SPDX-License-Identifier: MIT */
/* The blocks that are found backwards are the ones that a replay leaves, and so are the counts. */
#include "travel/end_blocks.h"

#include <criterion/criterion.h>

#include "support/heap/random_calls.h"
#include "travel/heap_cursor.h"

#define TRACES 1500

static struct random_calls calls;

static struct ttd_reader *make_trace(uint64_t seed, const struct random_faults *faults)
{
    struct ttd_reader *reader = random_calls_trace(&calls, seed, faults);
    cr_assert_not_null(reader);
    return reader;
}

/* ---- The comparison ---- */

/* Sums over the chunks that the hook saw. */
struct shown {
    uint64_t chunks;
    uint64_t events;
};

static enum ttd_status see_net(void *context, const struct ttd_chunk *chunk,
                               const struct ttd_netted *netted)
{
    struct shown *shown = context;
    cr_assert_eq(netted->times[0].position.steps, chunk->first_position.steps);
    shown->chunks++;
    shown->events += chunk->record_count;
    return TTD_OK;
}

/* Applies the events between the nets and a position. */
static void go_on(struct heap_replay *replay, struct ttd_reader *reader, struct ttd_position to)
{
    struct ttd_batch batch;
    size_t applied = 0;
    bool is_there = false;
    cr_assert_eq(ttd_reader_rewind(reader, HEAP_CURSOR_KINDS), TTD_OK);
    cr_assert_eq(ttd_reader_seek_event(reader, replay->next, NULL), TTD_OK);
    while (!is_there && ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
        if (batch.kind != TTD_KIND_EVENTS)
            continue;
        cr_assert_eq(heap_replay_apply(replay, &batch, to, &applied), TTD_OK);
        is_there = applied < batch.count;
    }
    cr_assert_eq(heap_replay_settle(replay, to), TTD_OK);
}

/* Searches that ended before the last chunk. */
static unsigned partial_searches;

/* Finds the blocks both ways, and compares. Returns whether it was done backwards. `last` is set to
 * the position of the last effect up to `to`. */
static bool compare_at(struct ttd_reader *reader, uint64_t events, unsigned threads,
                       struct ttd_position to, struct ttd_position *last)
{
    struct shown shown = {0};
    struct heap_trace trace = {
        .reader = reader, .hook = {.context = &shown, .net = see_net}, .threads = threads};
    struct heap_cursor cursor;
    struct heap_replay replay;
    struct ttd_error error;
    struct end_blocks found;
    cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);
    cr_assert_eq(heap_end_blocks_find(&replay, &trace, to, &found, &error), TTD_OK);
    bool is_done = found.is_done;
    cr_assert(!is_done || ttd_reader_is_intact(reader));
    cr_assert(!is_done || shown.events == events);
    if (is_done && !found.is_over) {
        go_on(&replay, reader, to);
        partial_searches++;
    }
    cr_assert_eq(heap_cursor_init(&cursor, &trace, HEAP_CURSOR_KINDS, NULL), TTD_OK);
    cr_assert_eq(heap_cursor_seek(&cursor, to, &error), TTD_OK);
    const char *difference = is_done ? random_calls_difference(&replay, &cursor.replay) : NULL;
    cr_assert_null(difference, "%s", difference);
    cr_assert(!is_done || replay.queue.count == cursor.replay.queue.count);
    *last = cursor.replay.position;
    heap_cursor_free(&cursor);
    heap_replay_free(&replay);
    return is_done;
}

static bool compare_with(struct ttd_reader *reader, uint64_t events, unsigned threads)
{
    struct ttd_position last;
    return compare_at(reader, events, threads, ttd_position_max(), &last);
}

static bool compare(struct ttd_reader *reader, uint64_t events)
{
    bool is_done = compare_with(reader, events, 1);
    cr_assert_eq(compare_with(reader, events, 2), is_done);
    cr_assert_eq(compare_with(reader, events, 16), is_done);
    return is_done;
}

/* Returns how many of the random traces with such faults were done backwards. */
static unsigned compare_all(const struct random_faults *faults)
{
    unsigned done = 0;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct ttd_reader *reader = make_trace(seed, faults);
        done += compare(reader, calls.written);
        ttd_reader_close(reader);
        ttd_memory_output_free(&calls.file);
    }
    return done;
}

Test(end_blocks, are_found_in_every_trace_of_a_program_without_errors)
{
    const struct random_faults none = {.overlap = 0};
    cr_assert_eq(compare_all(&none), TRACES);
}

Test(end_blocks, are_found_where_reallocations_overlap_other_calls)
{
    const struct random_faults faults = {.overlap = 60};
    cr_assert_eq(compare_all(&faults), TRACES);
}

/* Behind everything they are found as at the end, and right where something is still to come. */
Test(end_blocks, are_found_up_to_a_position_behind_everything)
{
    const struct random_faults faults = {
        .overlap = 60, .never = 10, .destruction = 2, .has_halves = true};
    unsigned done = 0;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct ttd_reader *reader = make_trace(seed, &faults);
        struct ttd_position last, unused;
        bool is_done = compare_at(reader, calls.written, 1, ttd_position_max(), &last);
        if (ttd_position_compare(last, calls.now) < 0)
            last = calls.now;
        cr_assert_eq(compare_at(reader, calls.written, 1, last, &unused), is_done);
        done += is_done;
        for (unsigned i = 0; i < 6; i++) {
            last.steps -= last.steps != 0;
            (void)compare_at(reader, calls.written, 2, last, &unused);
        }
        ttd_reader_close(reader);
        ttd_memory_output_free(&calls.file);
    }
    cr_assert_gt(done, TRACES / 2);
}

Test(end_blocks, are_found_up_to_any_position)
{
    const struct random_faults faults = {
        .overlap = 60, .never = 10, .destruction = 1, .early = 5, .has_halves = true};
    partial_searches = 0;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct ttd_reader *reader = make_trace(seed, &faults);
        for (unsigned i = 0; i < 4; i++) {
            struct ttd_position to = calls.now, unused;
            to.steps = entropy_pick(&calls.entropy, (unsigned)to.steps + 2);
            (void)compare_at(reader, calls.written, 1, to, &unused);
        }
        ttd_reader_close(reader);
        ttd_memory_output_free(&calls.file);
    }
    cr_assert_gt(partial_searches, TRACES / 2, "%u", partial_searches);
}

Test(end_blocks, are_right_where_blocks_are_used_before_they_are_acquired)
{
    const struct random_faults faults = {.overlap = 60, .early = 100};
    unsigned done = compare_all(&faults);
    cr_assert(done > TRACES / 10 && done < TRACES, "%u", done);
}

Test(end_blocks, are_not_taken_from_a_trace_with_errors)
{
    const struct random_faults faults = {.error = 3};
    unsigned done = compare_all(&faults);
    cr_assert(done > TRACES / 10 && done < TRACES * 9 / 10, "%u", done);
}

Test(end_blocks, of_several_heaps_at_an_address_are_right)
{
    const struct random_faults faults = {.other_heap = 10};
    unsigned done = compare_all(&faults);
    cr_assert(done > TRACES / 10 && done < TRACES * 9 / 10, "%u", done);
}

Test(end_blocks, of_several_heaps_are_found)
{
    const struct random_faults faults = {.has_halves = true, .overlap = 30};
    cr_assert_eq(compare_all(&faults), TRACES);
}

Test(end_blocks, of_destroyed_heaps_are_found)
{
    const struct random_faults faults = {.destruction = 10, .has_halves = true};
    cr_assert_eq(compare_all(&faults), TRACES);
}

Test(end_blocks, of_heaps_destroyed_again_and_again_are_right)
{
    const struct random_faults faults = {.destruction = 100};
    unsigned done = compare_all(&faults);
    cr_assert(done > TRACES / 10 && done < TRACES * 9 / 10, "%u", done);
}

Test(end_blocks, of_destroyed_heaps_are_right_with_errors)
{
    const struct random_faults faults = {
        .destruction = 10, .other_heap = 2, .overlap = 20, .error = 1};
    unsigned done = compare_all(&faults);
    cr_assert(done > TRACES / 10 && done < TRACES * 9 / 10, "%u", done);
}

Test(end_blocks, are_found_behind_a_call_that_never_returned)
{
    const struct random_faults faults = {.never = 10};
    cr_assert_eq(compare_all(&faults), TRACES);
}

Test(end_blocks, are_not_known_with_lost_events)
{
    const struct random_faults faults = {.loss = 10};
    unsigned done = compare_all(&faults);
    cr_assert(done > TRACES / 10 && done < TRACES * 9 / 10, "%u", done);
}

Test(end_blocks, of_nested_heaps_are_left_to_the_replay)
{
    const struct random_faults faults = {.has_parent = true};
    cr_assert_eq(compare_all(&faults), 0);
}

Test(end_blocks, are_right_with_all_faults_at_once)
{
    const struct random_faults faults = {
        .other_heap = 100, .destruction = 5, .error = 50, .never = 5, .loss = 1, .overlap = 50};
    cr_assert_lt(compare_all(&faults), TRACES / 2);
}

/* Returns whether blocks at such distances, in turn of so many heaps, were found backwards. */
static bool compare_distant(uint64_t distance, uint64_t heaps)
{
    const struct random_faults none = {.overlap = 0};
    ttd_id id;
    cr_assert(random_calls_open_seed(&calls, 1, &none));
    for (uint64_t i = RANDOM_CALLS_HEAPS; i < heaps; i++) {
        struct ttd_heap heap = {.handle = i};
        cr_assert_eq(ttd_writer_heap(calls.writer, &heap, &id), TTD_OK);
    }
    for (uint64_t i = 1; i <= 10000; i++) {
        struct ttd_event event = {.action = TTD_ACTION_ALLOC,
                                  .thread = 1,
                                  .heap = (ttd_id)(1 + i % heaps),
                                  .api = TTD_API_MALLOC,
                                  .address = i * distance,
                                  .result = 1};
        cr_assert(random_calls_event(&calls, &event));
    }
    struct ttd_reader *reader = random_calls_read(&calls);
    cr_assert_not_null(reader);
    bool is_done = compare(reader, calls.written);
    ttd_reader_close(reader);
    ttd_memory_output_free(&calls.file);
    return is_done;
}

/* Bits for addresses that share none would take more memory than blocks. */
Test(end_blocks, far_apart_are_left_to_the_replay)
{
    cr_assert(compare_distant(32, 1));
    cr_assert(compare_distant(4096, 1));
    cr_assert_not(compare_distant(UINT64_C(1) << 20, 1));
}

Test(end_blocks, of_many_heaps_are_left_to_the_replay)
{
    cr_assert(compare_distant(32, 15));
    cr_assert_not(compare_distant(32, 16));
    cr_assert_not(compare_distant(32, 17));
}

static void write_simple(uint8_t action, ttd_id heap, uint64_t address)
{
    struct ttd_event event = {.action = action,
                              .thread = 1,
                              .heap = heap,
                              .api = action == TTD_ACTION_FREE ? TTD_API_FREE : TTD_API_MALLOC,
                              .address = action == TTD_ACTION_FREE ? 0 : address,
                              .base_address = action == TTD_ACTION_FREE ? address : 0,
                              .result = 1};
    cr_assert(random_calls_event(&calls, &event));
}

/* More addresses than the number of a place can reach. */
#define FAR 300

/* A chunk spells an address out twice, each time for another heap; the next one releases it. */
Test(end_blocks, of_another_heap_at_an_address_are_right)
{
    const struct random_faults none = {.overlap = 0};
    cr_assert(
        random_calls_open(&calls, entropy_of_seed(1), &none, RANDOM_CALLS_ADDRESSES, 2 * FAR + 3));
    write_simple(TTD_ACTION_ALLOC, 1, 0x1000);
    write_simple(TTD_ACTION_FREE, 1, 0x1000);
    for (uint64_t i = 0; i < FAR; i++)
        write_simple(TTD_ACTION_ALLOC, 1, 0x2000 + 16 * i);
    for (uint64_t i = 0; i < FAR; i++)
        write_simple(TTD_ACTION_FREE, 1, 0x2000 + 16 * i);
    write_simple(TTD_ACTION_ALLOC, 2, 0x1000);
    write_simple(TTD_ACTION_FREE, 2, 0x1000);
    struct ttd_reader *reader = random_calls_read(&calls);
    cr_assert_not_null(reader);
    cr_assert_not(compare(reader, calls.written));
    ttd_reader_close(reader);
    ttd_memory_output_free(&calls.file);
}
