/* SPDX-License-Identifier: MIT */

#include <stdlib.h>
#include <string.h>

#include "contents/contents.h"
#include "base/grow.h"
#include "common/search.h"

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

static int contents_compare_extents(const void *a, const void *b)
{
    const struct contents_extent *x = a;
    const struct contents_extent *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->page > y->page) - (x->page < y->page);
}

/* Sorts the extents of one snapshot. A map that has an address twice is wrong: the first one
 * counts. */
static void extents_sort(struct contents_extents *extents)
{
    size_t kept = 0;
    if (extents->count)
        qsort(extents->extents, extents->count, sizeof *extents->extents, contents_compare_extents);
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

/* Moves the rest of the older extents up to and including `last` into the list. */
static enum ttd_status contents_take_older(struct overlay *overlay, size_t *older, uint64_t *begin,
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

/* Lays the snapshot that was read over those before. */
static enum ttd_status contents_end_snapshot(struct overlay *overlay)
{
    size_t older = 0;
    uint64_t begin = 0;
    enum ttd_status status = TTD_OK;
    extents_sort(&overlay->next);
    overlay->both.count = 0;
    for (size_t i = 0; i < overlay->next.count && status == TTD_OK; i++) {
        struct contents_extent extent = overlay->next.extents[i];
        if (extent.first > begin)
            status = contents_take_older(overlay, &older, &begin, extent.first - 1);
        if (status == TTD_OK)
            status = extents_append(&overlay->both, extent);
        /* Drops the older extents that end here or before. */
        while (older < overlay->merged.count && overlay->merged.extents[older].last <= extent.last)
            older++;
        begin = extent.last + 1;
        if (extent.last == UINT64_MAX)
            older = overlay->merged.count;
    }
    if (status == TTD_OK)
        status = contents_take_older(overlay, &older, &begin, UINT64_MAX);
    struct contents_extents replaced = overlay->merged;
    overlay->merged = overlay->both;
    overlay->both = replaced;
    overlay->next.count = 0;
    return status;
}

/* The part of a run that the range has; false if there is none. */
static bool contents_clip(const struct ttd_memory_map *map, const struct ttd_memory_run *run,
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

static enum ttd_status contents_add_map(struct overlay *overlay, const struct ttd_memory_map *map)
{
    size_t snapshot = extents_map_snapshot(overlay, map);
    enum ttd_status status = TTD_OK;
    if (snapshot == SIZE_MAX)
        return TTD_OK;
    if (snapshot != overlay->snapshot)
        status = contents_end_snapshot(overlay);
    overlay->snapshot = (uint32_t)snapshot;
    for (size_t i = 0; i < map->count && status == TTD_OK; i++) {
        struct contents_extent extent;
        if (!contents_clip(map, &map->runs[i], overlay->range, &extent))
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
            status = contents_add_map(&overlay, batch.u.memory_map);
    }
    if (heap_is_over(status) || status == TTD_ERROR_UNSUPPORTED)
        status = contents_end_snapshot(&overlay);
    contents_extents_free(&overlay.next);
    contents_extents_free(&overlay.both);
    if (status == TTD_OK)
        *extents = overlay.merged;
    else
        contents_extents_free(&overlay.merged);
    return status;
}

static int contents_compare_chunks(const void *a, const void *b)
{
    const struct ttd_chunk *x = a;
    const struct ttd_chunk *y = b;
    if (x->first_record != y->first_record)
        return x->first_record < y->first_record ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static enum ttd_status contents_add_chunk(struct contents_pages *pages,
                                          const struct ttd_chunk *chunk)
{
    enum ttd_status status = grow_array((void **)&pages->chunks, &pages->capacity, pages->count + 1,
                                        sizeof *pages->chunks);
    if (status == TTD_OK)
        pages->chunks[pages->count++] = *chunk;
    return status;
}

enum ttd_status contents_pages_find(const struct heap_trace *trace, struct contents_pages *pages,
                                    struct ttd_error *error)
{
    *pages = (struct contents_pages){.reader = trace->reader};
    for (size_t i = 0; i < CONTENTS_KEPT; i++)
        pages->cache[i].index = SIZE_MAX;
    /* Headers only: pages may be gigabytes, and few of them are asked for. */
    enum ttd_status status = ttd_reader_rewind(trace->reader, TTD_KINDS_ALL);
    while (status == TTD_OK) {
        struct ttd_chunk chunk;
        status = ttd_reader_next_chunk(trace->reader, &chunk, error);
        if (status == TTD_OK && chunk.kind == TTD_KIND_PAGES)
            status = contents_add_chunk(pages, &chunk);
    }
    if (!heap_is_over(status) && status != TTD_ERROR_UNSUPPORTED) {
        contents_pages_free(pages);
        return status;
    }
    if (pages->count)
        qsort(pages->chunks, pages->count, sizeof *pages->chunks, contents_compare_chunks);
    return TTD_OK;
}

void contents_pages_free(struct contents_pages *pages)
{
    for (size_t i = 0; i < CONTENTS_KEPT; i++)
        free(pages->cache[i].data);
    free(pages->chunks);
    *pages = (struct contents_pages){.count = 0};
}

/* The chunk that has a page, of several the first in the trace; SIZE_MAX if there is none. */
static size_t contents_find_chunk(const struct contents_pages *pages, uint64_t id)
{
    size_t first = 0;
    size_t end = pages->count;
    SEARCH_SORTED(first, end, middle,
                  pages->chunks[middle].first_record + pages->chunks[middle].record_count <= id);
    return first < pages->count && pages->chunks[first].first_record <= id ? first : SIZE_MAX;
}

/* Reads a chunk of pages, and keeps a copy. A damaged one is kept as a chunk without pages. */
static enum ttd_status contents_load_chunk(struct contents_pages *pages, size_t index,
                                           struct contents_chunk *chunk, struct ttd_error *error)
{
    struct ttd_pages loaded;
    chunk->index = SIZE_MAX;
    chunk->pages = (struct ttd_pages){.count = 0};
    enum ttd_status status = ttd_reader_pages(pages->reader, &pages->chunks[index], &loaded, error);
    if (status == TTD_ERROR_IO || status == TTD_ERROR_NO_MEMORY)
        return status;
    if (status == TTD_OK) {
        size_t size = (size_t)loaded.count * loaded.page_size;
        status = grow_array((void **)&chunk->data, &chunk->capacity, size, 1);
        if (status != TTD_OK)
            return status;
        memcpy(chunk->data, loaded.data, size);
        chunk->pages = loaded;
    }
    chunk->index = index;
    return TTD_OK;
}

/* Finds a chunk among those that are kept, or reads it in place of the one unused for longest. */
static enum ttd_status contents_need(struct contents_pages *pages, size_t index,
                                     struct contents_chunk **chunk, struct ttd_error *error)
{
    struct contents_chunk *oldest = &pages->cache[0];
    enum ttd_status status = TTD_OK;
    *chunk = NULL;
    for (size_t i = 0; i < CONTENTS_KEPT && !*chunk; i++) {
        if (pages->cache[i].index == index)
            *chunk = &pages->cache[i];
        else if (pages->cache[i].last_use < oldest->last_use)
            oldest = &pages->cache[i];
    }
    if (!*chunk) {
        *chunk = oldest;
        status = contents_load_chunk(pages, index, oldest, error);
    }
    (*chunk)->last_use = ++pages->clock;
    return status;
}

enum ttd_status contents_pages_get(struct contents_pages *pages, uint64_t id, uint32_t size,
                                   const uint8_t **data, struct ttd_error *error)
{
    struct contents_chunk *chunk;
    size_t index = contents_find_chunk(pages, id);
    *data = NULL;
    if (index == SIZE_MAX)
        return TTD_OK;
    enum ttd_status status = contents_need(pages, index, &chunk, error);
    if (status == TTD_OK && chunk->pages.count && chunk->pages.page_size == size)
        *data = chunk->data + (size_t)(id - chunk->pages.first_page) * size;
    return status;
}

const char *contents_state_name(enum contents_state state)
{
    static const char *const names[] = {"unknown", "unreadable", "damaged", "zero", "bytes"};
    return names[state];
}

struct contents_cursor contents_cursor_begin(const struct contents_extents *extents,
                                             struct contents_pages *pages, uint64_t first,
                                             uint64_t last)
{
    struct contents_cursor cursor = {
        .extents = extents, .pages = pages, .next = first, .last = last};
    while (cursor.extent < extents->count && extents->extents[cursor.extent].last < first)
        cursor.extent++;
    return cursor;
}

/* The bytes of the page that the next address lies in, and where they end. */
static enum ttd_status contents_take_page(struct contents_cursor *cursor,
                                          const struct contents_extent *extent,
                                          struct contents_part *part, struct ttd_error *error)
{
    uint64_t offset = part->first - extent->begin;
    uint64_t number = offset / extent->page_size;
    uint64_t begin = offset % extent->page_size;
    uint64_t reach = extent->page_size - 1 - begin;
    const uint8_t *data;
    if (part->last - part->first > reach)
        part->last = part->first + reach;
    enum ttd_status status =
        contents_pages_get(cursor->pages, extent->page + number, extent->page_size, &data, error);
    part->state = data ? CONTENTS_BYTES : CONTENTS_DAMAGED;
    part->data = data ? data + begin : NULL;
    return status;
}

static enum ttd_status contents_take_extent(struct contents_cursor *cursor,
                                            const struct contents_extent *extent,
                                            struct contents_part *part, struct ttd_error *error)
{
    part->snapshot = extent->snapshot;
    if (part->last > extent->last)
        part->last = extent->last;
    if (extent->page >= TTD_PAGE_FIRST)
        return contents_take_page(cursor, extent, part, error);
    part->state = extent->page == TTD_PAGE_ZERO ? CONTENTS_ZERO : CONTENTS_UNREADABLE;
    return TTD_OK;
}

enum ttd_status contents_cursor_next(struct contents_cursor *cursor, struct contents_part *part,
                                     struct ttd_error *error)
{
    const struct contents_extents *extents = cursor->extents;
    enum ttd_status status = TTD_OK;
    if (cursor->is_over)
        return TTD_END;
    *part = (struct contents_part){CONTENTS_UNKNOWN, cursor->next, cursor->last, 0, NULL};
    while (cursor->extent < extents->count && extents->extents[cursor->extent].last < cursor->next)
        cursor->extent++;
    const struct contents_extent *extent =
        cursor->extent < extents->count ? &extents->extents[cursor->extent] : NULL;
    if (extent && extent->first <= part->first)
        status = contents_take_extent(cursor, extent, part, error);
    else if (extent && extent->first <= part->last)
        part->last = extent->first - 1;
    cursor->is_over = part->last == cursor->last;
    cursor->next = part->last + 1;
    return status;
}
