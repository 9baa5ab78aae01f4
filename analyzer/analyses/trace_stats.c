/* SPDX-License-Identifier: MIT */
#include "analyses/trace_stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "heap/rows.h"

void trace_stats_init(struct trace_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    stats->first = ttd_position_max();
    map_init(&stats->thread_index);
}

void trace_stats_free(struct trace_stats *stats)
{
    free(stats->threads);
    map_free(&stats->thread_index);
}

static void add_sizes(struct trace_stats_chunks *sizes, const struct ttd_chunk *chunk)
{
    sizes->chunks++;
    sizes->items += chunk->record_count;
    sizes->stored_bytes += chunk->stored_size;
    sizes->raw_bytes += chunk->raw_size;
}

void trace_stats_add_chunk(struct trace_stats *stats, const struct ttd_chunk *chunk)
{
    add_sizes(&stats->kinds[chunk->kind < TRACE_STATS_KINDS ? chunk->kind : 0], chunk);
    add_sizes(&stats->all, chunk);
}

static enum ttd_status thread_of(struct trace_stats *stats, ttd_id id,
                                 struct trace_stats_thread **thread)
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
        stats->threads[index] = (struct trace_stats_thread){.id = id};
    }
    *thread = &stats->threads[index];
    return TTD_OK;
}

static void add_span(struct trace_stats *stats, const struct ttd_event *event)
{
    struct ttd_position end = ttd_event_returned(event) ? event->time_end : event->time_start;
    if (ttd_position_compare(event->time_start, stats->first) < 0)
        stats->first = event->time_start;
    if (ttd_position_compare(end, stats->last) > 0)
        stats->last = end;
    stats->last_wall_time = event->wall_time;
}

static void add_event(struct trace_stats *stats, struct trace_stats_thread *thread,
                      const struct ttd_event *event)
{
    stats->events++;
    stats->actions[event->action]++;
    thread->events++;
    thread->allocs += event->action == TTD_ACTION_ALLOC;
    thread->frees += event->action == TTD_ACTION_FREE;
    thread->reallocs += event->action == TTD_ACTION_REALLOC;
    if (!ttd_event_returned(event))
        stats->unfinished++;
    else if (!event->result)
        stats->failed++;
    else if (event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC)
        stats->bytes_requested = heap_add(stats->bytes_requested, event->size);
    add_span(stats, event);
}

void trace_stats_end(struct trace_stats *stats, const struct ttd_reader *reader)
{
    struct ttd_loss rest;
    struct ttd_batch batch = {
        .kind = TTD_KIND_LOSSES, .count = 1, .synthetic = true, .u.losses = &rest};
    if (ttd_reader_rest(reader, &rest))
        heap_losses_add(&stats->losses, &batch);
}

enum ttd_status trace_stats_add_batch(struct trace_stats *stats, const struct ttd_batch *batch)
{
    if (batch->kind == TTD_KIND_LOSSES)
        heap_losses_add(&stats->losses, batch);
    if (batch->kind == TTD_KIND_USER_EVENTS)
        stats->user_events += batch->count;
    if (batch->kind != TTD_KIND_EVENTS)
        return TTD_OK;
    struct trace_stats_thread *thread = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_event *event = &batch->u.events[i];
        if (!thread || thread->id != event->thread) {
            enum ttd_status status = thread_of(stats, event->thread, &thread);
            if (status != TTD_OK)
                return status;
        }
        add_event(stats, thread, event);
    }
    return TTD_OK;
}
