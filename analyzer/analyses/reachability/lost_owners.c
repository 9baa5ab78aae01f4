/* SPDX-License-Identifier: MIT */
#include "analyses/reachability/lost_owners.h"

#include <string.h>

#include "base/map.h"
#include "reach/snapshots.h"

static bool is_live(const struct heap_owner *owner)
{
    return !heap_call_is_known(&owner->released);
}

/* Whether any owner can be lost: one was not released, and there is a snapshot. Otherwise the
 * passes of `leaks` would find nothing. */
static enum ttd_status may_be_lost(const struct heap_trace *trace,
                                   const struct heap_history *history, bool *may_be,
                                   struct ttd_error *error)
{
    struct heap_snapshots snapshots;
    size_t i = 0;
    *may_be = false;
    while (i < history->count && !is_live(&history->owners[i]))
        i++;
    if (i == history->count)
        return TTD_OK;
    enum ttd_status status = heap_snapshots_find(trace, &snapshots, error);
    if (status != TTD_OK)
        return status;
    *may_be = heap_snapshots_before(&snapshots, ttd_position_max(), TTD_SNAPSHOT_REFERENCES);
    heap_snapshots_free(&snapshots);
    return TTD_OK;
}

/* Points each live owner at its range. The event that acquired a block identifies it. */
static enum ttd_status link_lost(struct heap_history *history, const struct heap_leaks *leaks)
{
    struct hash_map index;
    enum ttd_status status = TTD_OK;
    map_init(&index);
    for (size_t i = 0; i < leaks->lost_count && status == TTD_OK; i++)
        status = map_set(&index, leaks->lost[i].block.event, 0, (uint32_t)i);
    for (size_t i = 0; i < history->count && status == TTD_OK; i++) {
        struct heap_owner *owner = &history->owners[i];
        uint32_t lost = map_get(&index, owner->block.event, 0);
        if (is_live(owner) && lost != MAP_NONE)
            owner->lost = &leaks->lost_ranges[lost];
    }
    map_free(&index);
    return status;
}

enum ttd_status heap_lost_owners_find(const struct heap_trace *trace, struct heap_history *history,
                                      struct heap_leaks *leaks, struct ttd_error *error)
{
    struct heap_address_range range = {history->options.first, history->options.last};
    struct heap_leaks_options options = {
        .at = ttd_position_max(), .covering = &range, .tells_when = true};
    bool may_be;
    memset(leaks, 0, sizeof *leaks);
    enum ttd_status status = may_be_lost(trace, history, &may_be, error);
    if (status == TTD_OK && may_be)
        status = heap_leaks_find(trace, &options, leaks, error);
    if (status != TTD_OK || !may_be)
        return status;
    status = link_lost(history, leaks);
    if (status != TTD_OK)
        heap_leaks_free(leaks);
    return status;
}
