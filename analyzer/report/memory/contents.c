/* SPDX-License-Identifier: MIT */
/* How certain contents of memory are: by the snapshots that tell of the range, or would if they
 * were complete. */
#include "report/memory/reports.h"

/* Adds the snapshots of moving memory that tell of the range, each once. */
static void add_torn(struct certainty *certainty, const struct heap_snapshots *snapshots,
                     const struct contents_extents *extents)
{
    uint32_t told_snapshots[CERTAINTY_REASONS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < extents->count && count < CERTAINTY_REASONS_MAX; i++) {
        uint32_t index = extents->extents[i].snapshot;
        size_t earlier = 0;
        while (earlier < count && told_snapshots[earlier] != index)
            earlier++;
        if (earlier < count || snapshots->snapshots[index].flags & TTD_SNAPSHOT_STOPPED)
            continue;
        told_snapshots[count++] = index;
        certainty_add_torn(certainty, &snapshots->snapshots[index]);
    }
}

/* Returns the position of the oldest snapshot that tells of a part of the range; the least one if
 * none tells of some part. */
static struct ttd_position oldest_of(const struct heap_memory *memory)
{
    const struct contents_extents *extents = &memory->extents;
    uint64_t next = memory->options.first;
    struct ttd_position oldest = ttd_position_max();
    for (size_t i = 0; i < extents->count && extents->extents[i].first <= next; i++) {
        const struct contents_extent *extent = &extents->extents[i];
        struct ttd_position position = memory->snapshots.snapshots[extent->snapshot].position;
        if (ttd_position_compare(position, oldest) < 0)
            oldest = position;
        if (extent->last >= memory->options.last)
            return oldest;
        next = extent->last + 1;
    }
    return ttd_position_min();
}

void report_judge_contents(struct certainty *certainty, const struct heap_memory *memory)
{
    const struct heap_snapshots *snapshots = &memory->snapshots;
    struct ttd_position oldest = oldest_of(memory);
    add_torn(certainty, snapshots, &memory->extents);
    for (size_t i = 0; i < snapshots->count; i++) {
        const struct ttd_snapshot *snapshot = &snapshots->snapshots[i];
        bool is_incomplete = snapshot->flags & TTD_SNAPSHOT_INCOMPLETE || snapshot->missing;
        /* A snapshot that is older than all extents shown lacks nothing that matters. */
        if (is_incomplete && snapshot->contents & TTD_SNAPSHOT_MEMORY &&
            ttd_position_compare(snapshot->position, memory->options.at) <= 0 &&
            ttd_position_compare(snapshot->position, oldest) >= 0)
            certainty_add_missing(certainty, snapshot);
    }
}
