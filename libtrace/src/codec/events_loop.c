/* SPDX-License-Identifier: MIT */
/*
 * The loops over the events of a batch: with those of events_values.c the library's hottest code.
 * Each is about a few columns, so that what it needs stays in registers.
 */
#include "codec/events_decoder.h"

/** The general case of a symbol: see TTD_SHAPE_ONE_BYTE. */
static inline uint32_t read_symbol(ttd_cursor *more, uint32_t first)
{
    size_t size = first == TTD_SHAPE_ESCAPE ? 2 : 1;
    if (ttd_cursor_left(more) < size) {
        ttd_cursor_fail(more, "payload too short");
        return 0;
    }
    uint32_t low = *more->at++;
    if (size == 2)
        return TTD_SHAPE_TWO_BYTES + low + ((uint32_t)*more->at++ << 8);
    return TTD_SHAPE_ONE_BYTE + ((first - TTD_SHAPE_ONE_BYTE) << 8) + low;
}

/** The shapes of the events: there is one symbol for each. */
static bool decode_shapes(ttd_events_decoder *decoder, uint32_t count)
{
    ttd_event_state *state = &decoder->state;
    ttd_event_shape *shapes = state->shapes;
    ttd_event_shape *shape = &shapes[state->shape];
    uint32_t shape_count = (uint32_t)state->shape_count;
    const uint8_t *symbols = decoder->columns[TTD_COLUMN_SHAPES_FIRST].at;
    uint32_t symbol = 0;
    for (uint32_t i = 0; i < count; i++) {
        symbol = symbols[i];
        if (symbol >= TTD_SHAPE_ONE_BYTE)
            symbol = read_symbol(&decoder->columns[TTD_COLUMN_SHAPES_MORE], symbol);
        /* Without a branch: nobody can predict whether the prediction was right. */
        symbol |= shape->next & (0 - (uint32_t)(symbol == 0));
        if (symbol - 1 >= shape_count) {
            ttd_events_decoder_fail(decoder, "shape of an event");
            return false;
        }
        shape->next = symbol;
        shape = &shapes[symbol];
        decoder->shapes[i] = shape;
    }
    state->shape = symbol;
    decoder->columns[TTD_COLUMN_SHAPES_FIRST].at += count;
    return true;
}

/** The wall clock changes with the next event. */
static void change_clock(ttd_events_decoder *decoder)
{
    ttd_event_state *state = &decoder->state;
    state->clock += ttd_unzigzag(ttd_cursor_varint(&decoder->columns[TTD_COLUMN_CLOCK]));
    decoder->clock_change = ttd_events_next_gap(decoder, TTD_COLUMN_CLOCK, decoder->number + 1);
    if (state->time_unit && state->clock > UINT64_MAX / state->time_unit)
        ttd_events_decoder_fail(decoder, "wall time of an event");
    state->wall_time = state->clock * state->time_unit;
}

/** What class and shape say of an event; `tally` is of the events before in the batch. */
static inline ttd_event *decode_class(ttd_events_decoder *decoder, uint32_t index, uint32_t *tally)
{
    const ttd_event_shape *shape = decoder->shapes[index];
    const ttd_event_class *class = &decoder->state.classes[shape->class_index];
    ttd_event *event = &decoder->batch->events[index];
    ttd_event_copy_class(event, &decoder->prototypes[shape->class_index]);
    event->stack = shape->stack;
    decoder->classes[index] = class;
    /* Without a branch: it stays in the list only where there is a size. */
    decoder->sized[TTD_TALLY_SIZES(*tally)] = index;
    *tally += class->tally;
    return event;
}

/** An event whose times are an exception. */
static bool decode_exception(ttd_events_decoder *decoder, uint32_t index)
{
    ttd_event_state *state = &decoder->state;
    ttd_event *event = decode_class(decoder, index, &decoder->tally);
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
static bool decode_run(ttd_events_decoder *decoder, uint32_t first, uint32_t count)
{
    ttd_event_state *state = &decoder->state;
    if (state->thread == UINT32_MAX)
        return false;
    ttd_event_thread *thread = &state->threads[state->thread];
    ttd_position end = thread->end;
    if (end.steps > UINT64_MAX - 2 * (uint64_t)count)
        return false;
    ttd_id id = thread->id;
    uint64_t number = decoder->number;
    uint64_t wall_time = state->wall_time;
    uint32_t tally = decoder->tally;
    for (uint32_t i = 0; i < count; i++) {
        ttd_event *event = decode_class(decoder, first + i, &tally);
        event->number = number++;
        event->time_start = (ttd_position){end.sequence, end.steps + 1};
        event->time_end = (ttd_position){end.sequence, end.steps + 2};
        event->wall_time = wall_time;
        event->thread = id;
        end.steps += 2;
    }
    bool returned = TTD_TALLY_NEVERS(tally) == TTD_TALLY_NEVERS(decoder->tally);
    thread->end = end;
    decoder->number = number;
    decoder->tally = tally;
    return returned;
}

/** Classes and times, from one event with an exception or another wall time to the next. */
static bool decode_heads(ttd_events_decoder *decoder, uint32_t count)
{
    decoder->tally = 0;
    for (uint32_t i = 0, n = 1; i < count; i += n, n = 1) {
        uint64_t number = decoder->number;
        bool done;
        if (number == decoder->clock_change)
            change_clock(decoder);
        if (number == decoder->exception) {
            done = decode_exception(decoder, i);
        } else {
            n = count - i;
            n = n < decoder->exception - number ? n : (uint32_t)(decoder->exception - number);
            n = n < decoder->clock_change - number ? n : (uint32_t)(decoder->clock_change - number);
            done = decode_run(decoder, i, n);
        }
        if (!done) {
            ttd_events_decoder_fail(decoder, "times of an event");
            return false;
        }
    }
    decoder->state.effect = ttd_event_position(&decoder->batch->events[count - 1]);
    return true;
}

void ttd_events_decode_batch(ttd_events_decoder *decoder, uint32_t count)
{
    if (decode_shapes(decoder, count) && decode_heads(decoder, count))
        ttd_events_decode_values(decoder, count);
}
