/* SPDX-License-Identifier: MIT */
/* A replay keeps the blocks that were live at the peak. */
#include <criterion/criterion.h>

#include "heap/replay.h"
#include "support/heap/heap_model.h"

#define TRACES 6000

static bool is_live(const struct heap_model *state, const struct heap_block *block)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->live[i]->number == block->event && state->live[i]->address == block->address)
            return true;
    return false;
}

/* Blocks that ended since the peak, and those that are still live and were allocated by then, are
 * together those that were live at it. */
static void expect_blocks_of_peak(const struct heap_model *expected,
                                  const struct heap_replay *replay)
{
    const struct heap_block_copies *ended = &replay->ended_since_peak;
    size_t found = ended->count;
    for (size_t i = 0; i < ended->count; i++)
        cr_assert(is_live(expected, &ended->blocks[i]));
    size_t cursor = 0;
    const struct heap_block *block;
    while ((block = heap_live_each(&replay->live, &cursor))) {
        if (ttd_position_compare(block->allocated, replay->peak.position) > 0)
            continue;
        cr_assert(is_live(expected, block));
        found++;
    }
    cr_assert_eq(found, expected->count);
}

static void replay_with_peak(struct heap_replay *replay, const struct ttd_batch *batch)
{
    size_t applied;
    cr_assert_eq(heap_replay_init(replay, NULL), TTD_OK);
    heap_model_learn(&replay->live.parents);
    heap_replay_keep_peak(replay);
    cr_assert_eq(heap_replay_apply(replay, batch, ttd_position_max(), &applied), TTD_OK);
    cr_assert_eq(heap_replay_settle(replay, ttd_position_max()), TTD_OK);
    cr_assert_eq(heap_replay_end_peak(replay), TTD_OK);
}

Test(replay_keep, has_the_blocks_that_were_live_at_the_peak)
{
    static struct heap_model states[HEAP_MODEL_TICKS];
    for (uint64_t seed = 1; seed < TRACES; seed++) {
        struct entropy entropy = entropy_of_seed(seed);
        struct ttd_event events[HEAP_MODEL_EVENTS_MAX];
        size_t count = heap_model_events(&entropy, events);
        heap_model_run(states, events, count);
        const struct heap_model *peak = heap_model_peak(states, HEAP_MODEL_TICKS);
        struct ttd_batch batch = heap_model_batch(1, events, count);
        struct heap_replay replay;

        replay_with_peak(&replay, &batch);

        cr_assert_eq(replay.peak.bytes.low, heap_model_bytes(peak).low);
        if (replay.peak.bytes.low)
            expect_blocks_of_peak(peak, &replay);
        heap_replay_free(&replay);
    }
}

/* A block that came and went at the first position was never live at one. */
Test(replay_keep, has_nothing_where_there_is_no_peak)
{
    const uint64_t address = 0x10;
    struct ttd_event events[] = {heap_model_call(0, TTD_ACTION_ALLOC, address, 100),
                                 heap_model_call(0, TTD_ACTION_FREE, address, 0),
                                 heap_model_call(2, TTD_ACTION_ALLOC, address, 0)};
    struct ttd_batch batch = heap_model_calls(events, 3, &address, 1);
    struct heap_replay replay;

    replay_with_peak(&replay, &batch);

    cr_assert_eq(replay.peak.bytes.low, 0);
    cr_assert_eq(replay.ended_since_peak.count, 0);
    heap_replay_free(&replay);
}
