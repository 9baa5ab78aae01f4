/* SPDX-License-Identifier: MIT */
#include "travel/islands.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "common/search.h"

const char *heap_mark_kind_name(enum heap_mark_kind kind)
{
    static const char *const names[] = {"event",     "mark",   "open",    "close", "start", "stop",
                                        "throttled", "paused", "resumed", "reset", "memory"};
    return names[kind];
}

/* Reads a field of an event of the format's own clients. */
static uint64_t islands_field_of(const uint8_t *data, size_t index)
{
    uint64_t value = 0;
    for (size_t i = 8; i-- > 0;)
        value = value << 8 | data[8 * index + i];
    return value;
}

static bool islands_mark_is_of_client(const struct ttd_user_event *event, const char *client)
{
    return memcmp(event->client, client, sizeof event->client) == 0;
}

/* Takes the fields that come before the user's data, and the client among them. */
static void islands_take_fields(struct heap_mark *mark, size_t fields)
{
    const struct ttd_user_event *event = mark->event;
    memcpy(mark->client, event->data + 8, sizeof mark->client);
    mark->data.data += 8 * fields;
    mark->data.size -= 8 * fields;
}

struct heap_mark heap_mark_of(const struct ttd_user_event *event)
{
    struct heap_mark mark = {.event = event, .data = {(const char *)event->data, event->size}};
    memcpy(mark.client, event->client, sizeof mark.client);
    uint64_t kind = event->size >= 8 ? islands_field_of(event->data, 0) : 0;
    if (islands_mark_is_of_client(event, TTD_CLIENT_MARKS)) {
        mark.kind = HEAP_MARK_OUTSIDE;
        memset(mark.client, 0, sizeof mark.client);
    } else if (islands_mark_is_of_client(event, TTD_CLIENT_CLIENTS) &&
               event->size >= 8 * TTD_CLIENT_EVENT_FIELDS && kind >= TTD_CLIENT_OPENED &&
               kind <= TTD_CLIENT_CLOSED) {
        mark.kind = kind == TTD_CLIENT_OPENED ? HEAP_MARK_OPENED : HEAP_MARK_CLOSED;
        islands_take_fields(&mark, TTD_CLIENT_EVENT_FIELDS);
    } else if (islands_mark_is_of_client(event, TTD_CLIENT_THREADS) &&
               event->size >= 8 * TTD_THREAD_EVENT_FIELDS && kind >= TTD_THREAD_STARTED &&
               kind <= TTD_THREAD_RESET) {
        mark.kind = (enum heap_mark_kind)(HEAP_MARK_STARTED + (kind - TTD_THREAD_STARTED));
        mark.activity = islands_field_of(event->data, 3);
        mark.maximum = islands_field_of(event->data, 4);
        islands_take_fields(&mark, TTD_THREAD_EVENT_FIELDS);
    } else if (islands_mark_is_of_client(event, TTD_CLIENT_MEMORY) &&
               event->size == 8 * TTD_MEMORY_EVENT_FIELDS) {
        mark.kind = HEAP_MARK_MEMORY;
        memset(mark.client, 0, sizeof mark.client);
        for (size_t i = 0; i < TTD_MEMORY_EVENT_FIELDS; i++)
            mark.memory[i] = islands_field_of(event->data, i);
    }
    return mark;
}

bool heap_mark_is_named(const struct heap_mark *mark, const char *text)
{
    size_t size = strlen(text);
    return mark->data.size == size && memcmp(mark->data.data, text, size) == 0;
}

static bool islands_passes(const struct heap_island_filter *filter, const uint8_t client[16],
                           uint64_t activity)
{
    return (!filter->has_client || memcmp(client, filter->client, sizeof filter->client) == 0) &&
           (!filter->has_activity || activity == filter->activity);
}

static bool islands_passes_nobody(const struct heap_island_filter *filter)
{
    static const uint8_t nobody[16];
    return islands_passes(filter, nobody, 0);
}

static enum ttd_status islands_add_mark(struct heap_islands *islands, const struct heap_mark *mark)
{
    bool begins = mark->kind == HEAP_MARK_STARTED;
    if ((!begins && mark->kind != HEAP_MARK_STOPPED) || !mark->event->thread)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&islands->items, &islands->capacity,
                                        islands->count + 1, sizeof *islands->items);
    if (status != TTD_OK)
        return status;
    islands->items[islands->count++] = (struct heap_island){
        .thread = mark->event->thread,
        .begin = mark->event->position,
        .is_wanted = begins ? islands_passes(&islands->filter, mark->client, mark->activity)
                            : islands_passes_nobody(&islands->filter)};
    return TTD_OK;
}

static int islands_compare(const void *a, const void *b)
{
    const struct heap_island *x = a;
    const struct heap_island *y = b;
    return x->thread != y->thread ? (x->thread > y->thread) - (x->thread < y->thread)
                                  : ttd_position_compare(x->begin, y->begin);
}

enum ttd_status heap_islands_read(const struct heap_trace *trace,
                                  const struct heap_island_filter *filter,
                                  struct heap_islands *islands, struct ttd_error *error)
{
    *islands = (struct heap_islands){.filter = *filter};
    enum ttd_status status = ttd_reader_rewind(trace->reader, TTD_KIND_BIT(TTD_KIND_USER_EVENTS));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, error);
        for (size_t i = 0;
             status == TTD_OK && batch.kind == TTD_KIND_USER_EVENTS && i < batch.count; i++) {
            struct heap_mark mark = heap_mark_of(&batch.u.user_events[i]);
            status = islands_add_mark(islands, &mark);
        }
    }
    if (islands->count)
        qsort(islands->items, islands->count, sizeof *islands->items, islands_compare);
    if (heap_is_over(status))
        return TTD_OK;
    heap_islands_free(islands);
    return status;
}

void heap_islands_free(struct heap_islands *islands)
{
    free(islands->items);
    *islands = (struct heap_islands){.items = NULL};
}

bool heap_islands_want(const struct heap_islands *islands, ttd_id thread,
                       struct ttd_position position)
{
    struct heap_island key = {.thread = thread, .begin = position};
    size_t after = 0, end = islands->count;
    SEARCH_SORTED(after, end, middle, islands_compare(&islands->items[middle], &key) <= 0);
    const struct heap_island *island = after ? &islands->items[after - 1] : NULL;
    return island && island->thread == thread ? island->is_wanted
                                              : islands_passes_nobody(&islands->filter);
}

bool heap_islands_have_any(const struct heap_islands *islands)
{
    for (size_t i = 0; i < islands->count; i++)
        if (islands->items[i].is_wanted)
            return true;
    return islands_passes_nobody(&islands->filter);
}

/* ---- Samples of memory ---- */

static void islands_raise(uint64_t *most, uint64_t value)
{
    *most = value > *most ? value : *most;
}

enum ttd_status heap_memory_samples_add(struct heap_memory_samples *samples,
                                        const struct heap_mark *mark)
{
    enum ttd_status status = grow_array((void **)&samples->items, &samples->capacity,
                                        samples->count + 1, sizeof *samples->items);
    if (status != TTD_OK)
        return status;
    struct heap_memory_sample *sample = &samples->items[samples->count++];
    *sample = (struct heap_memory_sample){.position = mark->event->position,
                                          .wall_time = mark->event->wall_time,
                                          .resident = mark->memory[TTD_MEMORY_RESIDENT],
                                          .mapped = mark->memory[TTD_MEMORY_MAPPED]};
    islands_raise(&samples->most_resident, sample->resident);
    islands_raise(&samples->most_resident, mark->memory[TTD_MEMORY_MOST_RESIDENT]);
    islands_raise(&samples->most_mapped, sample->mapped);
    return TTD_OK;
}

enum ttd_status heap_memory_samples_read(const struct heap_trace *trace,
                                         struct heap_memory_samples *samples,
                                         struct ttd_error *error)
{
    *samples = (struct heap_memory_samples){.items = NULL};
    enum ttd_status status = ttd_reader_rewind(trace->reader, TTD_KIND_BIT(TTD_KIND_USER_EVENTS));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, error);
        for (size_t i = 0;
             status == TTD_OK && batch.kind == TTD_KIND_USER_EVENTS && i < batch.count; i++) {
            struct heap_mark mark = heap_mark_of(&batch.u.user_events[i]);
            if (mark.kind == HEAP_MARK_MEMORY)
                status = heap_memory_samples_add(samples, &mark);
        }
    }
    if (heap_is_over(status))
        return TTD_OK;
    heap_memory_samples_free(samples);
    return status;
}

void heap_memory_samples_free(struct heap_memory_samples *samples)
{
    free(samples->items);
    *samples = (struct heap_memory_samples){.items = NULL};
}
