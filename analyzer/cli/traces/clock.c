/* SPDX-License-Identifier: MIT */
#include "cli/traces/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "common/search.h"
#include "report/writers/out.h"

/* Precision of a time, as a fraction of the duration: more digits say nothing to people. */
#define FINE_PARTS 10000

/* Limit on the times that passes note. A trace whose times never go back needs at most half. */
#define NOTES_MAX (2 * FINE_PARTS)

/* Limits on look-ups, on chunks that are read for their times, and on those that are read for the
 * times of all events: these are the first ones of a long trace. */
#define LOOKUPS_MAX    64
#define READS_MAX      64
#define FINE_READS_MAX 16

/* Returns the smallest power of ten that is `least` nanoseconds or more, but at most a second. */
static uint64_t clock_unit_of(uint64_t least)
{
    uint64_t unit = 1;
    while (unit < least && unit < TIME_SECOND)
        unit *= 10;
    return unit;
}

void clock_begin(struct trace_clock *clock, uint64_t duration)
{
    clock->unit = clock_unit_of(duration / FINE_PARTS);
}

void clock_free(struct trace_clock *clock)
{
    for (size_t i = 0; i < clock->count; i++)
        free(clock->chunks[i].events);
    free(clock->chunks);
    *clock = (struct trace_clock){0};
}

static struct clock_event clock_event_of(const struct ttd_event *event)
{
    return (struct clock_event){ttd_event_position(event), event->wall_time};
}

static struct clock_chunk clock_chunk_of(const struct ttd_chunk *chunk, struct clock_event first)
{
    return (struct clock_chunk){.first = first,
                                .last = chunk->last_position,
                                .first_event = chunk->first_record,
                                .next_event = chunk->first_record + chunk->record_count,
                                .noted = chunk->first_record,
                                .next_time = TTD_UNKNOWN};
}

static bool clock_begins_chunk(const struct ttd_batch *batch)
{
    return batch->kind == TTD_KIND_EVENTS && batch->count &&
           batch->u.events[0].number == batch->chunk.first_record;
}

/* Inserts a chunk; NULL without memory. */
static struct clock_chunk *clock_insert(struct trace_clock *clock, size_t index,
                                        const struct clock_chunk *chunk)
{
    if (grow_array((void **)&clock->chunks, &clock->capacity, clock->count + 1,
                   sizeof *clock->chunks) != TTD_OK) {
        clock->has_failed = true;
        return NULL;
    }
    struct clock_chunk *inserted = &clock->chunks[index];
    memmove(inserted + 1, inserted, (clock->count++ - index) * sizeof *inserted);
    *inserted = *chunk;
    return inserted;
}

/* Whether eight events are within a unit of time. Their distances or-ed are no smaller than any of
 * them: most of the time, one comparison does. */
static bool clock_are_within(const struct ttd_event *events, uint64_t begin, uint64_t unit)
{
    uint64_t distances = 0;
    for (size_t i = 0; i < 8; i++)
        distances |= events[i].wall_time - begin;
    return distances < unit;
}

/* Adds an event that changes the time. False without memory, or with `max` events. */
static bool clock_add_event(struct clock_chunk *chunk, struct clock_event event, size_t max)
{
    if (chunk->count >= max || grow_array((void **)&chunk->events, &chunk->capacity,
                                          chunk->count + 1, sizeof *chunk->events) != TTD_OK)
        return false;
    chunk->events[chunk->count++] = event;
    return true;
}

/* Notes the events of a batch that begin another time, as times are written: a multiple of the
 * unit. They give the time of every event of the batch exactly, and in a trace whose times do not
 * go back there are at most FINE_PARTS. False without memory or after too many. */
static bool clock_note_batch(struct clock_chunk *chunk, const struct ttd_batch *batch,
                             uint64_t unit, size_t max)
{
    const struct ttd_event *event = batch->u.events;
    const struct ttd_event *end = event + batch->count;
    uint64_t time = chunk->count ? chunk->events[chunk->count - 1].time : chunk->first.time;
    uint64_t begin = time - time % unit;
    while (event < end) {
        if (end - event >= 8 && clock_are_within(event, begin, unit)) {
            event += 8;
            continue;
        }
        if (event->wall_time - begin >= unit) {
            if (!clock_add_event(chunk, clock_event_of(event), max))
                return false;
            begin = event->wall_time - event->wall_time % unit;
        }
        event++;
    }
    chunk->noted = end[-1].number + 1;
    return true;
}

/* Notes the times of a batch that continues the current chunk. */
static void clock_note_current(struct trace_clock *clock, const struct ttd_batch *batch)
{
    if (clock->current >= clock->count || !clock->unit || batch->kind != TTD_KIND_EVENTS ||
        !batch->count)
        return;
    struct clock_chunk *chunk = &clock->chunks[clock->current];
    if (batch->u.events[0].number != chunk->noted ||
        batch->chunk.first_record != chunk->first_event)
        return;
    size_t count = chunk->count;
    if (!clock_note_batch(chunk, batch, clock->unit, count + NOTES_MAX - clock->note_count))
        clock->unit = 0;
    clock->note_count += chunk->count - count;
}

static void clock_set_next(struct clock_chunk *chunk, const struct clock_event *next)
{
    chunk->next_time = next->time;
    chunk->next_position = next->position;
}

/* Orders chunks by position; of one that is there twice, the one with all notes comes first. */
static int clock_compare_chunks(const void *left, const void *right)
{
    const struct clock_chunk *a = left;
    const struct clock_chunk *b = right;
    int order = ttd_position_compare(a->first.position, b->first.position);
    return order ? order : (b->noted == b->next_event) - (a->noted == a->next_event);
}

/* Puts the chunks in order, each once. */
static void clock_sort(struct trace_clock *clock)
{
    size_t count = 0;
    if (!clock->is_unsorted)
        return;
    qsort(clock->chunks, clock->count, sizeof *clock->chunks, clock_compare_chunks);
    for (size_t i = 0; i < clock->count; i++) {
        struct clock_chunk *chunk = &clock->chunks[i];
        struct clock_chunk *before = count ? &clock->chunks[count - 1] : NULL;
        if (before && ttd_position_compare(before->first.position, chunk->first.position) == 0) {
            free(chunk->events);
            continue;
        }
        if (before && before->next_event == chunk->first_event)
            clock_set_next(before, &chunk->first);
        clock->chunks[count++] = *chunk;
    }
    clock->count = count;
    clock->is_unsorted = false;
}

/* Finds the last chunk that begins at or before a position; SIZE_MAX if there is none. */
static size_t clock_find_chunk(const struct trace_clock *clock, struct ttd_position position)
{
    size_t low = 0, high = clock->count;
    SEARCH_SORTED(low, high, middle,
                  ttd_position_compare(clock->chunks[middle].first.position, position) <= 0);
    return low - 1;
}

static void clock_see_chunk(struct trace_clock *clock, const struct ttd_batch *batch)
{
    struct clock_chunk chunk = clock_chunk_of(&batch->chunk, clock_event_of(&batch->u.events[0]));
    clock_sort(clock);
    size_t index = clock_find_chunk(clock, chunk.first.position);
    struct clock_chunk *before = index != SIZE_MAX ? &clock->chunks[index] : NULL;
    clock->current = index;
    /* Passes after the first see the same chunks again. */
    if (before && ttd_position_compare(chunk.first.position, before->first.position) == 0)
        return;
    clock->current++;
    if (before && before->next_event == chunk.first_event)
        clock_set_next(before, &chunk.first);
    if (clock->current < clock->count &&
        clock->chunks[clock->current].first_event == chunk.next_event)
        clock_set_next(&chunk, &clock->chunks[clock->current].first);
    clock_insert(clock, clock->current, &chunk);
}

void clock_see(struct trace_clock *clock, const struct ttd_batch *batch)
{
    if (batch->kind == TTD_KIND_EVENTS && batch->count &&
        batch->u.events[batch->count - 1].wall_time > clock->newest)
        clock->newest = batch->u.events[batch->count - 1].wall_time;
    if (clock_begins_chunk(batch) && !clock->has_failed)
        clock_see_chunk(clock, batch);
    clock_note_current(clock, batch);
}

/* Notes the times that a netted chunk lists, as clock_note_batch() does. */
static bool clock_note_net(struct trace_clock *clock, struct clock_chunk *chunk,
                           const struct ttd_netted *netted)
{
    uint64_t begin = chunk->first.time - chunk->first.time % clock->unit;
    for (size_t i = 1; i < netted->time_count; i++) {
        struct clock_event event = {netted->times[i].position, netted->times[i].wall_time};
        if (event.time - begin < clock->unit)
            continue;
        if (!clock_add_event(chunk, event, NOTES_MAX - clock->note_count))
            return false;
        begin = event.time - event.time % clock->unit;
    }
    chunk->noted = chunk->next_event;
    clock->note_count += chunk->count;
    return true;
}

void clock_see_net(struct trace_clock *clock, const struct ttd_chunk *chunk,
                   const struct ttd_netted *netted)
{
    if (clock->has_failed || !netted->time_count)
        return;
    struct clock_event first = {netted->times[0].position, netted->times[0].wall_time};
    struct clock_chunk noted = clock_chunk_of(chunk, first);
    uint64_t last = netted->times[netted->time_count - 1].wall_time;
    clock->newest = last > clock->newest ? last : clock->newest;
    if (clock->unit && !clock_note_net(clock, &noted, netted))
        clock->unit = 0;
    if (!clock_insert(clock, clock->count, &noted))
        free(noted.events);
    clock->is_unsorted = true;
}

/* Notes the times of a chunk that no pass has seen to its end. */
static void clock_read_events(struct clock_chunk *chunk, struct ttd_reader *reader, uint64_t unit)
{
    struct ttd_error error;
    struct ttd_batch batch;
    chunk->count = 0;
    chunk->noted = chunk->first_event;
    if (ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_EVENTS)) != TTD_OK ||
        ttd_reader_seek(reader, chunk->first.position, &error) != TTD_OK)
        return;
    /* To begin with the next chunk costs as much as all the rest of this one. */
    while (chunk->noted != chunk->next_event && ttd_reader_next(reader, &batch, &error) == TTD_OK) {
        if (batch.kind != TTD_KIND_EVENTS)
            continue;
        if (batch.chunk.first_record != chunk->first_event ||
            !clock_note_batch(chunk, &batch, unit, SIZE_MAX))
            return;
    }
}

/* Returns the time of the last event at or before a position. */
static uint64_t clock_exact_time(const struct clock_chunk *chunk, struct ttd_position position)
{
    size_t low = 0, high = chunk->count;
    SEARCH_SORTED(low, high, middle,
                  ttd_position_compare(chunk->events[middle].position, position) <= 0);
    return low ? chunk->events[low - 1].time : chunk->first.time;
}

/* Reads the next batch of events; false if it does not begin a chunk. */
static bool clock_next_events(struct ttd_reader *reader, struct ttd_batch *batch)
{
    struct ttd_error error;
    while (ttd_reader_next(reader, batch, &error) == TTD_OK) {
        if (batch->kind == TTD_KIND_EVENTS)
            return clock_begins_chunk(batch);
    }
    return false;
}

/* Returns where and when the next chunk begins; after the last chunk, the end of the trace. */
static struct clock_event clock_next_begin(struct ttd_reader *reader,
                                           const struct clock_chunk *chunk, uint64_t duration)
{
    struct ttd_error error;
    struct ttd_batch batch;
    if (ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_EVENTS)) == TTD_OK &&
        ttd_reader_seek_event(reader, chunk->next_event, &error) == TTD_OK &&
        clock_next_events(reader, &batch) && batch.chunk.first_record == chunk->next_event)
        return clock_event_of(&batch.u.events[0]);
    return (struct clock_event){ttd_position_max(), duration};
}

/* Finds the chunk of a position that no pass has seen. */
static struct clock_chunk *clock_look_up(struct trace_clock *clock, struct ttd_reader *reader,
                                         struct ttd_position position)
{
    struct ttd_error error;
    struct ttd_batch batch;
    if (ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_EVENTS)) != TTD_OK ||
        ttd_reader_seek(reader, position, &error) != TTD_OK || !clock_next_events(reader, &batch))
        return NULL;
    struct clock_chunk chunk = clock_chunk_of(&batch.chunk, clock_event_of(&batch.u.events[0]));
    size_t index = clock_find_chunk(clock, chunk.first.position) + 1;
    bool is_there = index > 0 && clock->chunks[index - 1].first_event == chunk.first_event;
    return is_there ? &clock->chunks[index - 1] : clock_insert(clock, index, &chunk);
}

/* Finds the chunk of a position and the time of its end; NULL if that takes too many look-ups. */
static struct clock_chunk *clock_chunk_at(struct trace_clock *clock, struct ttd_reader *reader,
                                          uint64_t duration, struct ttd_position position)
{
    size_t index = clock_find_chunk(clock, position);
    struct clock_chunk *chunk = index != SIZE_MAX ? &clock->chunks[index] : NULL;
    bool is_noted = chunk && (ttd_position_compare(position, chunk->last) <= 0 ||
                              (chunk->next_time != TTD_UNKNOWN &&
                               ttd_position_compare(position, chunk->next_position) < 0));
    bool is_known = is_noted && chunk->next_time != TTD_UNKNOWN;
    if (!is_known && clock->lookups++ >= LOOKUPS_MAX)
        return NULL;
    if (!is_noted)
        chunk = clock_look_up(clock, reader, position);
    if (chunk && chunk->next_time == TTD_UNKNOWN) {
        struct clock_event next = clock_next_begin(reader, chunk, duration);
        clock_set_next(chunk, &next);
    }
    return chunk;
}

/* Reads a chunk for its times, once for each unit. Returns whether it is noted to its end. */
static bool clock_read_notes(struct trace_clock *clock, struct clock_chunk *chunk,
                             struct ttd_reader *reader, uint64_t unit)
{
    bool *is_read = unit == 1 ? &chunk->is_fine : &chunk->is_read;
    unsigned *reads = unit == 1 ? &clock->fine_reads : &clock->reads;
    unsigned max = unit == 1 ? FINE_READS_MAX : READS_MAX;
    if (!*is_read && *reads < max) {
        *is_read = true;
        ++*reads;
        clock_read_events(chunk, reader, unit);
    }
    return *is_read && chunk->noted == chunk->next_event;
}

/* Finds the time of a position as exactly as the unit; and more exactly where fewer than three
 * digits would be left. False if that would take too many reads. */
static bool clock_find_time(struct trace_clock *clock, struct clock_chunk *chunk,
                            struct ttd_reader *reader, uint64_t unit, struct ttd_position position,
                            uint64_t *time)
{
    uint64_t begin = chunk->first.time;
    uint64_t lasts = chunk->next_time > begin ? chunk->next_time - begin : 0;
    if (chunk->noted != chunk->next_event && lasts > unit &&
        !clock_read_notes(clock, chunk, reader, unit))
        return false;
    *time = chunk->noted == chunk->next_event ? clock_exact_time(chunk, position) : begin;
    if (*time >= 1000 * unit || unit == 1)
        return true;
    bool has_notes = clock_read_notes(clock, chunk, reader, 1);
    *time = clock_exact_time(chunk, position);
    return has_notes;
}

bool clock_text(struct trace_clock *clock, struct ttd_reader *reader, uint64_t duration,
                struct ttd_position position, char text[CLOCK_TEXT])
{
    /* A longer duration is damage, and a double could not distinguish its nanoseconds. */
    if (clock->has_failed || !duration || duration >= UINT64_C(1) << 53)
        return false;
    clock_sort(clock);
    struct clock_chunk *chunk = clock_chunk_at(clock, reader, duration, position);
    uint64_t time;
    if (!chunk || !clock_find_time(clock, chunk, reader, clock_unit_of(duration / FINE_PARTS),
                                   position, &time))
        return false;
    time_text(text, time);
    return true;
}
