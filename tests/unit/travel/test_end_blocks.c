/* SPDX-License-Identifier: MIT */
/* The blocks that are found backwards are the ones that a replay leaves, and so are the counts. */
#include "travel/end_blocks.h"

#include <criterion/criterion.h>

#include "support/entropy.h"
#include "travel/heap_cursor.h"

#define TRACES     1500
#define ADDRESSES  40
#define EVENTS_MAX 300
/* One of so many traces is larger, so that chunks spell out an address more than once. */
#define LARGE_STEP      16
#define ADDRESSES_LARGE 600
#define EVENTS_LARGE    4000
#define HEAPS           2
#define THREADS         3
#define STACKS          5

/* The faults of a trace, in thousandths of its events. */
struct faults {
    unsigned other_heap;
    unsigned destruction;
    unsigned error;
    unsigned never;
    unsigned loss;
    /* An address is used before the call that acquires a block there ends. */
    unsigned early;
    /* Not a fault: a reallocation overlaps later calls. */
    unsigned overlap;
    bool has_parent;
    /* No fault either: both heaps have half of the addresses. */
    bool has_halves;
};

struct random_trace {
    struct entropy entropy;
    struct faults faults;
    struct ttd_memory_output file;
    struct ttd_writer *writer;
    struct ttd_position now;
    size_t addresses;
    bool is_live[ADDRESSES_LARGE];
    /* A block in flight is not used before. */
    struct ttd_position ready[ADDRESSES_LARGE];
    uint64_t written;
};

static bool has_fault(struct random_trace *trace, unsigned thousandths)
{
    return entropy_pick(&trace->entropy, 1000) < thousandths;
}

/* Some are odd, some share all but their highest bits. */
static uint64_t address_of(size_t index)
{
    return UINT64_C(0x10000) + 16 * index + (index % 5 == 0 ? index % 16 : 0) +
           (index % 7 == 0 ? UINT64_C(0xE) << 60 : 0);
}

static void define(struct random_trace *trace)
{
    ttd_id id;
    for (unsigned i = 0; i < THREADS; i++) {
        struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .os_id = i};
        cr_assert_eq(ttd_writer_thread(trace->writer, &thread, &id), TTD_OK);
    }
    for (unsigned i = 0; i < HEAPS; i++) {
        struct ttd_heap heap = {.handle = i};
        cr_assert_eq(ttd_writer_heap(trace->writer, &heap, &id), TTD_OK);
    }
    struct ttd_heap_parent parent = {.heap = 2, .parent = 1};
    if (trace->faults.has_parent)
        cr_assert_eq(ttd_writer_heap_parent(trace->writer, &parent), TTD_OK);
    for (unsigned i = 0; i < STACKS; i++)
        cr_assert_eq(ttd_writer_stack(trace->writer, 0, 0, i, &id), TTD_OK);
}

static ttd_id heap_of(const struct random_trace *trace, size_t index)
{
    return 1 + (ttd_id)(index * HEAPS / trace->addresses);
}

/* No address. */
#define NOWHERE SIZE_MAX

/* Picks an address that is live, or not; NOWHERE if none was found. */
static size_t pick(struct random_trace *trace, bool is_live, ttd_id heap)
{
    is_live ^= has_fault(trace, trace->faults.error);
    bool is_early = has_fault(trace, trace->faults.early);
    for (int i = 0; i < 50; i++) {
        size_t index = entropy_pick(&trace->entropy, (unsigned)trace->addresses);
        if (trace->is_live[index] == is_live &&
            (!trace->faults.has_halves || heap_of(trace, index) == heap) &&
            (is_early || ttd_position_compare(trace->ready[index], trace->now) <= 0))
            return index;
    }
    return NOWHERE;
}

static ttd_id pick_heap(struct random_trace *trace)
{
    if (trace->faults.has_halves)
        return 1 + entropy_pick(&trace->entropy, HEAPS);
    return has_fault(trace, trace->faults.other_heap) ? 2 * entropy_pick(&trace->entropy, 2) : 1;
}

static void set_live(struct random_trace *trace, size_t index, bool is_live,
                     struct ttd_position position)
{
    if (index == NOWHERE)
        return;
    trace->is_live[index] = is_live;
    trace->ready[index] = position;
}

static void write_event(struct random_trace *trace, const struct ttd_event *event)
{
    cr_assert_eq(ttd_writer_event(trace->writer, event), TTD_OK, "%s",
                 ttd_writer_error(trace->writer).what);
    trace->written++;
}

/* Sets the times of a call, and the present. */
static void set_times(struct random_trace *trace, struct ttd_event *event)
{
    trace->now.sequence += !entropy_pick(&trace->entropy, 10);
    event->time_start = (struct ttd_position){trace->now.sequence, trace->now.steps + 1};
    event->time_end = (struct ttd_position){trace->now.sequence, trace->now.steps + 2};
    trace->now = event->time_end;
    if (event->action == TTD_ACTION_REALLOC && has_fault(trace, trace->faults.overlap)) {
        trace->now = event->time_start;
        event->time_end.steps += entropy_pick(&trace->entropy, 30);
    }
    if (has_fault(trace, trace->faults.never)) {
        event->time_end = ttd_position_invalid();
        event->result = 0;
        event->address = 0;
        trace->now = event->time_start;
    }
}

static void write_call(struct random_trace *trace)
{
    static const uint8_t actions[] = {TTD_ACTION_ALLOC, TTD_ACTION_FREE, TTD_ACTION_REALLOC};
    struct ttd_event event = {.action = actions[entropy_pick(&trace->entropy, 3)],
                              .thread = 1 + entropy_pick(&trace->entropy, THREADS),
                              .stack = 1 + entropy_pick(&trace->entropy, STACKS),
                              .heap = pick_heap(trace),
                              .result = entropy_pick(&trace->entropy, 30) != 0};
    bool acquires = event.action != TTD_ACTION_FREE;
    bool releases = event.action == TTD_ACTION_FREE ||
                    (event.action == TTD_ACTION_REALLOC && entropy_pick(&trace->entropy, 4) != 0);
    size_t given = releases ? pick(trace, true, event.heap) : NOWHERE;
    bool stays = given != NOWHERE && entropy_pick(&trace->entropy, 2);
    size_t taken =
        acquires && event.result ? (stays ? given : pick(trace, false, event.heap)) : NOWHERE;
    if ((event.action == TTD_ACTION_FREE && given == NOWHERE) ||
        (acquires && event.result && taken == NOWHERE))
        return;
    event.size = acquires ? 8 * entropy_pick(&trace->entropy, 9) : 0;
    event.base_address = given == NOWHERE ? 0 : address_of(given);
    event.previous_address = event.action == TTD_ACTION_REALLOC ? event.base_address : 0;
    event.address = taken == NOWHERE ? 0 : address_of(taken);
    event.api = (uint8_t)(event.action == TTD_ACTION_FREE    ? TTD_API_FREE
                          : event.action == TTD_ACTION_ALLOC ? TTD_API_MALLOC
                                                             : TTD_API_REALLOC);
    set_times(trace, &event);
    write_event(trace, &event);
    /* A release that never returned was one. */
    bool is_release = event.action == TTD_ACTION_FREE && !ttd_event_returned(&event);
    if (!event.result && !is_release)
        return;
    set_live(trace, given, false, event.time_start);
    if (is_release)
        return;
    set_live(trace, taken, true, event.time_end);
}

static void write_destruction(struct random_trace *trace)
{
    struct ttd_event event = {.action = TTD_ACTION_DESTROY,
                              .thread = 1,
                              .heap = 1 + entropy_pick(&trace->entropy, HEAPS),
                              .result = 1};
    set_times(trace, &event);
    write_event(trace, &event);
    for (size_t i = 0; i < trace->addresses && trace->faults.has_halves; i++)
        trace->is_live[i] = trace->is_live[i] && heap_of(trace, i) != event.heap;
}

static void write_loss(struct random_trace *trace)
{
    struct ttd_loss loss = {
        .reason = TTD_LOSS_OVERFLOW, .count = 1, .last_good = trace->now, .first_good = trace->now};
    cr_assert_eq(ttd_writer_loss(trace->writer, &loss), TTD_OK);
}

static void open_sized_trace(struct random_trace *trace, uint64_t seed, const struct faults *faults,
                             const struct ttd_writer_options *options)
{
    struct ttd_trace header = {.trace_id = seed, .time_unit = 1, .pointer_size = 8};
    struct ttd_output output;
    cr_assert_eq(ttd_output_memory(&trace->file, NULL, &output), TTD_OK);
    cr_assert_eq(ttd_writer_open(&output, &header, options, NULL, &trace->writer, NULL), TTD_OK);
    trace->faults = *faults;
    define(trace);
}

static void open_trace(struct random_trace *trace, uint64_t seed, const struct faults *faults)
{
    struct ttd_writer_options options = ttd_writer_options_default();
    bool is_large = seed % LARGE_STEP == 0;
    *trace = (struct random_trace){.entropy = entropy_of_seed(seed),
                                   .now = {.sequence = 1},
                                   .addresses = is_large ? ADDRESSES_LARGE : ADDRESSES};
    options.events_per_chunk = 1 + entropy_pick(&trace->entropy, is_large ? EVENTS_LARGE : 60);
    open_sized_trace(trace, seed, faults, &options);
}

static struct ttd_reader *close_trace(struct random_trace *trace)
{
    struct ttd_input input;
    struct ttd_reader *reader;
    struct ttd_reader_options options = ttd_reader_options_default();
    struct ttd_end end = {.reason = TTD_END_REASON_EXITED};
    options.tolerant = true;
    cr_assert_eq(ttd_writer_close(trace->writer, &end, NULL), TTD_OK);
    cr_assert_eq(ttd_input_memory(trace->file.data, trace->file.size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_reader_open(&input, &options, NULL, &reader, NULL), TTD_OK);
    return reader;
}

static struct ttd_reader *make_trace(struct random_trace *trace, uint64_t seed,
                                     const struct faults *faults)
{
    open_trace(trace, seed, faults);
    unsigned count =
        entropy_pick(&trace->entropy, seed % LARGE_STEP == 0 ? EVENTS_LARGE : EVENTS_MAX);
    for (unsigned i = 0; i < count; i++) {
        write_call(trace);
        if (has_fault(trace, faults->destruction))
            write_destruction(trace);
        if (has_fault(trace, faults->loss))
            write_loss(trace);
    }
    return close_trace(trace);
}

/* ---- The comparison ---- */

static void expect_block(const struct heap_block *block, const struct heap_block *expected)
{
    cr_assert_not_null(block);
    cr_assert_eq(block->address, expected->address);
    cr_assert_eq(block->size, expected->size);
    cr_assert_eq(block->event, expected->event);
    cr_assert_eq(ttd_position_compare(block->allocated, expected->allocated), 0);
    cr_assert_eq(block->thread, expected->thread);
    cr_assert_eq(block->stack, expected->stack);
    cr_assert_eq(block->heap, expected->heap);
    cr_assert_eq(block->action, expected->action);
    cr_assert_eq(block->api, expected->api);
}

static void expect_counts(const struct heap_counts *counts, const struct heap_counts *expected)
{
    for (int action = 0; action <= TTD_ACTION_DESTROY; action++)
        cr_assert_eq(counts->actions[action], expected->actions[action]);
    cr_assert_eq(counts->events, expected->events);
    cr_assert_eq(counts->failed, expected->failed);
    cr_assert_eq(counts->unfinished, expected->unfinished);
    cr_assert_eq(counts->overlaps, expected->overlaps);
    cr_assert_eq(counts->unknown_releases, expected->unknown_releases);
}

static void expect_same(const struct heap_replay *replay, const struct heap_replay *expected)
{
    size_t cursor = 0;
    const struct heap_block *block;
    cr_assert_eq(replay->live.count, expected->live.count);
    cr_assert_eq(replay->live.outer_count, expected->live.outer_count);
    cr_assert_eq(replay->live.bytes.low, expected->live.bytes.low);
    while ((block = heap_live_each(&expected->live, &cursor)))
        expect_block(heap_live_find(&replay->live, block->address, block->heap), block);
    expect_counts(&replay->counts, &expected->counts);
    cr_assert_eq(ttd_position_compare(replay->position, expected->position), 0);
    cr_assert_eq(expected->queue.count, 0);
}

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

/* Finds the blocks both ways, and compares. Returns whether it was done backwards. */
static bool compare_with(struct ttd_reader *reader, uint64_t events, unsigned threads)
{
    struct shown shown = {0};
    struct heap_trace trace = {
        .reader = reader, .hook = {.context = &shown, .net = see_net}, .threads = threads};
    struct heap_cursor cursor;
    struct heap_replay replay;
    struct ttd_error error;
    bool is_done = true;
    cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);
    cr_assert_eq(heap_end_blocks_find(&replay, &trace, &is_done, &error), TTD_OK);
    cr_assert(!is_done || ttd_reader_is_intact(reader));
    cr_assert(!is_done || shown.events == events);
    cr_assert_eq(heap_cursor_init(&cursor, &trace, HEAP_CURSOR_KINDS, NULL), TTD_OK);
    cr_assert_eq(heap_cursor_seek(&cursor, ttd_position_max(), &error), TTD_OK);
    if (is_done)
        expect_same(&replay, &cursor.replay);
    heap_cursor_free(&cursor);
    heap_replay_free(&replay);
    return is_done;
}

static bool compare(struct ttd_reader *reader, uint64_t events)
{
    bool is_done = compare_with(reader, events, 1);
    cr_assert_eq(compare_with(reader, events, 2), is_done);
    cr_assert_eq(compare_with(reader, events, 16), is_done);
    return is_done;
}

/* Returns how many of the random traces with such faults were done backwards. */
static unsigned compare_all(const struct faults *faults)
{
    static struct random_trace trace;
    unsigned done = 0;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct ttd_reader *reader = make_trace(&trace, seed, faults);
        done += compare(reader, trace.written);
        ttd_reader_close(reader);
        ttd_memory_output_free(&trace.file);
    }
    return done;
}

Test(end_blocks, are_found_in_every_trace_of_a_program_without_errors)
{
    const struct faults none = {.overlap = 0};
    cr_assert_eq(compare_all(&none), TRACES);
}

Test(end_blocks, are_found_where_reallocations_overlap_other_calls)
{
    const struct faults faults = {.overlap = 60};
    cr_assert_eq(compare_all(&faults), TRACES);
}

Test(end_blocks, are_right_where_blocks_are_used_before_they_are_acquired)
{
    const struct faults faults = {.overlap = 60, .early = 100};
    unsigned done = compare_all(&faults);
    cr_assert(done > TRACES / 10 && done < TRACES, "%u", done);
}

Test(end_blocks, are_not_taken_from_a_trace_with_errors)
{
    const struct faults faults = {.error = 3};
    unsigned done = compare_all(&faults);
    cr_assert(done > TRACES / 10 && done < TRACES * 9 / 10, "%u", done);
}

Test(end_blocks, of_several_heaps_at_an_address_are_right)
{
    const struct faults faults = {.other_heap = 10};
    unsigned done = compare_all(&faults);
    cr_assert(done > TRACES / 10 && done < TRACES * 9 / 10, "%u", done);
}

Test(end_blocks, of_several_heaps_are_found)
{
    const struct faults faults = {.has_halves = true, .overlap = 30};
    cr_assert_eq(compare_all(&faults), TRACES);
}

Test(end_blocks, of_destroyed_heaps_are_found)
{
    const struct faults faults = {.destruction = 10, .has_halves = true};
    cr_assert_eq(compare_all(&faults), TRACES);
}

Test(end_blocks, of_heaps_destroyed_again_and_again_are_right)
{
    const struct faults faults = {.destruction = 100};
    unsigned done = compare_all(&faults);
    cr_assert(done > TRACES / 10 && done < TRACES * 9 / 10, "%u", done);
}

Test(end_blocks, of_destroyed_heaps_are_right_with_errors)
{
    const struct faults faults = {.destruction = 10, .other_heap = 2, .overlap = 20, .error = 1};
    unsigned done = compare_all(&faults);
    cr_assert(done > TRACES / 10 && done < TRACES * 9 / 10, "%u", done);
}

Test(end_blocks, are_found_behind_a_call_that_never_returned)
{
    const struct faults faults = {.never = 10};
    cr_assert_eq(compare_all(&faults), TRACES);
}

Test(end_blocks, are_not_known_with_lost_events)
{
    const struct faults faults = {.loss = 10};
    unsigned done = compare_all(&faults);
    cr_assert(done > TRACES / 10 && done < TRACES * 9 / 10, "%u", done);
}

Test(end_blocks, of_nested_heaps_are_left_to_the_replay)
{
    const struct faults faults = {.has_parent = true};
    cr_assert_eq(compare_all(&faults), 0);
}

Test(end_blocks, are_right_with_all_faults_at_once)
{
    const struct faults faults = {
        .other_heap = 100, .destruction = 5, .error = 50, .never = 5, .loss = 1, .overlap = 50};
    cr_assert_lt(compare_all(&faults), TRACES / 2);
}

/* Returns whether blocks at such distances, in turn of so many heaps, were found backwards. */
static bool compare_distant(uint64_t distance, uint64_t heaps)
{
    static struct random_trace trace;
    const struct faults none = {.overlap = 0};
    ttd_id id;
    open_trace(&trace, 1, &none);
    for (uint64_t i = HEAPS; i < heaps; i++) {
        struct ttd_heap heap = {.handle = i};
        cr_assert_eq(ttd_writer_heap(trace.writer, &heap, &id), TTD_OK);
    }
    for (uint64_t i = 1; i <= 10000; i++) {
        struct ttd_event event = {.action = TTD_ACTION_ALLOC,
                                  .thread = 1,
                                  .heap = (ttd_id)(1 + i % heaps),
                                  .api = TTD_API_MALLOC,
                                  .address = i * distance,
                                  .result = 1};
        set_times(&trace, &event);
        write_event(&trace, &event);
    }
    struct ttd_reader *reader = close_trace(&trace);
    bool is_done = compare(reader, trace.written);
    ttd_reader_close(reader);
    ttd_memory_output_free(&trace.file);
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

static void write_simple(struct random_trace *trace, uint8_t action, ttd_id heap, uint64_t address)
{
    struct ttd_event event = {.action = action,
                              .thread = 1,
                              .heap = heap,
                              .api = action == TTD_ACTION_FREE ? TTD_API_FREE : TTD_API_MALLOC,
                              .address = action == TTD_ACTION_FREE ? 0 : address,
                              .base_address = action == TTD_ACTION_FREE ? address : 0,
                              .result = 1};
    set_times(trace, &event);
    write_event(trace, &event);
}

/* More addresses than the number of a place can reach. */
#define FAR 300

/* A chunk spells an address out twice, each time for another heap; the next one releases it. */
Test(end_blocks, of_another_heap_at_an_address_are_right)
{
    static struct random_trace trace;
    struct ttd_writer_options options = ttd_writer_options_default();
    const struct faults none = {.overlap = 0};
    options.events_per_chunk = 2 * FAR + 3;
    trace = (struct random_trace){.now = {.sequence = 1}};
    open_sized_trace(&trace, 1, &none, &options);
    write_simple(&trace, TTD_ACTION_ALLOC, 1, 0x1000);
    write_simple(&trace, TTD_ACTION_FREE, 1, 0x1000);
    for (uint64_t i = 0; i < FAR; i++)
        write_simple(&trace, TTD_ACTION_ALLOC, 1, 0x2000 + 16 * i);
    for (uint64_t i = 0; i < FAR; i++)
        write_simple(&trace, TTD_ACTION_FREE, 1, 0x2000 + 16 * i);
    write_simple(&trace, TTD_ACTION_ALLOC, 2, 0x1000);
    write_simple(&trace, TTD_ACTION_FREE, 2, 0x1000);
    struct ttd_reader *reader = close_trace(&trace);
    cr_assert_not(compare(reader, trace.written));
    ttd_reader_close(reader);
    ttd_memory_output_free(&trace.file);
}
