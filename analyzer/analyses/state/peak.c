/* SPDX-License-Identifier: MIT */
#include "analyses/state/peak.h"

#include "analyses/state/state.h"

/* Adds a block that was live at the peak, unless it lies in a block of another heap: its bytes are
 * counted there. */
static enum ttd_status add(struct heap_peak_state *peak_state, const struct heap_replay *replay,
                           const struct heap_islands *islands, const struct heap_block *block,
                           bool is_kept)
{
    if (heap_parents_get(&replay->live.parents, block->heap) != TTD_NONE ||
        !heap_islands_want_block(islands, block))
        return TTD_OK;
    return heap_groups_add(is_kept ? &peak_state->runtime.groups : &peak_state->groups, block);
}

/* Collects the blocks that were live at the peak, after the replay has reached the end. These are
 * the blocks live at the end that were acquired by then, and those that the replay has kept because
 * they were released after the peak. */
static enum ttd_status collect(struct heap_peak_state *peak_state, const struct heap_kept *kept,
                               const struct heap_islands *islands, const struct heap_replay *replay)
{
    const struct heap_block_copies *ended = &replay->ended_since_peak;
    size_t cursor = 0;
    const struct heap_block *block;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(&replay->live, &cursor))) {
        /* A block that is live at the end belongs to a runtime if its address is listed. */
        if (ttd_position_compare(block->allocated, peak_state->peak.position) <= 0)
            status = add(peak_state, replay, islands, block, heap_kept_may_have(kept, block));
    }
    for (size_t i = 0; i < ended->count && status == TTD_OK; i++)
        status = add(peak_state, replay, islands, &ended->blocks[i],
                     heap_kept_has_stack(kept, &ended->blocks[i]));
    return status;
}

static enum ttd_status replay_all(const struct heap_trace *trace, const struct heap_kept *kept,
                                  const struct heap_islands *islands,
                                  struct heap_peak_state *peak_state, struct ttd_error *error)
{
    struct heap_arrival arrival;
    struct heap_route route = {.to = ttd_position_max(), .keeps_peak = true};
    struct heap_replay *replay = &arrival.cursor.replay;
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    if (status == TTD_OK)
        status = heap_replay_end_peak(replay);
    peak_state->peak = replay->peak;
    if (status == TTD_OK)
        status = collect(peak_state, kept, islands, replay);
    heap_arrival_end(&arrival, &peak_state->outcome);
    return status;
}

static enum ttd_status find(const struct heap_trace *trace, const struct heap_islands *islands,
                            struct heap_peak_state *peak_state, struct ttd_error *error)
{
    struct heap_kept kept;
    enum ttd_status status =
        heap_kept_read(&kept, trace, peak_state->groups.split, &peak_state->runtime, error);
    if (status == TTD_OK)
        status = replay_all(trace, &kept, islands, peak_state, error);
    heap_kept_free(&kept);
    if (status == TTD_OK)
        status = heap_groups_sort(&peak_state->groups);
    return status == TTD_OK ? heap_groups_sort(&peak_state->runtime.groups) : status;
}

/* Goes to the peak that the index names, and separately to the end for the outcome. */
static enum ttd_status look_up(const struct heap_trace *trace, struct heap_peak_state *peak_state,
                               struct ttd_error *error)
{
    struct heap_arrival arrival;
    struct heap_route route = {.to = ttd_position_max()};
    struct heap_state_options options = {.at = trace->keyframes->peak.position,
                                         .split = peak_state->groups.split,
                                         .tells_runtime = true};
    struct heap_state state;
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    heap_arrival_end(&arrival, &peak_state->outcome);
    peak_state->peak = trace->keyframes->peak;
    if (status == TTD_OK)
        status = heap_state_find(trace, &options, &state, error);
    if (status != TTD_OK)
        return status;
    struct heap_groups *by_stack = &state.tables.by[HEAP_BY_STACK];
    heap_groups_free(&peak_state->groups);
    peak_state->groups = *by_stack;
    *by_stack = (struct heap_groups){.count = 0};
    peak_state->runtime = state.runtime;
    state.runtime = (struct heap_runtime){.list = HEAP_RUNTIME_UNKNOWN};
    heap_state_free(&state);
    return TTD_OK;
}

static void begin(struct heap_peak_state *peak_state, enum heap_split split)
{
    *peak_state = (struct heap_peak_state){.outcome = {.truncated = false}};
    heap_groups_init(&peak_state->groups);
    peak_state->groups.split = split;
}

/* Whether the state at the peak that the index records has the totals that it records: an index is
 * not trusted. */
static bool is_right(const struct heap_peak_state *peak_state)
{
    const struct heap_groups *kept = &peak_state->runtime.groups;
    return peak_state->groups.blocks + kept->blocks == peak_state->peak.blocks &&
           heap_add(peak_state->groups.bytes, kept->bytes) ==
               heap_sum_value(peak_state->peak.bytes);
}

enum ttd_status heap_peak_state_find(const struct heap_trace *trace,
                                     const struct heap_peak_state_options *options,
                                     struct heap_peak_state *peak_state, struct ttd_error *error)
{
    /* The sums of the index are of all blocks, and could not be compared with a part of them. */
    bool is_known = trace->keyframes && trace->keyframes->has_peak && !options->islands;
    begin(peak_state, options->split);
    enum ttd_status status = is_known ? look_up(trace, peak_state, error)
                                      : find(trace, options->islands, peak_state, error);
    if (status == TTD_OK && is_known && !is_right(peak_state)) {
        heap_peak_state_free(peak_state);
        begin(peak_state, options->split);
        status = find(trace, options->islands, peak_state, error);
    }
    if (status != TTD_OK)
        heap_peak_state_free(peak_state);
    return status;
}

void heap_peak_state_free(struct heap_peak_state *peak_state)
{
    heap_groups_free(&peak_state->groups);
    heap_groups_free(&peak_state->runtime.groups);
}
