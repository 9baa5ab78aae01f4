/* SPDX-License-Identifier: MIT */
/* Times of events that are not as predicted (spec, "Times"). */
#include "codec/events/decoder.h"

static uint64_t get(struct ttd_events_decoder *decoder)
{
    return ttd_cursor_varint(&decoder->columns[TTD_COLUMN_TIME_VALUES]);
}

/** Reads which thread the exception is about. */
static bool read_thread(struct ttd_events_decoder *decoder)
{
    struct ttd_event_state *state = &decoder->state;
    uint64_t index = get(decoder);
    if (index > state->thread_count) {
        ttd_events_decoder_fail(decoder, "thread of an event");
        return false;
    }
    if (index == state->thread_count) {
        uint64_t id = get(decoder);
        uint32_t known_index;
        if (id > UINT32_MAX || ttd_map_find(&decoder->threads, id, &known_index)) {
            ttd_events_decoder_fail(decoder, "thread of an event");
            return false;
        }
        if (!ttd_event_state_add_thread(state, (ttd_id)id) ||
            !ttd_map_add(&decoder->threads, id, (uint32_t)index)) {
            decoder->no_memory = true;
            return false;
        }
    }
    state->thread = (uint32_t)index;
    return true;
}

static struct ttd_position read_start(struct ttd_events_decoder *decoder, unsigned form,
                                      struct ttd_position end)
{
    uint64_t sequence = decoder->state.effect.sequence;
    uint64_t steps;
    switch (form) {
    case TTD_TIME_START_STEP:
        if (end.steps == UINT64_MAX)
            ttd_events_decoder_fail(decoder, "times of an event");
        return (struct ttd_position){end.sequence, end.steps + 1};
    case TTD_TIME_START_SEQUENCE:
        return (struct ttd_position){sequence + 1, 0};
    case TTD_TIME_START_STEPS:
        steps = get(decoder);
        if (steps > UINT64_MAX - end.steps)
            ttd_events_decoder_fail(decoder, "times of an event");
        return (struct ttd_position){end.sequence, end.steps + steps};
    default:
        sequence += ttd_unzigzag(get(decoder));
        return (struct ttd_position){sequence, get(decoder)};
    }
}

static struct ttd_position times_read_end(struct ttd_events_decoder *decoder, unsigned form,
                                          struct ttd_position start)
{
    uint64_t sequence = decoder->state.effect.sequence;
    if (sequence < start.sequence)
        sequence = start.sequence;
    switch (form) {
    case TTD_TIME_END_STEP:
        return (struct ttd_position){start.sequence, start.steps + 1};
    case TTD_TIME_END_SEQUENCE:
        return (struct ttd_position){sequence + 1, 0};
    case TTD_TIME_END_STEPS:
        return (struct ttd_position){start.sequence, start.steps + get(decoder)};
    case TTD_TIME_END_EXPLICIT:
        sequence += ttd_unzigzag(get(decoder));
        return (struct ttd_position){sequence, get(decoder)};
    case TTD_TIME_END_NEVER:
        return ttd_position_invalid();
    default:
        ttd_events_decoder_fail(decoder, "form of an event's times");
        return start;
    }
}

/** Whether the times are possible; an overflow of steps makes an end before its start. */
static bool times_is_valid(const struct ttd_event_state *state, const struct ttd_event_class *class,
                           bool never, struct ttd_position start, struct ttd_position end)
{
    bool acquires = class->action == TTD_ACTION_ALLOC || class->action == TTD_ACTION_CREATE;
    /* Effects come in order; an acquisition takes effect when it ends, all else when it begins. */
    struct ttd_position effect = acquires && !never ? end : start;
    return never == ((class->form & TTD_FORM_OUTCOME) == TTD_OUTCOME_NEVER) &&
           never != ttd_position_is_valid(end) && ttd_position_is_valid(start) &&
           ttd_position_compare(start, end) <= 0 &&
           ttd_position_compare(effect, state->effect) >= 0;
}

bool ttd_events_decode_exception(struct ttd_events_decoder *decoder,
                                 const struct ttd_event_class *class, uint64_t number,
                                 struct ttd_position *start, struct ttd_position *end)
{
    struct ttd_event_state *state = &decoder->state;
    unsigned form = ttd_cursor_get8(&decoder->columns[TTD_COLUMN_TIME_FORMS]);
    /* The first event of a chunk names its thread: there is none to go on with. */
    if ((form & TTD_TIME_THREAD) ? !read_thread(decoder) : state->thread == UINT32_MAX) {
        ttd_events_decoder_fail(decoder, "thread of an event");
        return false;
    }
    /* Times that are just as predicted are no exception, and have no form. */
    if (form == 0 || form & ~TTD_TIME_MASK)
        ttd_events_decoder_fail(decoder, "form of an event's times");
    struct ttd_event_thread *thread = &state->threads[state->thread];
    unsigned start_form = (form & TTD_TIME_START) >> TTD_TIME_START_SHIFT;
    unsigned end_form = (form & TTD_TIME_END) >> TTD_TIME_END_SHIFT;
    *start = read_start(decoder, start_form, thread->end);
    *end = times_read_end(decoder, end_form, *start);
    if (!times_is_valid(state, class, end_form == TTD_TIME_END_NEVER, *start, *end)) {
        ttd_events_decoder_fail(decoder, "times of an event");
        return false;
    }
    /* A call that never returned has no end to predict from. */
    thread->end = ttd_position_is_valid(*end) ? *end : *start;
    decoder->exception = ttd_events_next_gap(decoder, TTD_COLUMN_TIME_GAPS, number + 1);
    return true;
}
