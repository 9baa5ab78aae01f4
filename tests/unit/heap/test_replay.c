/* SPDX-License-Identifier: MIT */
/* The state at a position: that of a model that is too simple to be wrong. */
#include <criterion/criterion.h>

#include "heap/replay.h"
#include "support/heap/heap_model.h"

#define TRACES 6000

static void expect_peak(const struct heap_model *expected, const struct heap_peak *peak)
{
    struct heap_sum bytes = heap_model_bytes(expected);
    cr_assert_eq(peak->bytes.high, bytes.high);
    cr_assert_eq(peak->bytes.low, bytes.low);
    if (!bytes.high && !bytes.low)
        return;
    cr_assert_eq(ttd_position_compare(peak->position, expected->position), 0);
    cr_assert_eq(peak->blocks, heap_model_outer_count(expected));
}

/* The next events as a batch of random size, which ends where the chunk does. */
static size_t next_batch_size(struct entropy *entropy, size_t chunk_size, size_t next, size_t count)
{
    size_t size = 1 + entropy_pick(entropy, 5);
    size_t left_of_chunk = (next / chunk_size + 1) * chunk_size - next;
    size = size < count - next ? size : count - next;
    return size < left_of_chunk ? size : left_of_chunk;
}

/* Goes to ever later positions, giving events in batches of random size, and compares at each. */
static void replay_and_compare(struct entropy *entropy, struct heap_replay *replay,
                               const struct ttd_event *events, size_t count)
{
    static struct heap_model states[HEAP_MODEL_TICKS];
    heap_model_run(states, events, count);
    size_t chunk_size = 1 + entropy_pick(entropy, HEAP_MODEL_EVENTS_MAX);
    size_t next = 0;
    for (unsigned tick = 0; tick < HEAP_MODEL_TICKS; tick += 1 + entropy_pick(entropy, 3)) {
        size_t applied = 0;
        size_t size = 0;
        for (; next < count && applied == size; next += applied) {
            size = next_batch_size(entropy, chunk_size, next, count);
            struct ttd_batch batch = heap_model_batch(next / chunk_size, events + next, size);
            cr_assert_eq(heap_replay_apply(replay, &batch, heap_model_at(tick), &applied), TTD_OK);
        }
        cr_assert_eq(heap_replay_settle(replay, heap_model_at(tick)), TTD_OK);
        heap_model_expect(&states[tick], replay);
        struct heap_peak peak = heap_replay_peak(replay);
        expect_peak(heap_model_peak(states, tick + 1), &peak);
    }
}

static void check_random_trace(uint64_t seed, unsigned shift_of_sizes)
{
    struct entropy entropy = entropy_of_seed(seed);
    struct ttd_event events[HEAP_MODEL_EVENTS_MAX];
    struct heap_replay replay;
    size_t count = heap_model_events(&entropy, events);
    for (size_t i = 0; i < count; i++)
        events[i].size <<= shift_of_sizes;
    cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);
    heap_model_learn(&replay.live.parents);
    replay_and_compare(&entropy, &replay, events, count);
    heap_replay_free(&replay);
}

Test(replay, agrees_with_the_model_at_every_position)
{
    for (uint64_t seed = 1; seed < TRACES; seed++)
        check_random_trace(seed, 0);
}

Test(replay, agrees_with_the_model_where_sums_exceed_64_bits)
{
    for (uint64_t seed = 1; seed < TRACES / 4; seed++)
        check_random_trace(seed, 57);
}

/* ---- Addresses of a chunk ---- */

Test(replay, refuses_a_batch_whose_predecessors_are_missing)
{
    const uint64_t address = 0x10;
    struct ttd_event event = heap_model_call(0, TTD_ACTION_FREE, address, 0);
    event.base_ordinal = 3;
    struct ttd_batch batch = heap_model_calls(&event, 1, &address, 1);
    batch.first_ordinal = 3;
    struct heap_replay replay;
    size_t applied;
    cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);

    enum ttd_status status = heap_replay_apply(&replay, &batch, ttd_position_max(), &applied);

    cr_assert_eq(status, TTD_ERROR_ARGUMENT);
    heap_replay_free(&replay);
}

/* Numbers of chunks may be wrong; then their ordinals are still their own. */
Test(replay, tells_chunks_of_the_same_number_apart_by_offset)
{
    const uint64_t addresses[] = {0x10, 0x20};
    struct heap_replay replay;
    cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);

    for (unsigned i = 0; i < 2; i++) {
        struct ttd_event event = heap_model_call(i, TTD_ACTION_ALLOC, addresses[i], 8);
        struct ttd_batch batch = heap_model_calls(&event, 1, &addresses[i], 1);
        batch.chunk.number = UINT64_MAX;
        batch.chunk.offset = 64 * (i + 1);
        size_t applied;
        cr_assert_eq(heap_replay_apply(&replay, &batch, ttd_position_max(), &applied), TTD_OK);
    }

    cr_assert_eq(replay.counts.overlaps, 0);
    cr_assert_not_null(heap_live_find(&replay.live, addresses[0], TTD_NONE));
    cr_assert_not_null(heap_live_find(&replay.live, addresses[1], TTD_NONE));
    heap_replay_free(&replay);
}

#define CHUNK_BLOCKS 10000
#define CHUNK_MORE   200
#define CHUNK_FREED  (CHUNK_BLOCKS - CHUNK_BLOCKS / 6)

/* A long chunk: its events, and the addresses that it spells out, by ordinal. */
struct long_chunk {
    struct ttd_event events[CHUNK_BLOCKS];
    uint64_t addresses[CHUNK_BLOCKS + CHUNK_MORE];
    unsigned tick;
};

/* Adds a call at the address of that ordinal. */
static void set_call(struct long_chunk *chunk, size_t index, enum ttd_action action,
                     uint32_t ordinal)
{
    struct ttd_event *event = &chunk->events[index];
    *event = heap_model_call(chunk->tick++, action, chunk->addresses[ordinal], 8);
    event->address_ordinal = ordinal;
    event->base_ordinal = ordinal;
}

/* Gives the first events to the replay, with the addresses from `first` to before `end`. */
static void apply_calls(struct heap_replay *replay, const struct long_chunk *chunk, size_t count,
                        uint32_t first, uint32_t end)
{
    struct ttd_batch batch =
        heap_model_calls(chunk->events, count, chunk->addresses + first, end - first);
    size_t applied;
    batch.first_ordinal = first;
    cr_assert_eq(heap_replay_apply(replay, &batch, ttd_position_max(), &applied), TTD_OK);
    cr_assert_eq(applied, count);
}

static void allocate_all_and_free_most(struct heap_replay *replay, struct long_chunk *chunk)
{
    for (uint32_t i = 0; i < CHUNK_BLOCKS + CHUNK_MORE; i++)
        chunk->addresses[i] = 0x1000 + 16 * (uint64_t)i;
    for (uint32_t i = 0; i < CHUNK_BLOCKS; i++)
        set_call(chunk, i, TTD_ACTION_ALLOC, i);
    apply_calls(replay, chunk, CHUNK_BLOCKS, 0, CHUNK_BLOCKS);
    for (uint32_t i = 0; i < CHUNK_FREED; i++)
        set_call(chunk, i, TTD_ACTION_FREE, i);
    apply_calls(replay, chunk, CHUNK_FREED, 0, CHUNK_BLOCKS);
}

/* Entries that are not live are swept up between chunks only. */
Test(replay, finds_the_addresses_of_a_chunk_to_its_end)
{
    static struct long_chunk chunk;
    struct heap_replay replay;
    cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);
    allocate_all_and_free_most(&replay, &chunk);
    cr_assert(heap_live_is_littered(&replay.live));

    for (uint32_t i = 0; i < CHUNK_MORE; i++) {
        set_call(&chunk, i, TTD_ACTION_ALLOC, CHUNK_BLOCKS + i);
        set_call(&chunk, CHUNK_MORE + i, TTD_ACTION_ALLOC, CHUNK_FREED - 1 - i);
    }
    apply_calls(&replay, &chunk, 2 * CHUNK_MORE, CHUNK_BLOCKS - 1, CHUNK_BLOCKS + CHUNK_MORE);

    cr_assert_eq(replay.live.count, CHUNK_BLOCKS - CHUNK_FREED + 2 * CHUNK_MORE);
    for (uint32_t i = 0; i < 2 * CHUNK_MORE; i++)
        cr_assert_not_null(heap_live_find(&replay.live, chunk.events[i].address, TTD_NONE));
    heap_replay_free(&replay);
}
