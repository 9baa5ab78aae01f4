/* SPDX-License-Identifier: MIT */
#include "support/heap/random_calls.h"

#define HEAPS   RANDOM_CALLS_HEAPS
#define THREADS 3
#define STACKS  5

/* No address. */
#define NOWHERE SIZE_MAX

/* Two numbers below 256, of which mostly one is enough: bytes of an input go far. */
static bool has_fault(struct random_calls *calls, unsigned thousandths)
{
    if (!thousandths)
        return false;
    unsigned twenties = 20 * entropy_pick(&calls->entropy, 50);
    return twenties < thousandths && twenties + entropy_pick(&calls->entropy, 20) < thousandths;
}

/* Some are odd, some share all but their highest bits. */
static uint64_t address_of(size_t index)
{
    return UINT64_C(0x10000) + 16 * index + (index % 5 == 0 ? index % 16 : 0) +
           (index % 7 == 0 ? UINT64_C(0xE) << 60 : 0);
}

static bool define(struct random_calls *calls)
{
    ttd_id id;
    bool is_good = true;
    for (unsigned i = 0; i < THREADS; i++) {
        struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .os_id = i};
        is_good &= ttd_writer_thread(calls->writer, &thread, &id) == TTD_OK;
    }
    for (unsigned i = 0; i < HEAPS; i++) {
        struct ttd_heap heap = {.handle = i};
        is_good &= ttd_writer_heap(calls->writer, &heap, &id) == TTD_OK;
    }
    struct ttd_heap_parent parent = {.heap = 2, .parent = 1};
    if (calls->faults.has_parent)
        is_good &= ttd_writer_heap_parent(calls->writer, &parent) == TTD_OK;
    for (unsigned i = 0; i < STACKS; i++)
        is_good &= ttd_writer_stack(calls->writer, 0, 0, i, &id) == TTD_OK;
    return is_good;
}

bool random_calls_open(struct random_calls *calls, struct entropy entropy,
                       const struct random_faults *faults, size_t addresses,
                       uint32_t events_per_chunk)
{
    struct ttd_trace header = {.trace_id = 1, .time_unit = 1, .pointer_size = 8};
    struct ttd_writer_options options = ttd_writer_options_default();
    struct ttd_output output;
    *calls = (struct random_calls){
        .entropy = entropy, .faults = *faults, .now = {.sequence = 1}, .addresses = addresses};
    options.events_per_chunk = events_per_chunk;
    return ttd_output_memory(&calls->file, NULL, &output) == TTD_OK &&
           ttd_writer_open(&output, &header, &options, NULL, &calls->writer, NULL) == TTD_OK &&
           define(calls);
}

bool random_calls_close(struct random_calls *calls)
{
    struct ttd_end end = {.reason = TTD_END_REASON_EXITED};
    return ttd_writer_close(calls->writer, &end, NULL) == TTD_OK;
}

/* ---- Calls ---- */

static ttd_id heap_of(const struct random_calls *calls, size_t index)
{
    return 1 + (ttd_id)(index * HEAPS / calls->addresses);
}

/* Picks an address that is live, or not; NOWHERE if there is none. */
static size_t pick(struct random_calls *calls, bool is_live, ttd_id heap)
{
    is_live ^= has_fault(calls, calls->faults.error);
    bool is_early = has_fault(calls, calls->faults.early);
    size_t first = entropy_pick(&calls->entropy, (unsigned)calls->addresses);
    for (size_t i = 0; i < calls->addresses; i++) {
        size_t index = (first + i) % calls->addresses;
        if (calls->is_live[index] == is_live &&
            (!calls->faults.has_halves || heap_of(calls, index) == heap) &&
            (is_early || ttd_position_compare(calls->ready[index], calls->now) <= 0))
            return index;
    }
    return NOWHERE;
}

static ttd_id pick_heap(struct random_calls *calls)
{
    if (calls->faults.has_halves)
        return 1 + entropy_pick(&calls->entropy, HEAPS);
    return has_fault(calls, calls->faults.other_heap) ? 2 * entropy_pick(&calls->entropy, 2) : 1;
}

static void set_live(struct random_calls *calls, size_t index, bool is_live,
                     struct ttd_position position)
{
    if (index == NOWHERE)
        return;
    calls->is_live[index] = is_live;
    calls->ready[index] = position;
}

/* Sets the times of a call, and the present. */
static void set_times(struct random_calls *calls, struct ttd_event *event)
{
    calls->now.sequence += !entropy_pick(&calls->entropy, 10);
    event->time_start = (struct ttd_position){calls->now.sequence, calls->now.steps + 1};
    event->time_end = (struct ttd_position){calls->now.sequence, calls->now.steps + 2};
    calls->now = event->time_end;
    if (event->action == TTD_ACTION_REALLOC && has_fault(calls, calls->faults.overlap)) {
        calls->now = event->time_start;
        event->time_end.steps += entropy_pick(&calls->entropy, 30);
    }
    if (has_fault(calls, calls->faults.never)) {
        event->time_end = ttd_position_invalid();
        event->result = 0;
        event->address = 0;
        calls->now = event->time_start;
    }
}

static void move_clock(struct random_calls *calls)
{
    unsigned step = entropy_pick(&calls->entropy, 100);
    if (step < 10 && calls->wall_time > step)
        calls->wall_time -= step;
    else
        calls->wall_time += step;
}

/* Sets what has no effect on blocks. */
static void set_odd(struct random_calls *calls, struct ttd_event *event)
{
    calls->wall_time += has_fault(calls, calls->faults.oddity);
    if (calls->faults.clock && has_fault(calls, calls->faults.clock))
        move_clock(calls);
    event->wall_time = calls->wall_time;
    if (has_fault(calls, calls->faults.oddity))
        event->flags = 1 + entropy_pick(&calls->entropy, 3);
    if (event->result && has_fault(calls, calls->faults.oddity))
        event->result = 2 + entropy_pick(&calls->entropy, 3);
}

bool random_calls_event(struct random_calls *calls, struct ttd_event *event)
{
    set_times(calls, event);
    set_odd(calls, event);
    calls->written++;
    return ttd_writer_event(calls->writer, event) == TTD_OK;
}

static uint8_t api_of(uint8_t action)
{
    return (uint8_t)(action == TTD_ACTION_FREE    ? TTD_API_FREE
                     : action == TTD_ACTION_ALLOC ? TTD_API_MALLOC
                                                  : TTD_API_REALLOC);
}

static bool write_call(struct random_calls *calls)
{
    static const uint8_t actions[] = {TTD_ACTION_ALLOC, TTD_ACTION_FREE, TTD_ACTION_REALLOC};
    struct entropy *entropy = &calls->entropy;
    struct ttd_event event = {.action = actions[entropy_pick(entropy, 3)],
                              .thread = 1 + entropy_pick(entropy, THREADS),
                              .stack = 1 + entropy_pick(entropy, STACKS),
                              .heap = pick_heap(calls),
                              .result = entropy_pick(entropy, 30) != 0};
    bool acquires = event.action != TTD_ACTION_FREE;
    bool releases = event.action == TTD_ACTION_FREE ||
                    (event.action == TTD_ACTION_REALLOC && entropy_pick(entropy, 4) != 0);
    size_t given = releases ? pick(calls, true, event.heap) : NOWHERE;
    bool stays = given != NOWHERE && entropy_pick(entropy, 2);
    size_t taken =
        acquires && event.result ? (stays ? given : pick(calls, false, event.heap)) : NOWHERE;
    if ((event.action == TTD_ACTION_FREE && given == NOWHERE) ||
        (acquires && event.result && taken == NOWHERE))
        return true;
    event.size = acquires ? 8 * entropy_pick(entropy, 9) : 0;
    event.base_address = given == NOWHERE ? 0 : address_of(given);
    event.previous_address = event.action == TTD_ACTION_REALLOC ? event.base_address : 0;
    event.address = taken == NOWHERE ? 0 : address_of(taken);
    event.api = api_of(event.action);
    bool is_written = random_calls_event(calls, &event);
    /* A release that never returned was one. */
    bool is_release = event.action == TTD_ACTION_FREE && !ttd_event_returned(&event);
    if (!event.result && !is_release)
        return is_written;
    set_live(calls, given, false, event.time_start);
    if (!is_release)
        set_live(calls, taken, true, event.time_end);
    return is_written;
}

static bool write_destruction(struct random_calls *calls)
{
    struct ttd_event event = {.action = TTD_ACTION_DESTROY,
                              .thread = 1,
                              .heap = 1 + entropy_pick(&calls->entropy, HEAPS),
                              .result = 1};
    bool is_written = random_calls_event(calls, &event);
    for (size_t i = 0; i < calls->addresses && calls->faults.has_halves; i++)
        calls->is_live[i] = calls->is_live[i] && heap_of(calls, i) != event.heap;
    return is_written;
}

/* A call that changes no block. */
static bool write_other(struct random_calls *calls)
{
    struct ttd_event event = {.action = TTD_ACTION_CREATE, .thread = 1, .heap = 1, .result = 1};
    event.reserve_size = entropy_pick(&calls->entropy, 3);
    return random_calls_event(calls, &event);
}

static bool write_loss(struct random_calls *calls)
{
    struct ttd_loss loss = {
        .reason = TTD_LOSS_OVERFLOW, .count = 1, .last_good = calls->now, .first_good = calls->now};
    return ttd_writer_loss(calls->writer, &loss) == TTD_OK;
}

bool random_calls_step(struct random_calls *calls)
{
    const struct random_faults *faults = &calls->faults;
    bool is_written = write_call(calls);
    if (has_fault(calls, faults->destruction))
        is_written &= write_destruction(calls);
    if (has_fault(calls, faults->oddity))
        is_written &= write_other(calls);
    if (has_fault(calls, faults->loss))
        is_written &= write_loss(calls);
    return is_written;
}

/* ---- The comparison ---- */

/* A trace of a seed. */

#define LARGE_STEP   16
#define EVENTS_LARGE 4000
#define EVENTS_SMALL 300
#define CHUNK_SMALL  60

bool random_calls_open_seed(struct random_calls *calls, uint64_t seed,
                            const struct random_faults *faults)
{
    struct entropy entropy = entropy_of_seed(seed);
    bool is_large = seed % LARGE_STEP == 0;
    uint32_t events_per_chunk = 1 + entropy_pick(&entropy, is_large ? EVENTS_LARGE : CHUNK_SMALL);
    return random_calls_open(calls, entropy, faults,
                             is_large ? RANDOM_CALLS_ADDRESSES_MAX : RANDOM_CALLS_ADDRESSES,
                             events_per_chunk);
}

struct ttd_reader *random_calls_read(struct random_calls *calls)
{
    struct ttd_reader_options options = ttd_reader_options_default();
    struct ttd_input input;
    struct ttd_reader *reader;
    options.tolerant = true;
    return random_calls_close(calls) &&
                   ttd_input_memory(calls->file.data, calls->file.size, NULL, &input) == TTD_OK &&
                   ttd_reader_open(&input, &options, NULL, &reader, NULL) == TTD_OK
               ? reader
               : NULL;
}

struct ttd_reader *random_calls_trace(struct random_calls *calls, uint64_t seed,
                                      const struct random_faults *faults)
{
    if (!random_calls_open_seed(calls, seed, faults))
        return NULL;
    unsigned count =
        entropy_pick(&calls->entropy, seed % LARGE_STEP == 0 ? EVENTS_LARGE : EVENTS_SMALL);
    for (unsigned i = 0; i < count; i++) {
        if (!random_calls_step(calls))
            return NULL;
    }
    return random_calls_read(calls);
}

static const char *block_difference(const struct heap_block *block,
                                    const struct heap_block *expected)
{
    if (!block)
        return "a live block";
    if (block->address != expected->address || block->heap != expected->heap)
        return "address or heap of a block";
    if (block->size != expected->size)
        return "size of a block";
    if (block->event != expected->event)
        return "event of a block";
    if (ttd_position_compare(block->allocated, expected->allocated) != 0)
        return "position of a block";
    if (block->thread != expected->thread)
        return "thread of a block";
    if (block->stack != expected->stack)
        return "stack of a block";
    return block->action != expected->action || block->api != expected->api ? "call of a block"
                                                                            : NULL;
}

static const char *count_difference(const struct heap_counts *counts,
                                    const struct heap_counts *expected)
{
    for (int action = 0; action <= TTD_ACTION_DESTROY; action++)
        if (counts->actions[action] != expected->actions[action])
            return "calls of an action";
    if (counts->events != expected->events)
        return "events";
    if (counts->failed != expected->failed)
        return "failed calls";
    if (counts->unfinished != expected->unfinished)
        return "unfinished calls";
    if (counts->overlaps != expected->overlaps)
        return "overlaps";
    return counts->unknown_releases != expected->unknown_releases ? "unknown releases" : NULL;
}

const char *random_calls_difference(const struct heap_replay *replay,
                                    const struct heap_replay *expected)
{
    size_t cursor = 0;
    const struct heap_block *block;
    const char *difference = NULL;
    if (replay->live.count != expected->live.count ||
        replay->live.outer_count != expected->live.outer_count)
        return "number of blocks";
    if (replay->live.bytes.low != expected->live.bytes.low ||
        replay->live.bytes.high != expected->live.bytes.high)
        return "bytes of blocks";
    while (!difference && (block = heap_live_each(&expected->live, &cursor)))
        difference =
            block_difference(heap_live_find(&replay->live, block->address, block->heap), block);
    if (!difference)
        difference = count_difference(&replay->counts, &expected->counts);
    if (!difference && ttd_position_compare(replay->position, expected->position) != 0)
        difference = "position";
    if (!difference && replay->next != expected->next)
        difference = "number of the next event";
    if (!difference && replay->queue.count != expected->queue.count)
        difference = "calls in flight";
    return difference;
}
