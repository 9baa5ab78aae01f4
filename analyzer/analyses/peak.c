/* SPDX-License-Identifier: MIT */
#include "analyses/peak.h"

#include "analyses/state.h"

/* Adds a block of the peak that is still live at the end: one of a runtime, if the trace names it.
 */
static enum ttd_status add_live(struct heap_peak_state *found, const struct heap_kept *kept,
                                const struct heap_block *block)
{
    if (ttd_position_compare(block->allocated, found->peak.position) > 0)
        return TTD_OK;
    bool is_kept = heap_kept_may_have(kept, block);
    return heap_groups_add(is_kept ? &found->runtime.groups : &found->groups, block);
}

/* The blocks that were live at the peak of a replay that is over. */
static enum ttd_status collect(struct heap_peak_state *found, const struct heap_kept *kept,
                               const struct heap_replay *replay)
{
    const struct heap_block_copies *ended = &replay->ended_since_peak;
    size_t cursor = 0;
    const struct heap_block *block;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(&replay->live, &cursor)))
        status = add_live(found, kept, block);
    for (size_t i = 0; i < ended->count && status == TTD_OK; i++) {
        bool is_kept = heap_kept_has_stack(kept, &ended->blocks[i]);
        status =
            heap_groups_add(is_kept ? &found->runtime.groups : &found->groups, &ended->blocks[i]);
    }
    return status;
}

static enum ttd_status replay_all(const struct heap_trace *trace, const struct heap_kept *kept,
                                  struct heap_peak_state *found, struct ttd_error *error)
{
    struct heap_arrival arrival;
    struct heap_route route = {.to = ttd_position_max(), .keeps_peak = true};
    struct heap_replay *replay = &arrival.cursor.replay;
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    if (status == TTD_OK)
        status = heap_replay_end_peak(replay);
    found->peak = replay->peak;
    if (status == TTD_OK)
        status = collect(found, kept, replay);
    heap_arrival_end(&arrival, &found->outcome);
    return status;
}

static enum ttd_status find(const struct heap_trace *trace, struct heap_peak_state *found,
                            struct ttd_error *error)
{
    struct heap_kept kept;
    enum ttd_status status =
        heap_kept_read(&kept, trace, found->groups.split, &found->runtime, error);
    if (status == TTD_OK)
        status = replay_all(trace, &kept, found, error);
    heap_kept_free(&kept);
    if (status == TTD_OK)
        status = heap_groups_sort(&found->groups);
    return status == TTD_OK ? heap_groups_sort(&found->runtime.groups) : status;
}

/* The same where keyframes know the peak. */
static enum ttd_status look_up(const struct heap_trace *trace, struct heap_peak_state *found,
                               struct ttd_error *error)
{
    struct heap_arrival arrival;
    struct heap_route route = {.to = ttd_position_max()};
    struct heap_state_options options = {
        .at = trace->keyframes->peak.position, .split = found->groups.split, .tells_runtime = true};
    struct heap_state state;
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    heap_arrival_end(&arrival, &found->outcome);
    found->peak = trace->keyframes->peak;
    if (status == TTD_OK)
        status = heap_state_find(trace, &options, &state, error);
    if (status != TTD_OK)
        return status;
    struct heap_groups *by_stack = &state.tables.by[HEAP_BY_STACK];
    heap_groups_free(&found->groups);
    found->groups = *by_stack;
    *by_stack = (struct heap_groups){.count = 0};
    found->runtime = state.runtime;
    state.runtime = (struct heap_runtime){.told = HEAP_RUNTIME_UNKNOWN};
    heap_state_free(&state);
    return TTD_OK;
}

static void begin(struct heap_peak_state *found, enum heap_split split)
{
    *found = (struct heap_peak_state){.outcome = {.truncated = false}};
    heap_groups_init(&found->groups);
    found->groups.split = split;
}

/* An index is not trusted: whether the state at its peak is as it says. */
static bool is_right(const struct heap_peak_state *found)
{
    const struct heap_groups *kept = &found->runtime.groups;
    return found->groups.blocks + kept->blocks == found->peak.blocks &&
           heap_add(found->groups.bytes, kept->bytes) == heap_sum_value(found->peak.bytes);
}

enum ttd_status heap_peak_state_find(const struct heap_trace *trace,
                                     const struct heap_peak_state_options *options,
                                     struct heap_peak_state *found, struct ttd_error *error)
{
    bool is_known = trace->keyframes && trace->keyframes->has_peak;
    begin(found, options->split);
    enum ttd_status status = is_known ? look_up(trace, found, error) : find(trace, found, error);
    if (status == TTD_OK && is_known && !is_right(found)) {
        heap_peak_state_free(found);
        begin(found, options->split);
        status = find(trace, found, error);
    }
    if (status != TTD_OK)
        heap_peak_state_free(found);
    return status;
}

void heap_peak_state_free(struct heap_peak_state *found)
{
    heap_groups_free(&found->groups);
    heap_groups_free(&found->runtime.groups);
}
