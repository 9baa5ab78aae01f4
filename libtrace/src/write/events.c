/* SPDX-License-Identifier: MIT */
#include "write/internal.h"

/** Whether a usual event is right beyond doubt, as nearly all are; see ttd_writer_check_event() for
 * others. */
static inline bool is_right(const ttd_writer *writer, const ttd_event *event, ttd_event_usual usual)
{
    const ttd_position *start = &event->time_start, *end = &event->time_end;
    const ttd_position *effect = usual == TTD_USUAL_ALLOC ? end : start;
    return usual != TTD_USUAL_NONE && event->thread <= writer->threads &&
           event->heap <= writer->heaps && event->stack <= writer->stack_count &&
           start->sequence == end->sequence && start->steps <= end->steps &&
           start->sequence >= writer->position.sequence &&
           (effect->steps >= writer->position.steps ||
            start->sequence > writer->position.sequence) &&
           start->sequence <= TTD_SEQUENCE_MAX && event->wall_time == writer->wall_time;
}

ttd_status ttd_writer_event(ttd_writer *writer, const ttd_event *event)
{
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    ttd_event_usual usual = ttd_event_usual_of(event);
    const char *wrong =
        is_right(writer, event, usual) ? NULL : ttd_writer_check_event(writer, event);
    if (wrong)
        return ttd_writer_refuse(writer, wrong);
    if (!ttd_events_encoder_add(&writer->events, event, usual))
        return ttd_writer_break(writer, TTD_ERROR_NO_MEMORY, "memory");
    writer->event_count++;
    writer->position = writer->events.state.effect;
    writer->wall_time = event->wall_time;
    if (writer->events.count == writer->options.events_per_chunk)
        return ttd_writer_flush_events(writer);
    return TTD_OK;
}
