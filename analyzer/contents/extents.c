/* SPDX-License-Identifier: MIT */
#include "contents/extents.h"

#include <stdlib.h>

#include "base/grow.h"

/** Laying one snapshot over another. */
struct overlay {
    const struct heap_snapshots *snapshots;
    const struct contents_range *range;
    /** Extents of all snapshots that were read. */
    struct contents_extents merged;
    /** Extents of the snapshot that is being read. */
    struct contents_extents next;
    /** Room for both together. */
    struct contents_extents both;
    /** Index of the snapshot that is being read. */
    uint32_t snapshot;
};

void contents_extents_free(struct contents_extents *extents)
{
    free(extents->extents);
    *extents = (struct contents_extents){.count = 0};
}

static enum ttd_status extents_append(struct contents_extents *extents,
                                      struct contents_extent extent)
{
    enum ttd_status status = grow_array((void **)&extents->extents, &extents->capacity,
                                        extents->count + 1, sizeof *extents->extents);
    if (status == TTD_OK)
        extents->extents[extents->count++] = extent;
    return status;
}

static int compare_extents(const void *a, const void *b)
{
    const struct contents_extent *x = a;
    const struct contents_extent *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->page > y->page) - (x->page < y->page);
}

/* Sorts the extents of one snapshot. A map that tells of an address twice is wrong: what comes
 * first counts. */
static void extents_sort(struct contents_extents *extents)
{
    size_t kept = 0;
    if (extents->count)
        qsort(extents->extents, extents->count, sizeof *extents->extents, compare_extents);
    for (size_t i = 0; i < extents->count; i++) {
        struct contents_extent extent = extents->extents[i];
        uint64_t before = kept ? extents->extents[kept - 1].last : 0;
        if (kept && extent.last <= before)
            continue;
        if (kept && extent.first <= before)
            extent.first = before + 1;
        extents->extents[kept++] = extent;
    }
    extents->count = kept;
}

/* Appends what is left of older extents up to and including `last`, and drops it. */
static enum ttd_status take_older(struct overlay *overlay, size_t *older, uint64_t *begin,
                                  uint64_t last)
{
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && *older < overlay->merged.count) {
        struct contents_extent extent = overlay->merged.extents[*older];
        if (extent.first < *begin)
            extent.first = *begin;
        if (extent.first > last)
            break;
        bool goes_on = extent.last > last;
        if (goes_on)
            extent.last = last;
        if (extent.first <= overlay->merged.extents[*older].last)
            status = extents_append(&overlay->both, extent);
        if (goes_on)
            break;
        ++*older;
    }
    return status;
}

/* Drops the older extents that end at `last` or before. */
static void skip_older(const struct overlay *overlay, size_t *older, uint64_t last)
{
    while (*older < overlay->merged.count && overlay->merged.extents[*older].last <= last)
        ++*older;
}

/* Lays the snapshot that was read over those before. */
static enum ttd_status end_snapshot(struct overlay *overlay)
{
    size_t older = 0;
    uint64_t begin = 0;
    enum ttd_status status = TTD_OK;
    extents_sort(&overlay->next);
    overlay->both.count = 0;
    for (size_t i = 0; i < overlay->next.count && status == TTD_OK; i++) {
        struct contents_extent extent = overlay->next.extents[i];
        if (extent.first > begin)
            status = take_older(overlay, &older, &begin, extent.first - 1);
        if (status == TTD_OK)
            status = extents_append(&overlay->both, extent);
        skip_older(overlay, &older, extent.last);
        begin = extent.last + 1;
        if (extent.last == UINT64_MAX)
            older = overlay->merged.count;
    }
    if (status == TTD_OK)
        status = take_older(overlay, &older, &begin, UINT64_MAX);
    struct contents_extents replaced = overlay->merged;
    overlay->merged = overlay->both;
    overlay->both = replaced;
    overlay->next.count = 0;
    return status;
}

/* The part of a run that the range has; false if there is none. */
static bool clip(const struct ttd_memory_map *map, const struct ttd_memory_run *run,
                 const struct contents_range *range, struct contents_extent *extent)
{
    uint64_t last = run->address + (run->page_count * map->page_size - 1);
    if (run->page == TTD_PAGE_NOT_CAPTURED || run->address > range->last || last < range->first)
        return false;
    *extent = (struct contents_extent){.first = run->address, .last = last};
    if (extent->first < range->first)
        extent->first = range->first;
    if (extent->last > range->last)
        extent->last = range->last;
    extent->begin = run->address;
    extent->page = run->page;
    extent->page_size = map->page_size;
    return true;
}

/* Index of the snapshot that a map is of: complete, with contents, and not after the range's
 * position. SIZE_MAX if it is of no such snapshot. */
static size_t extents_map_snapshot(const struct overlay *overlay, const struct ttd_memory_map *map)
{
    const struct ttd_snapshot *snapshot = heap_snapshots_get(overlay->snapshots, map->snapshot);
    if (!snapshot || !(snapshot->contents & TTD_SNAPSHOT_MEMORY) ||
        ttd_position_compare(snapshot->position, overlay->range->at) > 0)
        return SIZE_MAX;
    return (size_t)(snapshot - overlay->snapshots->snapshots);
}

static enum ttd_status add_map(struct overlay *overlay, const struct ttd_memory_map *map)
{
    size_t snapshot = extents_map_snapshot(overlay, map);
    enum ttd_status status = TTD_OK;
    if (snapshot == SIZE_MAX)
        return TTD_OK;
    if (snapshot != overlay->snapshot)
        status = end_snapshot(overlay);
    overlay->snapshot = (uint32_t)snapshot;
    for (size_t i = 0; i < map->count && status == TTD_OK; i++) {
        struct contents_extent extent;
        if (!clip(map, &map->runs[i], overlay->range, &extent))
            continue;
        extent.snapshot = overlay->snapshot;
        status = extents_append(&overlay->next, extent);
    }
    return status;
}

enum ttd_status contents_extents_find(const struct heap_trace *trace,
                                      const struct heap_snapshots *snapshots,
                                      const struct contents_range *range,
                                      struct contents_extents *extents, struct ttd_error *error)
{
    struct overlay overlay = {.snapshots = snapshots, .range = range};
    enum ttd_status status = ttd_reader_rewind(trace->reader, TTD_KIND_BIT(TTD_KIND_MEMORY_MAP));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, error);
        if (status == TTD_OK && batch.kind == TTD_KIND_MEMORY_MAP)
            status = add_map(&overlay, batch.u.memory_map);
    }
    if (heap_is_over(status) || status == TTD_ERROR_UNSUPPORTED)
        status = end_snapshot(&overlay);
    contents_extents_free(&overlay.next);
    contents_extents_free(&overlay.both);
    if (status == TTD_OK)
        *extents = overlay.merged;
    else
        contents_extents_free(&overlay.merged);
    return status;
}
