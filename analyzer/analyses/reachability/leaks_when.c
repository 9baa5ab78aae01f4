/* SPDX-License-Identifier: MIT */
#include "analyses/reachability/leaks_when.h"

#include <stdlib.h>

/* Sets the range of each definitely lost group: from the loss of its first block to that of its
 * last one. */
static enum ttd_status group_when(struct heap_leaks *leaks)
{
    struct heap_groups *groups = &leaks->kinds[HEAP_DEFINITELY_LOST];
    leaks->lost_ranges = malloc(groups->count * sizeof *leaks->lost_ranges);
    if (!leaks->lost_ranges)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < groups->count; i++) {
        leaks->lost_ranges[i] = (struct heap_lost_range){.after = ttd_position_max(),
                                                         .first_release = ttd_position_max()};
        groups->items[i].lost = &leaks->lost_ranges[i];
    }
    for (size_t i = 0; i < leaks->lost_count; i++) {
        struct heap_lost_range range = heap_lost_range_of(&leaks->lost[i]);
        heap_lost_range_merge(heap_groups_find(groups, &leaks->lost[i].block)->lost, &range);
    }
    return TTD_OK;
}

/* Sets the range of each block. */
static enum ttd_status list_when(struct heap_leaks *leaks)
{
    leaks->lost_ranges = malloc(leaks->lost_count * sizeof *leaks->lost_ranges);
    if (!leaks->lost_ranges)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < leaks->lost_count; i++)
        leaks->lost_ranges[i] = heap_lost_range_of(&leaks->lost[i]);
    return TTD_OK;
}

enum ttd_status heap_leaks_date(struct heap_leaks *leaks, const struct heap_trace *trace,
                                const struct heap_snapshots *snapshots, bool by_block,
                                struct ttd_error *error)
{
    enum ttd_status status = heap_lost_when_find(trace, snapshots, &leaks->snapshot, leaks->lost,
                                                 leaks->lost_count, error);
    if (status != TTD_OK)
        return status;
    return by_block ? list_when(leaks) : group_when(leaks);
}
