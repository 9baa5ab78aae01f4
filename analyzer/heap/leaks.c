/* SPDX-License-Identifier: MIT */
#include "heap/leaks.h"

#include <string.h>

static ttd_status add(void *context, const heap_block *block)
{
    heap_leaks *leaks = context;
    return heap_groups_add(&leaks->groups, block);
}

static ttd_status collect(heap_leaks *leaks, heap_kept *kept, const heap_replay *replay)
{
    size_t cursor = 0;
    const heap_block *block;
    ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(&replay->live, &cursor)))
        status = heap_kept_may_have(kept, block) ? heap_kept_defer(kept, block) : add(leaks, block);
    return status;
}

static ttd_status find(heap_leaks *leaks, heap_kept *kept, heap_pass *pass, ttd_error *error)
{
    leaks->outcome = heap_pass_outcome(pass);
    ttd_status status = collect(leaks, kept, &pass->cursor.replay);
    if (status == TTD_OK)
        status = heap_kept_decide(kept, &pass->cursor, &leaks->runtime, add, leaks, error);
    if (status == TTD_OK)
        status = heap_groups_sort(&leaks->groups);
    return status == TTD_OK ? heap_groups_sort(&leaks->runtime.groups) : status;
}

ttd_status heap_leaks_find(ttd_reader *reader, const heap_keyframes *keyframes, ttd_position at,
                           heap_split split, const heap_batch_hook *hook, heap_leaks *leaks,
                           ttd_error *error)
{
    memset(leaks, 0, sizeof *leaks);
    heap_groups_init(&leaks->groups);
    leaks->groups.split = split;
    heap_kept kept;
    heap_pass pass = {.hook = NULL};
    ttd_status status = heap_kept_read(&kept, reader, split, hook, &leaks->runtime, error);
    if (status == TTD_OK)
        status = heap_pass_run(&pass, reader, keyframes, at, NULL, hook, error);
    if (status == TTD_OK)
        status = find(leaks, &kept, &pass, error);
    heap_pass_free(&pass);
    heap_kept_free(&kept);
    if (status != TTD_OK)
        heap_leaks_free(leaks);
    return status;
}

void heap_leaks_free(heap_leaks *leaks)
{
    heap_groups_free(&leaks->groups);
    heap_groups_free(&leaks->runtime.groups);
}
