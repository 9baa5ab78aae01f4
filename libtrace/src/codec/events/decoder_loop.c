/* SPDX-License-Identifier: MIT */
/*
 * The loops over the events of a batch: with the loops of decoder_columns.c the hottest code here.
 * Each is about a few columns, so its data stay in registers.
 */
#include "codec/events/decoder.h"

/** Sets the members that shape and class determine; each event has one symbol. */
static bool loop_decode_shapes(struct ttd_events_decoder *decoder, uint32_t count)
{
    struct ttd_event_state *state = &decoder->state;
    struct ttd_event_shape *shapes = state->shapes;
    uint32_t *next = state->next_shapes;
    uint32_t shape_count = (uint32_t)state->shape_count;
    const struct ttd_event_class *classes = state->classes;
    const struct ttd_event *prototypes = decoder->prototypes;
    const uint8_t *symbols = decoder->columns[TTD_COLUMN_SHAPES_FIRST].next;
    struct ttd_event *event = decoder->batch->events;
    uint32_t before = state->shape;
    uint32_t tally = 0;
    for (uint32_t i = 0; i < count; i++, event++) {
        uint32_t symbol = ttd_events_read_shape(
            symbols[i], &decoder->columns[TTD_COLUMN_SHAPES_MORE], next[before]);
        if (symbol - 1 >= shape_count) {
            ttd_events_decoder_fail(decoder, "shape of an event");
            return false;
        }
        next[before] = symbol;
        before = symbol;
        struct ttd_event_shape *shape = &shapes[symbol];
        const struct ttd_event_class *class = &classes[shape->class_index];
        ttd_event_copy_class(event, &prototypes[shape->class_index]);
        event->stack = shape->stack;
        decoder->shapes[i] = shape;
        decoder->classes[i] = class;
        tally += class->tally;
    }
    state->shape = before;
    decoder->tally = tally;
    decoder->columns[TTD_COLUMN_SHAPES_FIRST].next += count;
    return true;
}

void ttd_events_change_clock(struct ttd_events_decoder *decoder)
{
    struct ttd_event_state *state = &decoder->state;
    state->clock += ttd_unzigzag(ttd_cursor_varint(&decoder->columns[TTD_COLUMN_CLOCK]));
    decoder->clock_change = ttd_events_next_gap(decoder, TTD_COLUMN_CLOCK, decoder->number + 1);
    if (state->time_unit && state->clock > UINT64_MAX / state->time_unit)
        ttd_events_decoder_fail(decoder, "wall time of an event");
    state->wall_time = state->clock * state->time_unit;
    if (state->wall_time == UINT64_MAX)
        ttd_events_decoder_fail(decoder, "wall time of an event");
}

/** An event whose times are an exception. */
static bool loop_decode_exception(struct ttd_events_decoder *decoder, uint32_t index)
{
    struct ttd_event_state *state = &decoder->state;
    struct ttd_event *event = &decoder->batch->events[index];
    if (index)
        state->effect = ttd_event_position(event - 1);
    if (!ttd_events_decode_exception(decoder, decoder->classes[index], decoder->number,
                                     &event->time_start, &event->time_end))
        return false;
    event->number = decoder->number++;
    event->wall_time = state->wall_time;
    event->thread = state->threads[state->thread].id;
    return true;
}

/** Events whose times are as predicted: each takes two steps of the current thread. */
static bool loop_decode_run(struct ttd_events_decoder *decoder, struct ttd_event *event,
                            uint32_t count)
{
    struct ttd_event_state *state = &decoder->state;
    if (state->thread == UINT32_MAX)
        return false;
    struct ttd_event_thread *thread = &state->threads[state->thread];
    struct ttd_position end = thread->end;
    if (end.steps > UINT64_MAX - 2 * (uint64_t)count)
        return false;
    ttd_id id = thread->id;
    uint64_t number = decoder->number;
    uint64_t wall_time = state->wall_time;
    for (const struct ttd_event *run_end = event + count; event < run_end; event++) {
        event->number = number++;
        event->time_start = (struct ttd_position){end.sequence, end.steps + 1};
        event->time_end = (struct ttd_position){end.sequence, end.steps + 2};
        event->wall_time = wall_time;
        event->thread = id;
        end.steps += 2;
    }
    thread->end = end;
    decoder->number = number;
    return true;
}

/** Times, from one event with an exception or another wall time to the next. False if they are
 * wrong. */
static bool loop_decode_times(struct ttd_events_decoder *decoder, uint32_t count)
{
    struct ttd_event *events = decoder->batch->events;
    uint32_t nevers = 0;
    for (uint32_t i = 0, n = 1; i < count; i += n, n = 1) {
        uint64_t number = decoder->number;
        bool is_decoded;
        if (number == decoder->clock_change)
            ttd_events_change_clock(decoder);
        if (number == decoder->exception) {
            is_decoded = loop_decode_exception(decoder, i);
            nevers += TTD_TALLY_NEVERS(decoder->classes[i]->tally);
        } else {
            n = ttd_events_run_length(decoder, count - i);
            is_decoded = loop_decode_run(decoder, events + i, n);
        }
        if (!is_decoded)
            return false;
    }
    /* A call that never returned is an exception. */
    if (nevers != TTD_TALLY_NEVERS(decoder->tally))
        return false;
    decoder->state.effect = ttd_event_position(&events[count - 1]);
    return true;
}

void ttd_events_decode_batch(struct ttd_events_decoder *decoder, uint32_t count)
{
    if (!loop_decode_shapes(decoder, count))
        return;
    if (loop_decode_times(decoder, count))
        ttd_events_decode_values(decoder, count);
    else
        ttd_events_decoder_fail(decoder, "times of an event");
}
