/* SPDX-License-Identifier: MIT */
#include <ttdtrace/advanced.h>

#include "write/write_internal.h"

/* Validation of events. The encoder skips it for an event that is just as predicted. */

/** Validates the members that only some actions have. Returns the first violation, or NULL. */
static const char *events_check_action(const struct ttd_event *event)
{
    bool allocates = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
    bool releases = event->action == TTD_ACTION_FREE || event->action == TTD_ACTION_REALLOC;
    if (event->action < TTD_ACTION_ALLOC || event->action > TTD_ACTION_DESTROY)
        return "action";
    if (event->address != 0 && (!allocates || event->result == 0))
        return "address";
    if (event->base_address != 0 && !releases)
        return "base_address";
    /* It repeats the base address: a file has only one of them. */
    if (event->previous_address != (event->action == TTD_ACTION_REALLOC ? event->base_address : 0))
        return "previous_address";
    if (event->size != 0 && !allocates && !releases)
        return "size";
    if ((event->reserve_size != 0 || event->commit_size != 0) && event->action != TTD_ACTION_CREATE)
        return "reserve_size or commit_size";
    if (event->make_read_only != 0 && event->action != TTD_ACTION_PROTECT)
        return "make_read_only";
    if (event->parameter_count > (event->parameters ? TTD_PARAMETERS_MAX : 0))
        return "parameter_count";
    return NULL;
}

/** Validates the times. Returns the first violation, or NULL. */
static const char *events_check_times(const struct ttd_writer *writer,
                                      const struct ttd_event *event)
{
    if (!ttd_position_is_valid(event->time_start))
        return "time_start";
    if (ttd_event_returned(event)) {
        if (ttd_position_compare(event->time_start, event->time_end) > 0)
            return "time_end";
    } else if (event->result != 0 ||
               ttd_position_compare(event->time_end, ttd_position_invalid()) != 0) {
        return "result of a call that never returned";
    }
    if (ttd_position_compare(ttd_event_position(event), writer->position) < 0)
        return "order of events";
    /* The division is slow, and most events have the time of the one before. */
    if (event->wall_time != writer->wall_time &&
        (event->wall_time == UINT64_MAX ||
         (writer->time_unit != 1 && event->wall_time % writer->time_unit != 0)))
        return "wall_time";
    return NULL;
}

const char *ttd_writer_check_event(const struct ttd_writer *writer, const struct ttd_event *event)
{
    if (!ttd_writer_knows(writer, event->thread, writer->threads))
        return "thread";
    if (!ttd_writer_knows(writer, event->heap, writer->heaps))
        return "heap";
    if (!ttd_writer_knows(writer, event->stack, writer->stack_count))
        return "stack";
    const char *violation = events_check_action(event);
    return violation ? violation : events_check_times(writer, event);
}

/** Checks and adds an event. */
static enum ttd_status events_add(struct ttd_writer *writer, const struct ttd_event *event)
{
    const char *violation = ttd_writer_check_event(writer, event);
    if (violation)
        return ttd_writer_refuse(writer, violation);
    if (!ttd_events_encoder_add(&writer->events, event))
        return ttd_writer_break(writer, TTD_ERROR_NO_MEMORY, "memory");
    if (event->heap > writer->settled_heap)
        writer->settled_heap = event->heap;
    return TTD_OK;
}

/** Counts events that were added; `last` is the wall time of the last of them. */
static enum ttd_status events_count(struct ttd_writer *writer, size_t count, uint64_t wall_time)
{
    writer->event_count += count;
    writer->position = writer->events.state.effect;
    writer->wall_time = wall_time;
    if (writer->events.count == writer->options.events_per_chunk)
        return ttd_writer_flush_events(writer);
    return TTD_OK;
}

enum ttd_status ttd_writer_event(struct ttd_writer *writer, const struct ttd_event *event)
{
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    if (!ttd_events_encoder_add_usual(&writer->events, event)) {
        enum ttd_status status = events_add(writer, event);
        if (status != TTD_OK)
            return status;
    }
    return events_count(writer, 1, event->wall_time);
}

/** Appends the mispredicted event of call number `i`. */
static enum ttd_status events_add_call(struct ttd_writer *writer, const struct ttd_calls *calls,
                                       size_t i)
{
    const struct ttd_call *call = &calls->calls[i];
    bool frees = call->action == TTD_ACTION_FREE;
    const uint64_t parameters[] = {frees ? call->address : call->size, call->size};
    struct ttd_event event = {.action = call->action,
                              .api = call->api,
                              .heap = calls->heap,
                              .thread = calls->thread,
                              .stack = call->stack,
                              .address = frees ? 0 : call->address,
                              .base_address = frees ? call->address : 0,
                              .size = call->size,
                              .result = 1,
                              .wall_time = calls->wall_time,
                              .time_start = calls->start,
                              .parameters = parameters,
                              .parameter_count = call->parameter_count};
    event.time_start.steps += 2 * (uint64_t)i;
    event.time_end = event.time_start;
    event.time_end.steps++;
    if (call->address == 0 || call->parameter_count < 1 ||
        call->parameter_count > (frees ? 2 : 1) || (!frees && call->action != TTD_ACTION_ALLOC))
        return ttd_writer_refuse(writer, "call");
    enum ttd_status status = events_add(writer, &event);
    return status != TTD_OK ? status : events_count(writer, 1, calls->wall_time);
}

enum ttd_status ttd_writer_calls(struct ttd_writer *writer, const struct ttd_calls *calls,
                                 size_t *written)
{
    enum ttd_status status = writer->failed ? TTD_ERROR_MISUSE : TTD_OK;
    *written = 0;
    while (status == TTD_OK && *written < calls->count) {
        uint32_t room = writer->options.events_per_chunk - writer->events.count;
        struct ttd_calls fitting = *calls;
        if (fitting.count - *written > room)
            fitting.count = *written + room;
        size_t added_count = ttd_events_encoder_add_calls(&writer->events, &fitting, *written);
        if (added_count != 0) {
            status = events_count(writer, added_count, calls->wall_time);
        } else {
            status = events_add_call(writer, calls, *written);
            added_count = 1;
        }
        *written += added_count - (status != TTD_OK); /* it is the last one's status */
    }
    return status;
}
