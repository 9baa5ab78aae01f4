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

static enum ttd_status replay_all(struct ttd_reader *reader, const struct heap_kept *kept,
                                  const struct heap_batch_hook *hook, struct heap_peak_state *found,
                                  struct ttd_error *error)
{
    struct heap_pass pass;
    struct heap_replay *replay = &pass.cursor.replay;
    enum ttd_status status = heap_pass_run_peak(&pass, reader, hook, error);
    if (status == TTD_OK)
        status = heap_replay_end_peak(replay);
    found->peak = replay->peak;
    if (status == TTD_OK)
        status = collect(found, kept, replay);
    heap_pass_end(&pass, &found->outcome);
    return status;
}

static enum ttd_status find(struct ttd_reader *reader, const struct heap_batch_hook *hook,
                            struct heap_peak_state *found, struct ttd_error *error)
{
    struct heap_kept kept;
    enum ttd_status status =
        heap_kept_read(&kept, reader, found->groups.split, hook, &found->runtime, error);
    if (status == TTD_OK)
        status = replay_all(reader, &kept, hook, found, error);
    heap_kept_free(&kept);
    if (status == TTD_OK)
        status = heap_groups_sort(&found->groups);
    return status == TTD_OK ? heap_groups_sort(&found->runtime.groups) : status;
}

/* The same where keyframes know the peak. */
static enum ttd_status look_up(struct ttd_reader *reader, const struct heap_keyframes *keyframes,
                               const struct heap_batch_hook *hook, struct heap_peak_state *found,
                               struct ttd_error *error)
{
    struct heap_pass pass;
    struct heap_state_options options = {.split = found->groups.split, .tells_runtime = true};
    struct heap_state state;
    enum ttd_status status =
        heap_pass_run(&pass, reader, keyframes, ttd_position_max(), NULL, hook, error);
    heap_pass_end(&pass, &found->outcome);
    found->peak = keyframes->peak;
    if (status == TTD_OK)
        status =
            heap_state_find(reader, keyframes, found->peak.position, &options, hook, &state, error);
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

enum ttd_status heap_peak_find(struct ttd_reader *reader, const struct heap_keyframes *keyframes,
                               enum heap_split split, const struct heap_batch_hook *hook,
                               struct heap_peak_state *found, struct ttd_error *error)
{
    bool is_known = keyframes && keyframes->has_peak;
    begin(found, split);
    enum ttd_status status = is_known ? look_up(reader, keyframes, hook, found, error)
                                      : find(reader, hook, found, error);
    if (status == TTD_OK && is_known && !is_right(found)) {
        heap_peak_state_free(found);
        return heap_peak_find(reader, NULL, split, hook, found, error);
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
