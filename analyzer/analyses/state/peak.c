/* SPDX-License-Identifier: MIT */
#include "analyses/state/peak.h"

#include <stdlib.h>

#include "analyses/state/state.h"

struct peak_finder {
    struct heap_peak_state *state;
    struct heap_kept kept;
    const struct heap_islands *islands;
};

/* Adds a block that was live at the peak, unless it lies in a block of another heap: its bytes are
 * counted there. */
static enum ttd_status peak_add(const struct peak_finder *finder, const struct heap_replay *replay,
                                const struct heap_block *block, bool is_kept)
{
    struct heap_peak_state *state = finder->state;
    if (heap_parents_get(&replay->live.parents, block->heap) != TTD_NONE ||
        !heap_islands_want_block(finder->islands, block))
        return TTD_OK;
    return heap_groups_add(is_kept ? &state->runtime.groups : &state->groups, block);
}

/* Collects the blocks that were live at the peak, after the replay has reached the end. These are
 * the blocks live at the end that were acquired by then, and those that the replay has kept because
 * they were released after the peak. */
static enum ttd_status peak_collect(void *context, struct heap_arrival *arrival,
                                    struct ttd_error *error)
{
    struct peak_finder *finder = context;
    struct heap_peak_state *state = finder->state;
    struct heap_replay *replay = &arrival->cursor.replay;
    const struct heap_block_copies *ended = &replay->ended_since_peak;
    size_t cursor = 0;
    const struct heap_block *block;
    enum ttd_status status = heap_replay_end_peak(replay);
    (void)error;
    state->outcome = heap_arrival_outcome(arrival);
    state->peak = replay->peak;
    while (status == TTD_OK && (block = heap_live_each(&replay->live, &cursor))) {
        /* A block that is live at the end belongs to a runtime if its address is listed. */
        if (ttd_position_compare(block->allocated, state->peak.position) <= 0)
            status = peak_add(finder, replay, block, heap_kept_may_have(&finder->kept, block));
    }
    for (size_t i = 0; i < ended->count && status == TTD_OK; i++)
        status = peak_add(finder, replay, &ended->blocks[i],
                          heap_kept_has_stack(&finder->kept, &ended->blocks[i]));
    return status;
}

static void peak_begin(struct heap_peak_state *peak_state, enum heap_split split, uint64_t sample)
{
    *peak_state = (struct heap_peak_state){.outcome = {.truncated = false}};
    heap_groups_init(&peak_state->groups);
    peak_state->groups.split = split;
    peak_state->groups.sample = sample;
}

enum ttd_status heap_peak_state_watch(struct heap_peak_state *peak_state,
                                      const struct heap_peak_state_options *options,
                                      const struct heap_trace *trace, struct heap_pass *pass,
                                      struct ttd_error *error)
{
    peak_begin(peak_state, options->split, trace->choice.sample);
    struct peak_finder *finder = calloc(1, sizeof *finder);
    if (!finder)
        return TTD_ERROR_NO_MEMORY;
    peak_state->finder = finder;
    finder->state = peak_state;
    finder->islands = options->islands;
    struct heap_watcher watcher = {
        .observer.context = finder, .to = ttd_position_max(), .finish = peak_collect};
    pass->keeps_peak = true;
    heap_pass_add(pass, &watcher);
    return heap_kept_read(&finder->kept, trace, options->split, &peak_state->runtime, error);
}

enum ttd_status heap_peak_state_end(struct heap_peak_state *peak_state)
{
    if (peak_state->finder)
        heap_kept_free(&peak_state->finder->kept);
    free(peak_state->finder);
    peak_state->finder = NULL;
    enum ttd_status status = heap_groups_sort(&peak_state->groups);
    return status == TTD_OK ? heap_groups_sort(&peak_state->runtime.groups) : status;
}

static enum ttd_status peak_find(const struct heap_trace *trace,
                                 const struct heap_peak_state_options *options,
                                 struct heap_peak_state *peak_state, struct ttd_error *error)
{
    struct heap_pass pass = {.count = 0};
    enum ttd_status status = heap_peak_state_watch(peak_state, options, trace, &pass, error);
    if (status == TTD_OK)
        status = heap_pass_run(&pass, trace, error);
    return status == TTD_OK ? heap_peak_state_end(peak_state) : status;
}

/* Goes to the peak that the index names, and separately to the end for the outcome. */
static enum ttd_status peak_look_up(const struct heap_trace *trace,
                                    struct heap_peak_state *peak_state, struct ttd_error *error)
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

/* Whether the state at the peak that the index records has the totals that it records: an index is
 * not trusted. */
static bool peak_is_right(const struct heap_peak_state *peak_state)
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
    /* The sums of the index are of all blocks, and could not be compared with a part of them; they
     * have no estimates. */
    bool is_known = trace->keyframes && trace->keyframes->has_peak && !options->islands &&
                    !trace->choice.sample;
    enum ttd_status status = TTD_OK;
    peak_begin(peak_state, options->split, trace->choice.sample);
    if (is_known)
        status = peak_look_up(trace, peak_state, error);
    if (status == TTD_OK && !(is_known && peak_is_right(peak_state))) {
        heap_peak_state_free(peak_state);
        status = peak_find(trace, options, peak_state, error);
    }
    if (status != TTD_OK)
        heap_peak_state_free(peak_state);
    return status;
}

void heap_peak_state_free(struct heap_peak_state *peak_state)
{
    if (peak_state->finder)
        heap_kept_free(&peak_state->finder->kept);
    free(peak_state->finder);
    peak_state->finder = NULL;
    heap_groups_free(&peak_state->groups);
    heap_groups_free(&peak_state->runtime.groups);
}
