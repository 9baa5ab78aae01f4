/* SPDX-License-Identifier: MIT */
#include "heap/peak.h"

#include "heap/state.h"

/* The blocks that were live at the peak of a replay that is over. */
static ttd_status collect(heap_top *top, const heap_replay *replay)
{
    const heap_copies *ended = &replay->ended_since_peak;
    size_t cursor = 0;
    const heap_block *block;
    ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(&replay->live, &cursor)))
        if (ttd_position_compare(block->allocated, top->peak.position) <= 0)
            status = heap_groups_add(&top->groups, block);
    for (size_t i = 0; i < ended->count && status == TTD_OK; i++)
        status = heap_groups_add(&top->groups, &ended->blocks[i]);
    return status;
}

static ttd_status find(ttd_reader *reader, const heap_batch_hook *hook, heap_top *top,
                       ttd_error *error)
{
    heap_pass pass;
    heap_replay *replay = &pass.cursor.replay;
    ttd_status status = heap_pass_run_peak(&pass, reader, hook, error);
    if (status == TTD_OK)
        status = heap_replay_end_peak(replay);
    top->peak = replay->peak;
    if (status == TTD_OK)
        status = collect(top, replay);
    heap_pass_end(&pass, &top->outcome);
    return status;
}

/* The same where keyframes know the peak. */
static ttd_status look_up(ttd_reader *reader, const heap_keyframes *keyframes,
                          const heap_batch_hook *hook, heap_top *top, ttd_error *error)
{
    heap_pass pass;
    heap_state_wishes wishes = {.split = top->groups.split};
    heap_state state;
    ttd_status status =
        heap_pass_run(&pass, reader, keyframes, ttd_position_max(), NULL, hook, error);
    heap_pass_end(&pass, &top->outcome);
    top->peak = keyframes->peak;
    if (status == TTD_OK)
        status =
            heap_state_find(reader, keyframes, top->peak.position, &wishes, hook, &state, error);
    if (status != TTD_OK)
        return status;
    heap_groups *by_stack = &state.tables.by[HEAP_BY_STACK];
    heap_groups_free(&top->groups);
    top->groups = *by_stack;
    *by_stack = (heap_groups){.count = 0};
    heap_state_free(&state);
    return TTD_OK;
}

static void begin(heap_top *top, heap_split split)
{
    *top = (heap_top){.outcome = {.truncated = false}};
    heap_groups_init(&top->groups);
    top->groups.split = split;
}

/* An index is not trusted: whether the state at its peak is as it says. */
static bool is_right(const heap_top *top)
{
    return top->groups.blocks == top->peak.blocks &&
           top->groups.bytes == heap_sum_value(top->peak.bytes);
}

ttd_status heap_top_find(ttd_reader *reader, const heap_keyframes *keyframes, heap_split split,
                         const heap_batch_hook *hook, heap_top *top, ttd_error *error)
{
    bool is_known = keyframes && keyframes->has_peak;
    begin(top, split);
    ttd_status status =
        is_known ? look_up(reader, keyframes, hook, top, error) : find(reader, hook, top, error);
    if (status == TTD_OK && is_known && !is_right(top)) {
        heap_top_free(top);
        return heap_top_find(reader, NULL, split, hook, top, error);
    }
    if (status == TTD_OK)
        heap_groups_sort(&top->groups);
    else
        heap_top_free(top);
    return status;
}

void heap_top_free(heap_top *top)
{
    heap_groups_free(&top->groups);
}
