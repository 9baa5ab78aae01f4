/* SPDX-License-Identifier: MIT */
#include "heap/peak.h"

#include "heap/state.h"

/* The blocks that were live at the peak of a replay that is over. */
static ttd_status collect(heap_peak_state *found, const heap_replay *replay)
{
    const heap_copies *ended = &replay->ended_since_peak;
    size_t cursor = 0;
    const heap_block *block;
    ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(&replay->live, &cursor)))
        if (ttd_position_compare(block->allocated, found->peak.position) <= 0)
            status = heap_groups_add(&found->groups, block);
    for (size_t i = 0; i < ended->count && status == TTD_OK; i++)
        status = heap_groups_add(&found->groups, &ended->blocks[i]);
    return status;
}

static ttd_status find(ttd_reader *reader, const heap_batch_hook *hook, heap_peak_state *found,
                       ttd_error *error)
{
    heap_pass pass;
    heap_replay *replay = &pass.cursor.replay;
    ttd_status status = heap_pass_run_peak(&pass, reader, hook, error);
    if (status == TTD_OK)
        status = heap_replay_end_peak(replay);
    found->peak = replay->peak;
    if (status == TTD_OK)
        status = collect(found, replay);
    heap_pass_end(&pass, &found->outcome);
    return status == TTD_OK ? heap_groups_sort(&found->groups) : status;
}

/* The same where keyframes know the peak. */
static ttd_status look_up(ttd_reader *reader, const heap_keyframes *keyframes,
                          const heap_batch_hook *hook, heap_peak_state *found, ttd_error *error)
{
    heap_pass pass;
    heap_state_wishes wishes = {.split = found->groups.split};
    heap_state state;
    ttd_status status =
        heap_pass_run(&pass, reader, keyframes, ttd_position_max(), NULL, hook, error);
    heap_pass_end(&pass, &found->outcome);
    found->peak = keyframes->peak;
    if (status == TTD_OK)
        status =
            heap_state_find(reader, keyframes, found->peak.position, &wishes, hook, &state, error);
    if (status != TTD_OK)
        return status;
    heap_groups *by_stack = &state.tables.by[HEAP_BY_STACK];
    heap_groups_free(&found->groups);
    found->groups = *by_stack;
    *by_stack = (heap_groups){.count = 0};
    heap_state_free(&state);
    return TTD_OK;
}

static void begin(heap_peak_state *found, heap_split split)
{
    *found = (heap_peak_state){.outcome = {.truncated = false}};
    heap_groups_init(&found->groups);
    found->groups.split = split;
}

/* An index is not trusted: whether the state at its peak is as it says. */
static bool is_right(const heap_peak_state *found)
{
    return found->groups.blocks == found->peak.blocks &&
           found->groups.bytes == heap_sum_value(found->peak.bytes);
}

ttd_status heap_peak_find(ttd_reader *reader, const heap_keyframes *keyframes, heap_split split,
                          const heap_batch_hook *hook, heap_peak_state *found, ttd_error *error)
{
    bool is_known = keyframes && keyframes->has_peak;
    begin(found, split);
    ttd_status status = is_known ? look_up(reader, keyframes, hook, found, error)
                                 : find(reader, hook, found, error);
    if (status == TTD_OK && is_known && !is_right(found)) {
        heap_peak_state_free(found);
        return heap_peak_find(reader, NULL, split, hook, found, error);
    }
    if (status != TTD_OK)
        heap_peak_state_free(found);
    return status;
}

void heap_peak_state_free(heap_peak_state *found)
{
    heap_groups_free(&found->groups);
}
