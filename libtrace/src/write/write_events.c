/* SPDX-License-Identifier: MIT */
#include <ttdtrace/advanced.h>

#include "write/write_internal.h"

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

/** Appends the event of call number `i`, which is not as predicted. */
static enum ttd_status add_call(struct ttd_writer *writer, const struct ttd_calls *calls, size_t i)
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
            status = add_call(writer, calls, *written);
            added_count = 1;
        }
        *written += added_count - (status != TTD_OK); /* it is the last one's status */
    }
    return status;
}
