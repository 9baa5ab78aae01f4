/* SPDX-License-Identifier: MIT */
#include "analyses/trace/trace_stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "common/search.h"
#include "heap/site_table.h"

static int stats_clients_compare(const struct heap_client *a, const struct heap_client *b)
{
    int order = memcmp(a->client, b->client, sizeof a->client);
    return order ? order : (a->activity > b->activity) - (a->activity < b->activity);
}

static enum ttd_status stats_clients_add(struct heap_client_list *list,
                                         const struct heap_client *record)
{
    size_t index = 0, end = list->count;
    SEARCH_SORTED(index, end, middle, stats_clients_compare(&list->items[middle], record) < 0);
    struct heap_client *client = index < list->count ? &list->items[index] : NULL;
    if (client && stats_clients_compare(client, record) == 0) {
        client->count++;
        if (ttd_position_compare(record->first, client->first) < 0)
            client->first = record->first;
        if (ttd_position_compare(record->last, client->last) > 0)
            client->last = record->last;
        return TTD_OK;
    }
    if (list->count == HEAP_CLIENTS_MAX) {
        list->is_cut = true;
        return TTD_OK;
    }
    enum ttd_status status =
        grow_array((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items);
    if (status != TTD_OK)
        return status;
    client = &list->items[index];
    memmove(client + 1, client, (list->count - index) * sizeof *client);
    *client = *record;
    list->count++;
    return TTD_OK;
}

enum ttd_status heap_clients_add(struct heap_clients *clients, const struct heap_mark *mark)
{
    static const uint8_t nobody[16];
    struct heap_client record = {
        .count = 1, .first = mark->event->position, .last = mark->event->position};
    memcpy(record.client, mark->client, sizeof record.client);
    enum ttd_status status = TTD_OK;
    if (memcmp(mark->client, nobody, sizeof nobody) != 0)
        status = stats_clients_add(&clients->clients, &record);
    record.activity = mark->activity;
    return status == TTD_OK && mark->kind == HEAP_MARK_STARTED
               ? stats_clients_add(&clients->activities, &record)
               : status;
}

void heap_clients_free(struct heap_clients *clients)
{
    free(clients->clients.items);
    free(clients->activities.items);
    *clients = (struct heap_clients){.clients.items = NULL};
}

#define COUNTED_KINDS                                                                              \
    (TTD_KIND_BIT(TTD_KIND_EVENTS) | TTD_KIND_BIT(TTD_KIND_USER_EVENTS) |                          \
     TTD_KIND_BIT(TTD_KIND_LOSSES) | TTD_KIND_BIT(TTD_KIND_FATAL_SIGNALS) |                        \
     TTD_KIND_BIT(TTD_KIND_END))

static void stats_add_sizes(struct heap_trace_stats_chunks *sizes, const struct ttd_chunk *chunk)
{
    sizes->chunks++;
    sizes->records += chunk->record_count;
    sizes->stored_bytes += chunk->stored_size;
    sizes->raw_bytes += chunk->raw_size;
}

static enum ttd_status stats_thread_of(struct heap_trace_stats *stats, ttd_id id,
                                       struct heap_trace_stats_thread **thread)
{
    uint32_t index = map_get(&stats->thread_index, id, 0);
    if (index == MAP_NONE) {
        enum ttd_status status = grow_array((void **)&stats->threads, &stats->thread_capacity,
                                            stats->thread_count + 1, sizeof *stats->threads);
        if (status == TTD_OK)
            status = map_set(&stats->thread_index, id, 0, (uint32_t)stats->thread_count);
        if (status != TTD_OK)
            return status;
        index = (uint32_t)stats->thread_count++;
        stats->threads[index] = (struct heap_trace_stats_thread){.id = id};
    }
    *thread = &stats->threads[index];
    return TTD_OK;
}

/* Calls of several threads overlap: the last event need not end last. */
static void stats_add_span(struct heap_trace_stats *stats, const struct ttd_event *event,
                           bool returned)
{
    struct ttd_position end = returned ? event->time_end : event->time_start;
    if (ttd_position_compare(event->time_start, stats->first) < 0)
        stats->first = event->time_start;
    if (ttd_position_compare(end, stats->last) > 0)
        stats->last = end;
}

static void stats_add_event(struct heap_trace_stats *stats, struct heap_trace_stats_thread *thread,
                            const struct ttd_event *event)
{
    bool returned = ttd_event_returned(event);
    stats->actions[event->action]++;
    thread->events++;
    thread->actions[event->action]++;
    if (!returned)
        stats->unfinished++;
    else if (!event->result)
        stats->failed++;
    else if (event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC)
        stats->bytes_requested = heap_add(stats->bytes_requested, event->size);
    stats_add_span(stats, event, returned);
}

static enum ttd_status stats_add_events(struct heap_trace_stats *stats,
                                        const struct ttd_batch *batch)
{
    struct heap_trace_stats_thread *thread = NULL;
    for (size_t i = 0; i < batch->count && !stats->omits_calls; i++) {
        const struct ttd_event *event = &batch->u.events[i];
        if (!thread || thread->id != event->thread) {
            enum ttd_status status = stats_thread_of(stats, event->thread, &thread);
            if (status != TTD_OK)
                return status;
        }
        stats_add_event(stats, thread, event);
    }
    stats->events += batch->count;
    if (batch->count)
        stats->last_wall_time = batch->u.events[batch->count - 1].wall_time;
    return TTD_OK;
}

static enum ttd_status stats_add_marks(struct heap_trace_stats *stats,
                                       const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        struct heap_mark mark = heap_mark_of(&batch->u.user_events[i]);
        if (mark.kind == HEAP_MARK_MEMORY) {
            status = heap_memory_samples_add(&stats->memory, &mark);
            continue;
        }
        stats->user_events++;
        status = heap_clients_add(&stats->clients, &mark);
    }
    return status;
}

static enum ttd_status stats_see_batch(void *context, const struct ttd_batch *batch)
{
    struct heap_trace_stats *stats = context;
    stats->has_end = batch->kind == TTD_KIND_END;
    if (batch->kind == TTD_KIND_LOSSES)
        heap_losses_add(&stats->outcome.losses, batch);
    if (batch->kind == TTD_KIND_FATAL_SIGNALS && batch->count) {
        stats->has_fatal_signal = true;
        stats->fatal_signal = batch->u.fatal_signals[batch->count - 1];
        stats->fatal_signal.registers = NULL;
        stats->fatal_signal.count = 0;
    }
    if (batch->kind == TTD_KIND_USER_EVENTS)
        return stats_add_marks(stats, batch);
    return batch->kind == TTD_KIND_EVENTS ? stats_add_events(stats, batch) : TTD_OK;
}

/* From header to header, without payloads: chunks whose payload is damaged are counted as well.
 * The reading that follows reports any damage in them. */
static enum ttd_status stats_read_headers(struct heap_trace_stats *stats, struct ttd_reader *reader,
                                          struct ttd_error *error)
{
    enum ttd_status status = ttd_reader_rewind(reader, TTD_KINDS_ALL);
    while (status == TTD_OK) {
        struct ttd_chunk chunk;
        status = ttd_reader_next_chunk(reader, &chunk, error);
        if (status == TTD_OK) {
            stats_add_sizes(&stats->kinds[chunk.kind < HEAP_TRACE_STATS_KINDS ? chunk.kind : 0],
                            &chunk);
            stats_add_sizes(&stats->all, &chunk);
        }
    }
    return heap_is_over(status) || status == TTD_ERROR_UNSUPPORTED ? TTD_OK : status;
}

/* Adds the loss behind the last chunk; the reader knows it only there. */
static void stats_end_reading(struct heap_trace_stats *stats, const struct ttd_reader *reader)
{
    struct ttd_loss final_loss;
    struct ttd_batch batch = {
        .kind = TTD_KIND_LOSSES, .count = 1, .synthetic = true, .u.losses = &final_loss};
    if (!stats->is_unsupported && ttd_reader_rest(reader, &final_loss))
        heap_losses_add(&stats->outcome.losses, &batch);
    stats->outcome.position = stats->last;
    stats->outcome.reached_end = true;
}

/* The reading is checked, so that the reader knows afterwards whether the trace is intact. */
static enum ttd_status stats_read_all(struct heap_trace_stats *stats,
                                      const struct heap_trace *trace, uint32_t kinds,
                                      struct ttd_error *error)
{
    enum ttd_status status = ttd_reader_rewind_checked(trace->reader, kinds | COUNTED_KINDS);
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, error);
        if (status == TTD_OK && trace->hook.batch)
            status = trace->hook.batch(trace->hook.context, &batch);
        if (status == TTD_OK)
            status = stats_see_batch(stats, &batch);
    }
    stats->is_unsupported = status == TTD_ERROR_UNSUPPORTED;
    stats->outcome.truncated = status != TTD_END && heap_is_over(status);
    if (stats->is_unsupported || stats->outcome.truncated)
        stats->outcome.error = *error;
    return stats->is_unsupported || heap_is_over(status) ? TTD_OK : status;
}

static enum ttd_status stats_begin(struct heap_trace_stats *stats, struct ttd_reader *reader,
                                   struct ttd_error *error)
{
    memset(stats, 0, sizeof *stats);
    stats->first = ttd_position_max();
    map_init(&stats->thread_index);
    return stats_read_headers(stats, reader, error);
}

/* A pass fails where something is not supported. */
static enum ttd_status stats_finish(void *context, struct heap_arrival *arrival,
                                    struct ttd_error *error)
{
    struct heap_trace_stats *stats = context;
    (void)error;
    stats->outcome.truncated = arrival->cursor.truncated;
    stats->outcome.error = arrival->cursor.error;
    stats_end_reading(stats, arrival->cursor.reader);
    return TTD_OK;
}

enum ttd_status heap_trace_stats_watch(struct heap_trace_stats *stats, bool omits_calls,
                                       struct ttd_reader *reader, struct heap_pass *pass,
                                       struct ttd_error *error)
{
    struct heap_watcher watcher = {.observer.context = stats,
                                   .to = ttd_position_max(),
                                   .batch = stats_see_batch,
                                   .kinds = COUNTED_KINDS,
                                   .finish = stats_finish};
    heap_pass_add(pass, &watcher);
    enum ttd_status status = stats_begin(stats, reader, error);
    stats->omits_calls = omits_calls;
    return status;
}

enum ttd_status heap_trace_stats_find(const struct heap_trace *trace,
                                      const struct heap_trace_stats_options *options,
                                      struct heap_trace_stats *stats, struct ttd_error *error)
{
    enum ttd_status status = stats_begin(stats, trace->reader, error);
    if (status == TTD_OK)
        status = stats_read_all(stats, trace, options->kinds, error);
    stats_end_reading(stats, trace->reader);
    if (status != TTD_OK)
        heap_trace_stats_free(stats);
    return status;
}

void heap_trace_stats_free(struct heap_trace_stats *stats)
{
    free(stats->threads);
    stats->threads = NULL;
    heap_clients_free(&stats->clients);
    heap_memory_samples_free(&stats->memory);
    map_free(&stats->thread_index);
}

#define PART_KINDS                                                                                 \
    (TTD_KIND_BIT(TTD_KIND_PAGES) | TTD_KIND_BIT(TTD_KIND_MEMORY_MAP) |                            \
     TTD_KIND_BIT(TTD_KIND_REGIONS) | TTD_KIND_BIT(TTD_KIND_REFERENCES) |                          \
     TTD_KIND_BIT(TTD_KIND_FRAMES) | TTD_KIND_BIT(TTD_KIND_CLASSES) |                              \
     TTD_KIND_BIT(TTD_KIND_BLOCK_HEADERS))

#define LISTED_KINDS (PART_KINDS | TTD_KIND_BIT(TTD_KIND_SNAPSHOTS))

/** The list in the making. */
struct lister {
    struct heap_snapshot_list *list;
    /** The hook of the trace; it sees each batch first; none in a pass. */
    struct heap_batch_hook hook;
    /** The parts since the last snapshot. */
    struct heap_snapshot_parts parts;
    /** The chunk that the last batch was of: its bytes count once. */
    uint64_t chunk;
};

/** The snapshot that a batch is a part of; 0 for pages: they do not name it. */
static uint32_t stats_snapshot_list_batch_snapshot(const struct ttd_batch *batch)
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

static uint64_t stats_mapped_bytes(const struct ttd_memory_map *map)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < map->count; i++)
        if (map->runs[i].page != TTD_PAGE_UNREADABLE && map->runs[i].page != TTD_PAGE_NOT_CAPTURED)
            bytes = heap_add(bytes, map->runs[i].page_count * map->page_size);
    return bytes;
}

/* Adds the records of a batch to the parts of its snapshot. */
static void stats_snapshot_list_add_part(struct heap_snapshot_parts *parts,
                                         const struct ttd_batch *batch)
{
    switch (batch->kind) {
    case TTD_KIND_PAGES:
        parts->page_bytes += (uint64_t)batch->u.pages->count * batch->u.pages->page_size;
        break;
    case TTD_KIND_MEMORY_MAP:
        parts->mapped_bytes =
            heap_add(parts->mapped_bytes, stats_mapped_bytes(batch->u.memory_map));
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

/* Forgets parts whose snapshot did not follow. */
static void stats_cut_short(struct lister *lister)
{
    lister->list->cut_short += lister->parts.number != 0;
    lister->parts = (struct heap_snapshot_parts){.number = 0};
}

static enum ttd_status stats_add_snapshot(struct lister *lister,
                                          const struct ttd_snapshot *snapshot)
{
    struct heap_snapshot_list *list = lister->list;
    enum ttd_status status = grow_array((void **)&list->snapshots, &list->capacity, list->count + 1,
                                        sizeof *list->snapshots);
    if (status != TTD_OK)
        return status;
    if (lister->parts.number && lister->parts.number != snapshot->number)
        stats_cut_short(lister);
    struct heap_listed_snapshot *listed = &list->snapshots[list->count++];
    *listed = (struct heap_listed_snapshot){*snapshot, lister->parts};
    if (listed->parts.regions != snapshot->regions ||
        listed->parts.references != snapshot->references)
        listed->snapshot.flags |= TTD_SNAPSHOT_INCOMPLETE;
    lister->parts = (struct heap_snapshot_parts){.number = 0};
    return TTD_OK;
}

static enum ttd_status stats_snapshot_list_see_batch(void *context, const struct ttd_batch *batch)
{
    struct lister *lister = context;
    enum ttd_status status = TTD_OK;
    if (lister->hook.batch)
        status = lister->hook.batch(lister->hook.context, batch);
    bool is_part = PART_KINDS & TTD_KIND_BIT(batch->kind);
    if (is_part) {
        uint32_t number = stats_snapshot_list_batch_snapshot(batch);
        if (number && lister->parts.number && number != lister->parts.number)
            stats_cut_short(lister);
        if (number)
            lister->parts.number = number;
        stats_snapshot_list_add_part(&lister->parts, batch);
    }
    if ((is_part || batch->kind == TTD_KIND_SNAPSHOTS) && batch->chunk.number != lister->chunk) {
        lister->chunk = batch->chunk.number;
        lister->parts.stored_bytes += batch->chunk.stored_size;
    }
    for (size_t i = 0; batch->kind == TTD_KIND_SNAPSHOTS && i < batch->count && status == TTD_OK;
         i++)
        status = stats_add_snapshot(lister, &batch->u.snapshots[i]);
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
    watched.hook =
        (struct heap_batch_hook){.context = &lister, .batch = stats_snapshot_list_see_batch};
    enum ttd_status status = heap_trace_stats_find(&watched, &options, &stats, error);
    if (status != TTD_OK) {
        heap_snapshot_list_free(list);
        return status;
    }
    stats_cut_short(&lister);
    list->outcome = stats.outcome;
    heap_trace_stats_free(&stats);
    return TTD_OK;
}

static enum ttd_status stats_snapshot_list_finish(void *context, struct heap_arrival *arrival,
                                                  struct ttd_error *error)
{
    (void)arrival;
    (void)error;
    stats_cut_short(context);
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
                                   .batch = stats_snapshot_list_see_batch,
                                   .kinds = LISTED_KINDS,
                                   .finish = stats_snapshot_list_finish};
    heap_pass_add(pass, &watcher);
    return TTD_OK;
}

void heap_snapshot_list_free(struct heap_snapshot_list *list)
{
    free(list->lister);
    free(list->snapshots);
    *list = (struct heap_snapshot_list){.count = 0};
}
