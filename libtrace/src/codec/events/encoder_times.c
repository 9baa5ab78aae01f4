/* SPDX-License-Identifier: MIT */
/* Times of events that are not as predicted (spec, "Times"). */
#include "codec/events/encoder.h"

static unsigned encode_start(struct ttd_position start, struct ttd_position end, uint64_t sequence,
                             uint64_t values[2], size_t *count)
{
    bool follows = start.sequence == end.sequence && start.steps >= end.steps;
    if (follows && start.steps - end.steps == 1)
        return TTD_TIME_START_STEP;
    if (start.sequence == sequence + 1 && start.steps == 0)
        return TTD_TIME_START_SEQUENCE;
    if (follows) {
        values[(*count)++] = start.steps - end.steps;
        return TTD_TIME_START_STEPS;
    }
    values[(*count)++] = ttd_zigzag(start.sequence - sequence);
    values[(*count)++] = start.steps;
    return TTD_TIME_START_EXPLICIT;
}

static unsigned encode_end(struct ttd_position start, struct ttd_position end, uint64_t sequence,
                           uint64_t values[2], size_t *count)
{
    if (!ttd_position_is_valid(end))
        return TTD_TIME_END_NEVER;
    bool follows = end.sequence == start.sequence && end.steps >= start.steps;
    if (follows && end.steps - start.steps == 1)
        return TTD_TIME_END_STEP;
    /* An end is not before its start, so the larger number is the nearer prediction. */
    if (sequence < start.sequence)
        sequence = start.sequence;
    if (end.sequence == sequence + 1 && end.steps == 0)
        return TTD_TIME_END_SEQUENCE;
    if (follows) {
        values[(*count)++] = end.steps - start.steps;
        return TTD_TIME_END_STEPS;
    }
    values[(*count)++] = ttd_zigzag(end.sequence - sequence);
    values[(*count)++] = end.steps;
    return TTD_TIME_END_EXPLICIT;
}

/** Finds or adds the event's thread and makes it the current one. */
static bool change_thread(struct ttd_events_encoder *encoder, ttd_id id)
{
    struct ttd_event_state *state = &encoder->state;
    bool is_known = ttd_map_find(&encoder->thread_map, id, &state->thread);
    if (!is_known) {
        state->thread = (uint32_t)state->thread_count;
        if (!ttd_event_state_add_thread(state, id) ||
            !ttd_map_add(&encoder->thread_map, id, state->thread))
            return false;
    }
    ttd_events_put(encoder, TTD_COLUMN_TIME_VALUES, state->thread);
    if (!is_known)
        ttd_events_put(encoder, TTD_COLUMN_TIME_VALUES, id);
    return true;
}

bool ttd_events_encode_exception(struct ttd_events_encoder *encoder, const struct ttd_event *event)
{
    struct ttd_event_state *state = &encoder->state;
    unsigned form = 0;
    if (encoder->count == 0 || state->threads[state->thread].id != event->thread) {
        form = TTD_TIME_THREAD;
        if (!change_thread(encoder, event->thread))
            return false;
    }
    struct ttd_event_thread *thread = &state->threads[state->thread];
    uint64_t values[4];
    size_t count = 0;
    uint64_t sequence = state->effect.sequence;
    form |= encode_start(event->time_start, thread->end, sequence, values, &count)
            << TTD_TIME_START_SHIFT;
    form |= encode_end(event->time_start, event->time_end, sequence, values, &count)
            << TTD_TIME_END_SHIFT;
    ttd_events_put(encoder, TTD_COLUMN_TIME_GAPS, encoder->since_exception);
    ttd_events_put8(encoder, TTD_COLUMN_TIME_FORMS, form);
    for (size_t i = 0; i < count; i++)
        ttd_events_put(encoder, TTD_COLUMN_TIME_VALUES, values[i]);
    encoder->since_exception = 0;
    thread->end = ttd_event_returned(event) ? event->time_end : event->time_start;
    return true;
}
