/* SPDX-License-Identifier: MIT */
#include "write/internal.h"

/** What is wrong with the properties that only some actions have; NULL if nothing. */
static const char *check_action(const ttd_event *event)
{
    bool allocates = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
    bool releases = event->action == TTD_ACTION_FREE || event->action == TTD_ACTION_REALLOC;
    if (event->action < TTD_ACTION_ALLOC || event->action > TTD_ACTION_DESTROY)
        return "action";
    if (event->address != 0 && (!allocates || event->result == 0))
        return "address";
    if (event->base_address != 0 && !releases)
        return "base_address";
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

/** Whether the event is an Alloc or a Free, as nearly all are, of whose kind nothing is wrong. */
static inline bool is_plain(const ttd_event *event)
{
    uint64_t others =
        event->previous_address | event->reserve_size | event->commit_size | event->make_read_only;
    if (event->parameter_count > (event->parameters ? TTD_PARAMETERS_MAX : 0))
        return false;
    if (event->action == TTD_ACTION_ALLOC)
        return (others | event->base_address) == 0 && (event->address == 0 || event->result != 0);
    return event->action == TTD_ACTION_FREE && (others | event->address) == 0;
}

/** What is wrong with the times; NULL if nothing. */
static const char *check_times(const ttd_writer *writer, const ttd_event *event)
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
    if (event->wall_time != writer->wall_time && writer->time_unit != 1 &&
        event->wall_time % writer->time_unit != 0)
        return "wall_time";
    return NULL;
}

static const char *check(const ttd_writer *writer, const ttd_event *event)
{
    if (!ttd_writer_knows(writer, event->thread, writer->threads))
        return "thread";
    if (!ttd_writer_knows(writer, event->heap, writer->heaps))
        return "heap";
    if (!ttd_writer_knows(writer, event->stack, writer->stack_count))
        return "stack";
    const char *wrong = is_plain(event) ? NULL : check_action(event);
    return wrong ? wrong : check_times(writer, event);
}

ttd_status ttd_writer_event(ttd_writer *writer, const ttd_event *event)
{
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    const char *wrong = check(writer, event);
    if (wrong)
        return ttd_writer_refuse(writer, wrong);
    if (!ttd_events_encoder_add(&writer->events, event))
        return ttd_writer_break(writer, TTD_ERROR_NO_MEMORY, "memory");
    writer->event_count++;
    writer->position = writer->events.state.effect;
    writer->wall_time = event->wall_time;
    if (writer->events.count == writer->options.events_per_chunk)
        return ttd_writer_flush_events(writer);
    return TTD_OK;
}
