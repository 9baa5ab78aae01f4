/* SPDX-License-Identifier: MIT */
/*
 * Chunks of events that are netted, each by itself and in several threads, lead to the blocks, the
 * counts, the wall times and the usage that a replay of every event finds. The input is a trace, or
 * chooses the calls of one: few addresses in two heaps, in chunks of a few events.
 */
#include "../target.h"

#include <stdlib.h>

#include "support/heap/random_calls.h"
#include "support/heap/usage_difference.h"
#include "travel/end_blocks.h"
#include "travel/heap_cursor.h"
#include "travel/replay_to.h"

#define ADDRESSES_MAX 12
#define CHUNK_MAX     5
#define STEPS_MAX     400
#define THREADS       3

/* ---- The wall times ---- */

/* The times that a net lists, as the events of its chunk pass. */
struct times {
    struct ttd_netter *netter;
    struct ttd_netted netted;
    size_t passed;
    uint64_t chunk;
    bool is_netted;
};

static void net_chunk(struct times *times, const struct ttd_chunk *chunk)
{
    target_require(!times->is_netted || times->passed == times->netted.time_count,
                   "each time is an event's");
    enum ttd_status status = ttd_netter_net(times->netter, chunk, NULL, &times->netted, NULL);
    target_require(status == TTD_OK || status == TTD_ERROR_CORRUPT, "status of netting");
    times->is_netted = status == TTD_OK;
    times->chunk = chunk->offset;
    times->passed = 0;
}

static void pass_event(struct times *times, const struct ttd_event *event)
{
    const struct ttd_net_time *next = &times->netted.times[times->passed];
    if (times->passed < times->netted.time_count && next->wall_time == event->wall_time &&
        ttd_position_compare(next->position, ttd_event_position(event)) == 0)
        times->passed++;
    target_require(times->passed &&
                       times->netted.times[times->passed - 1].wall_time == event->wall_time,
                   "each change of the time is listed");
}

/* A hook of the replay. */
static enum ttd_status see_batch(void *context, const struct ttd_batch *batch)
{
    struct times *times = context;
    if (batch->kind != TTD_KIND_EVENTS)
        return TTD_OK;
    if (batch->chunk.offset != times->chunk)
        net_chunk(times, &batch->chunk);
    for (size_t i = 0; i < batch->count && times->is_netted; i++)
        pass_event(times, &batch->u.events[i]);
    return TTD_OK;
}

/* ---- Both ways ---- */

static void check_nets(struct ttd_reader *reader, const struct heap_replay *expected,
                       uint64_t threads)
{
    struct heap_trace trace = {.reader = reader, .threads = threads};
    struct heap_replay replay;
    struct ttd_error error;
    struct end_blocks found;
    target_require(heap_replay_init(&replay, NULL) == TTD_OK, "memory");
    target_require(heap_end_blocks_find(&replay, &trace, ttd_position_max(), &found, &error) ==
                       TTD_OK,
                   "status of the nets");
    if (found.is_done) {
        const char *difference = random_calls_difference(&replay, expected);
        target_require(!difference, difference);
        target_require(ttd_reader_is_intact(reader), "nets are of an intact trace");
    }
    heap_replay_free(&replay);
}

/* A snapshot's position: the way there is netted too, and followed by a replay. */
static void check_midway(struct ttd_reader *reader, struct ttd_position to)
{
    struct heap_route plain = {.to = to}, netted = {.to = to, .wants_blocks_only = true};
    struct heap_trace trace = {.reader = reader, .threads = 1};
    struct heap_arrival expected, arrival;
    struct ttd_error error;
    enum ttd_status status = heap_replay_to(&expected, &trace, &plain, &error);
    target_require(heap_replay_to(&arrival, &trace, &netted, &error) == status, "status midway");
    if (status == TTD_OK) {
        const char *difference =
            random_calls_difference(&arrival.cursor.replay, &expected.cursor.replay);
        target_require(!difference, difference);
    }
    heap_arrival_free(&arrival);
    heap_arrival_free(&expected);
}

/* Usage by sums of chunks, and by single calls. */
static void check_usage(struct ttd_reader *reader, uint64_t threads)
{
    const struct heap_usage_options options = {.order = HEAP_RANK_BY_STACK};
    struct heap_trace summed = {.reader = reader, .threads = threads};
    struct heap_trace replayed = {.reader = reader, .is_checked = true};
    struct heap_usage usage, expected;
    struct ttd_error error;
    enum ttd_status status = heap_usage_find(&replayed, &options, &expected, &error);
    target_require(heap_usage_find(&summed, &options, &usage, &error) == status, "status of usage");
    if (status != TTD_OK)
        return;
    const char *difference = usage_difference(&usage, &expected);
    target_require(!difference, difference);
    heap_usage_free(&usage);
    heap_usage_free(&expected);
}

static void check(struct ttd_reader *reader)
{
    struct times times = {.chunk = UINT64_MAX};
    struct heap_trace trace = {.reader = reader, .hook = {.context = &times, .batch = see_batch}};
    struct heap_cursor cursor;
    struct ttd_error error;
    target_require(ttd_netter_open(reader, &times.netter) == TTD_OK, "memory");
    target_require(heap_cursor_init(&cursor, &trace, HEAP_CURSOR_KINDS, NULL) == TTD_OK, "memory");
    enum ttd_status status = heap_cursor_seek(&cursor, ttd_position_max(), &error);
    for (uint64_t threads = 1; threads <= THREADS && status == TTD_OK; threads += THREADS - 1)
        check_nets(reader, &cursor.replay, threads);
    if (status == TTD_OK)
        check_usage(reader, THREADS);
    struct ttd_position to = cursor.replay.position;
    heap_cursor_free(&cursor);
    to.steps -= to.steps / 4;
    if (status == TTD_OK)
        check_midway(reader, to);
    ttd_netter_close(times.netter);
}

/* ---- Traces ---- */

static struct ttd_reader *open_trace(const uint8_t *bytes, size_t size)
{
    struct ttd_input input = target_input(bytes, size);
    struct ttd_reader_options options = ttd_reader_options_default();
    options.tolerant = true;
    struct ttd_reader *reader = NULL;
    return ttd_reader_open(&input, &options, &target_allocator, &reader, NULL) == TTD_OK ? reader
                                                                                         : NULL;
}

static unsigned choose_fault(struct entropy *entropy)
{
    static const unsigned thousandths[] = {0, 0, 5, 50, 200};
    return thousandths[entropy_pick(entropy, 5)];
}

static struct random_faults choose_faults(struct entropy *entropy)
{
    struct random_faults faults = {.other_heap = choose_fault(entropy),
                                   .destruction = choose_fault(entropy),
                                   .error = choose_fault(entropy),
                                   .never = choose_fault(entropy),
                                   .early = choose_fault(entropy),
                                   .overlap = choose_fault(entropy),
                                   .oddity = choose_fault(entropy),
                                   .clock = choose_fault(entropy)};
    unsigned choice = entropy_pick(entropy, 16);
    faults.has_halves = choice & 1;
    faults.has_parent = choice == 2;
    faults.loss = choice == 4 ? 5 : 0;
    return faults;
}

static void write_trace(struct random_calls *calls, const uint8_t *bytes, size_t size)
{
    struct entropy entropy = {.data = bytes, .size = size};
    struct random_faults faults = choose_faults(&entropy);
    size_t addresses = 1 + entropy_pick(&entropy, ADDRESSES_MAX);
    uint32_t events_per_chunk = 1 + entropy_pick(&entropy, CHUNK_MAX);
    target_require(random_calls_open(calls, entropy, &faults, addresses, events_per_chunk), "open");
    for (int i = 0; i < STEPS_MAX && calls->entropy.size; i++)
        target_require(random_calls_step(calls), "a call can be written");
    target_require(random_calls_close(calls), "close");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct random_calls calls;
    uint8_t *bytes = target_copy(data, size);
    struct ttd_reader *reader = open_trace(bytes, size);
    bool is_written = !reader;
    if (is_written) {
        write_trace(&calls, bytes, size);
        reader = open_trace(calls.file.data, calls.file.size);
        target_require(reader != NULL, "what was written can be read");
    }
    check(reader);
    ttd_reader_close(reader);
    if (is_written)
        ttd_memory_output_free(&calls.file);
    free(bytes);
    return 0;
}
