/* SPDX-License-Identifier: MIT */
#include "analyses/trace/trace_stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "heap/site_table.h"

static int clients_compare(const struct heap_client *a, const struct heap_client *b)
{
    int order = memcmp(a->client, b->client, sizeof a->client);
    return order ? order : (a->activity > b->activity) - (a->activity < b->activity);
}

/* Returns the index of a record, or where it belongs. */
static size_t clients_lower_bound(const struct heap_client_list *list,
                                  const struct heap_client *record)
{
    size_t first = 0, count = list->count;
    while (count) {
        size_t half = count / 2;
        bool is_before = clients_compare(&list->items[first + half], record) < 0;
        first += is_before ? half + 1 : 0;
        count = is_before ? count - half - 1 : half;
    }
    return first;
}

static enum ttd_status clients_add(struct heap_client_list *list, const struct heap_client *record)
{
    size_t index = clients_lower_bound(list, record);
    struct heap_client *client = index < list->count ? &list->items[index] : NULL;
    if (client && clients_compare(client, record) == 0) {
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
        status = clients_add(&clients->clients, &record);
    record.activity = mark->activity;
    return status == TTD_OK && mark->kind == HEAP_MARK_STARTED
               ? clients_add(&clients->activities, &record)
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

static void add_sizes(struct heap_trace_stats_chunks *sizes, const struct ttd_chunk *chunk)
{
    sizes->chunks++;
    sizes->records += chunk->record_count;
    sizes->stored_bytes += chunk->stored_size;
    sizes->raw_bytes += chunk->raw_size;
}

static void add_chunk(struct heap_trace_stats *stats, const struct ttd_chunk *chunk)
{
    add_sizes(&stats->kinds[chunk->kind < HEAP_TRACE_STATS_KINDS ? chunk->kind : 0], chunk);
    add_sizes(&stats->all, chunk);
}

static enum ttd_status thread_of(struct heap_trace_stats *stats, ttd_id id,
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

static enum ttd_status add_events(struct heap_trace_stats *stats, const struct ttd_batch *batch)
{
    struct heap_trace_stats_thread *thread = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_event *event = &batch->u.events[i];
        if (!thread || thread->id != event->thread) {
            enum ttd_status status = thread_of(stats, event->thread, &thread);
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

static enum ttd_status add_marks(struct heap_trace_stats *stats, const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    stats->user_events += batch->count;
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        struct heap_mark mark = heap_mark_of(&batch->u.user_events[i]);
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
        return add_marks(stats, batch);
    return batch->kind == TTD_KIND_EVENTS ? add_events(stats, batch) : TTD_OK;
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
        if (status == TTD_OK)
            add_chunk(stats, &chunk);
    }
    return heap_is_over(status) || status == TTD_ERROR_UNSUPPORTED ? TTD_OK : status;
}

/* Adds the loss behind the last chunk, which the reader knows only when it has been there. */
static void end_reading(struct heap_trace_stats *stats, const struct ttd_reader *reader)
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
    end_reading(stats, arrival->cursor.reader);
    return TTD_OK;
}

enum ttd_status heap_trace_stats_watch(struct heap_trace_stats *stats, struct ttd_reader *reader,
                                       struct heap_pass *pass, struct ttd_error *error)
{
    struct heap_watcher watcher = {.observer.context = stats,
                                   .to = ttd_position_max(),
                                   .batch = stats_see_batch,
                                   .kinds = COUNTED_KINDS,
                                   .finish = stats_finish};
    heap_pass_add(pass, &watcher);
    return stats_begin(stats, reader, error);
}

enum ttd_status heap_trace_stats_find(const struct heap_trace *trace,
                                      const struct heap_trace_stats_options *options,
                                      struct heap_trace_stats *stats, struct ttd_error *error)
{
    enum ttd_status status = stats_begin(stats, trace->reader, error);
    if (status == TTD_OK)
        status = stats_read_all(stats, trace, options->kinds, error);
    end_reading(stats, trace->reader);
    if (status != TTD_OK)
        heap_trace_stats_free(stats);
    return status;
}

void heap_trace_stats_free(struct heap_trace_stats *stats)
{
    free(stats->threads);
    stats->threads = NULL;
    heap_clients_free(&stats->clients);
    map_free(&stats->thread_index);
}
