/* SPDX-License-Identifier: MIT */
#include "write/internal.h"

/** Checks and adds an event. */
static enum ttd_status add(struct ttd_writer *writer, const struct ttd_event *event)
{
    const char *wrong = ttd_writer_check_event(writer, event);
    if (wrong)
        return ttd_writer_refuse(writer, wrong);
    if (!ttd_events_encoder_add(&writer->events, event))
        return ttd_writer_break(writer, TTD_ERROR_NO_MEMORY, "memory");
    if (event->heap > writer->settled_heap)
        writer->settled_heap = event->heap;
    return TTD_OK;
}

enum ttd_status ttd_writer_event(struct ttd_writer *writer, const struct ttd_event *event)
{
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    if (!ttd_events_encoder_add_predicted(&writer->events, event)) {
        enum ttd_status status = add(writer, event);
        if (status != TTD_OK)
            return status;
    }
    writer->event_count++;
    writer->position = writer->events.state.effect;
    writer->wall_time = event->wall_time;
    if (writer->events.count == writer->options.events_per_chunk)
        return ttd_writer_flush_events(writer);
    return TTD_OK;
}
