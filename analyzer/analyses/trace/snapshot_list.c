/* SPDX-License-Identifier: MIT */
#include "analyses/trace/snapshot_list.h"

#include <stdlib.h>

#include "analyses/trace/trace_stats.h"
#include "base/grow.h"
#include "heap/site_table.h"

#define PART_KINDS                                                                                 \
    (TTD_KIND_BIT(TTD_KIND_PAGES) | TTD_KIND_BIT(TTD_KIND_MEMORY_MAP) |                            \
     TTD_KIND_BIT(TTD_KIND_REGIONS) | TTD_KIND_BIT(TTD_KIND_REFERENCES) |                          \
     TTD_KIND_BIT(TTD_KIND_FRAMES) | TTD_KIND_BIT(TTD_KIND_CLASSES) |                              \
     TTD_KIND_BIT(TTD_KIND_BLOCK_HEADERS))

#define LISTED_KINDS (PART_KINDS | TTD_KIND_BIT(TTD_KIND_SNAPSHOTS))

/** The list in the making. */
struct lister {
    struct heap_snapshot_list *list;
    /** The hook of the trace, which sees each batch first; none in a pass. */
    struct heap_batch_hook hook;
    /** The parts since the last snapshot. */
    struct heap_snapshot_parts parts;
    /** The chunk that the last batch was of: its bytes count once. */
    uint64_t chunk;
};

/** The snapshot that a batch is a part of; 0 for pages, which do not name it. */
static uint32_t snapshot_list_batch_snapshot(const struct ttd_batch *batch)
{
    switch (batch->kind) {
    case TTD_KIND_MEMORY_MAP:
        return batch->u.memory_map->snapshot;
    case TTD_KIND_REGIONS:
        return batch->u.regions->snapshot;
    case TTD_KIND_REFERENCES:
        return batch->u.references->snapshot;
    case TTD_KIND_FRAMES:
        return batch->u.frames->snapshot;
    case TTD_KIND_CLASSES:
        return batch->u.classes->snapshot;
    case TTD_KIND_BLOCK_HEADERS:
        return batch->u.block_headers->snapshot;
    default:
        return 0;
    }
}

static uint64_t mapped_bytes(const struct ttd_memory_map *map)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < map->count; i++)
        if (map->runs[i].page != TTD_PAGE_UNREADABLE && map->runs[i].page != TTD_PAGE_NOT_CAPTURED)
            bytes = heap_add(bytes, map->runs[i].page_count * map->page_size);
    return bytes;
}

/* Adds the records of a batch to the parts of its snapshot. */
static void snapshot_list_add_part(struct heap_snapshot_parts *parts, const struct ttd_batch *batch)
{
    switch (batch->kind) {
    case TTD_KIND_PAGES:
        parts->page_bytes += (uint64_t)batch->u.pages->count * batch->u.pages->page_size;
        break;
    case TTD_KIND_MEMORY_MAP:
        parts->mapped_bytes = heap_add(parts->mapped_bytes, mapped_bytes(batch->u.memory_map));
        break;
    case TTD_KIND_REGIONS:
        parts->regions += batch->u.regions->count;
        break;
    case TTD_KIND_REFERENCES:
        parts->references += batch->u.references->count;
        break;
    case TTD_KIND_CLASSES:
        parts->classes += batch->u.classes->count;
        break;
    default:
        break;
    }
}

/* Forgets parts after which their snapshot did not come. */
static void cut_short(struct lister *lister)
{
    lister->list->cut_short += lister->parts.number != 0;
    lister->parts = (struct heap_snapshot_parts){.number = 0};
}

static enum ttd_status add_snapshot(struct lister *lister, const struct ttd_snapshot *snapshot)
{
    struct heap_snapshot_list *list = lister->list;
    enum ttd_status status = grow_array((void **)&list->snapshots, &list->capacity, list->count + 1,
                                        sizeof *list->snapshots);
    if (status != TTD_OK)
        return status;
    if (lister->parts.number && lister->parts.number != snapshot->number)
        cut_short(lister);
    struct heap_listed_snapshot *listed = &list->snapshots[list->count++];
    *listed = (struct heap_listed_snapshot){*snapshot, lister->parts};
    if (listed->parts.regions != snapshot->regions ||
        listed->parts.references != snapshot->references)
        listed->snapshot.flags |= TTD_SNAPSHOT_INCOMPLETE;
    lister->parts = (struct heap_snapshot_parts){.number = 0};
    return TTD_OK;
}

static enum ttd_status snapshot_list_see_batch(void *context, const struct ttd_batch *batch)
{
    struct lister *lister = context;
    enum ttd_status status = TTD_OK;
    if (lister->hook.batch)
        status = lister->hook.batch(lister->hook.context, batch);
    bool is_part = PART_KINDS & TTD_KIND_BIT(batch->kind);
    if (is_part) {
        uint32_t number = snapshot_list_batch_snapshot(batch);
        if (number && lister->parts.number && number != lister->parts.number)
            cut_short(lister);
        if (number)
            lister->parts.number = number;
        snapshot_list_add_part(&lister->parts, batch);
    }
    if ((is_part || batch->kind == TTD_KIND_SNAPSHOTS) && batch->chunk.number != lister->chunk) {
        lister->chunk = batch->chunk.number;
        lister->parts.stored_bytes += batch->chunk.stored_size;
    }
    for (size_t i = 0; batch->kind == TTD_KIND_SNAPSHOTS && i < batch->count && status == TTD_OK;
         i++)
        status = add_snapshot(lister, &batch->u.snapshots[i]);
    return status;
}

enum ttd_status heap_snapshot_list_find(const struct heap_trace *trace,
                                        struct heap_snapshot_list *list, struct ttd_error *error)
{
    *list = (struct heap_snapshot_list){.count = 0};
    struct lister lister = {.list = list, .hook = trace->hook, .chunk = TTD_UNKNOWN};
    struct heap_trace watched = *trace;
    struct heap_trace_stats stats;
    struct heap_trace_stats_options options = {.kinds = LISTED_KINDS};
    watched.hook = (struct heap_batch_hook){.context = &lister, .batch = snapshot_list_see_batch};
    enum ttd_status status = heap_trace_stats_find(&watched, &options, &stats, error);
    if (status != TTD_OK) {
        heap_snapshot_list_free(list);
        return status;
    }
    cut_short(&lister);
    list->outcome = stats.outcome;
    heap_trace_stats_free(&stats);
    return TTD_OK;
}

static enum ttd_status snapshot_list_finish(void *context, struct heap_arrival *arrival,
                                            struct ttd_error *error)
{
    (void)arrival;
    (void)error;
    cut_short(context);
    return TTD_OK;
}

enum ttd_status heap_snapshot_list_watch(struct heap_snapshot_list *list, struct heap_pass *pass)
{
    struct lister *lister = calloc(1, sizeof *lister);
    *list = (struct heap_snapshot_list){.lister = lister};
    if (!lister)
        return TTD_ERROR_NO_MEMORY;
    *lister = (struct lister){.list = list, .chunk = TTD_UNKNOWN};
    struct heap_watcher watcher = {.observer.context = lister,
                                   .to = ttd_position_max(),
                                   .batch = snapshot_list_see_batch,
                                   .kinds = LISTED_KINDS,
                                   .finish = snapshot_list_finish};
    heap_pass_add(pass, &watcher);
    return TTD_OK;
}

void heap_snapshot_list_free(struct heap_snapshot_list *list)
{
    free(list->lister);
    free(list->snapshots);
    *list = (struct heap_snapshot_list){.count = 0};
}
