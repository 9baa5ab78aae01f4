/* SPDX-License-Identifier: MIT */
#include "analyses/leaks.h"

#include <string.h>

static enum ttd_status add(void *context, const struct heap_block *block)
{
    struct heap_leaks *leaks = context;
    return heap_groups_add(&leaks->groups, block);
}

/* Blocks that a runtime may keep are decided on when it is known which are live at the end. */
static enum ttd_status collect(struct heap_leaks *leaks, struct heap_kept *kept,
                               const struct heap_replay *replay)
{
    size_t cursor = 0;
    const struct heap_block *block;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(&replay->live, &cursor)))
        status = heap_kept_may_have(kept, block) ? heap_kept_defer(kept, block) : add(leaks, block);
    return status;
}

static enum ttd_status find(struct heap_leaks *leaks, struct heap_kept *kept,
                            struct heap_arrival *arrival, struct ttd_error *error)
{
    leaks->outcome = heap_arrival_outcome(arrival);
    enum ttd_status status = collect(leaks, kept, &arrival->cursor.replay);
    if (status == TTD_OK)
        status = heap_kept_decide(kept, &arrival->cursor, &leaks->runtime, add, leaks, error);
    if (status == TTD_OK)
        status = heap_groups_sort(&leaks->groups);
    return status == TTD_OK ? heap_groups_sort(&leaks->runtime.groups) : status;
}

enum ttd_status heap_leaks_find(const struct heap_trace *trace,
                                const struct heap_leaks_options *options, struct heap_leaks *leaks,
                                struct ttd_error *error)
{
    memset(leaks, 0, sizeof *leaks);
    heap_groups_init(&leaks->groups);
    leaks->groups.split = options->split;
    struct heap_kept kept;
    struct heap_arrival arrival = {.has_losses = false};
    struct heap_route route = {.to = options->at};
    enum ttd_status status = heap_kept_read(&kept, trace, options->split, &leaks->runtime, error);
    if (status == TTD_OK)
        status = heap_replay_to(&arrival, trace, &route, error);
    if (status == TTD_OK)
        status = find(leaks, &kept, &arrival, error);
    heap_arrival_free(&arrival);
    heap_kept_free(&kept);
    if (status != TTD_OK)
        heap_leaks_free(leaks);
    return status;
}

void heap_leaks_free(struct heap_leaks *leaks)
{
    heap_groups_free(&leaks->groups);
    heap_groups_free(&leaks->runtime.groups);
}
