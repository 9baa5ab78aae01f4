/* SPDX-License-Identifier: MIT */
/* Validates events before they are written. A file of its own, because the encoder skips it for an
 * event that is just as predicted. */
#include "write/write_internal.h"

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
static const char *check_times(const struct ttd_writer *writer, const struct ttd_event *event)
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
    return violation ? violation : check_times(writer, event);
}
