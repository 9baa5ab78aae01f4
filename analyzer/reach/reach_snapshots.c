/* SPDX-License-Identifier: MIT */
#include "reach/reach_snapshots.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static enum ttd_status snapshots_add_batch(struct heap_snapshots *snapshots,
                                           const struct ttd_batch *batch)
{
    enum ttd_status status =
        grow_array((void **)&snapshots->snapshots, &snapshots->capacity,
                   snapshots->count + batch->count, sizeof *snapshots->snapshots);
    if (status != TTD_OK)
        return status;
    memcpy(&snapshots->snapshots[snapshots->count], batch->u.snapshots,
           batch->count * sizeof *snapshots->snapshots);
    snapshots->count += batch->count;
    return TTD_OK;
}

enum ttd_status heap_snapshots_find(const struct heap_trace *trace,
                                    struct heap_snapshots *snapshots, struct ttd_error *error)
{
    *snapshots = (struct heap_snapshots){.count = 0};
    enum ttd_status status = ttd_reader_rewind(trace->reader, TTD_KIND_BIT(TTD_KIND_SNAPSHOTS));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, error);
        if (status == TTD_OK && batch.kind == TTD_KIND_SNAPSHOTS)
            status = snapshots_add_batch(snapshots, &batch);
    }
    if (heap_is_over(status))
        return TTD_OK;
    heap_snapshots_free(snapshots);
    return status;
}

void heap_snapshots_free(struct heap_snapshots *snapshots)
{
    free(snapshots->snapshots);
    *snapshots = (struct heap_snapshots){.count = 0};
}

const struct ttd_snapshot *heap_snapshots_before(const struct heap_snapshots *snapshots,
                                                 struct ttd_position position, uint32_t contents)
{
    const struct ttd_snapshot *newest = NULL;
    for (size_t i = 0; i < snapshots->count; i++) {
        const struct ttd_snapshot *snapshot = &snapshots->snapshots[i];
        if ((snapshot->contents & contents) == contents &&
            ttd_position_compare(snapshot->position, position) <= 0 &&
            (!newest || ttd_position_compare(snapshot->position, newest->position) >= 0))
            newest = snapshot;
    }
    return newest;
}

const struct ttd_snapshot *heap_snapshots_after(const struct heap_snapshots *snapshots,
                                                struct ttd_position position, uint32_t contents)
{
    const struct ttd_snapshot *oldest = NULL;
    for (size_t i = 0; i < snapshots->count; i++) {
        const struct ttd_snapshot *snapshot = &snapshots->snapshots[i];
        if ((snapshot->contents & contents) == contents &&
            ttd_position_compare(snapshot->position, position) >= 0 &&
            (!oldest || ttd_position_compare(snapshot->position, oldest->position) < 0))
            oldest = snapshot;
    }
    return oldest;
}

const struct ttd_snapshot *heap_snapshots_get(const struct heap_snapshots *snapshots,
                                              uint32_t number)
{
    for (size_t i = 0; i < snapshots->count; i++) {
        if (snapshots->snapshots[i].number == number)
            return &snapshots->snapshots[i];
    }
    return NULL;
}
