/* SPDX-License-Identifier: MIT */
#include "codec/events/encoder.h"

#include <string.h>

#include "base/memory.h"
#include "codec/api.h"

/** Events for which room is made at once. */
#define ROOM 256

/** Bytes that one event can write to a column at most: of a varint of 32 bits, 8 are written at
 * once; of a short one 4 (ttd_events_put()). */
static const uint8_t most_bytes[TTD_COLUMN_COUNT] = {
    [TTD_COLUMN_CLASSES] = 4 + 8 + TTD_VARINT_MAX,
    [TTD_COLUMN_SHAPE_CLASSES] = 4,
    [TTD_COLUMN_SHAPE_STACKS] = 8,
    [TTD_COLUMN_SHAPES_FIRST] = 1,
    [TTD_COLUMN_SHAPES_MORE] = 2,
    [TTD_COLUMN_SIZES] = TTD_VARINT_MAX,
    [TTD_COLUMN_RELEASED] = 1,
    [TTD_COLUMN_ACQUIRED] = 1,
    [TTD_COLUMN_RELEASED_EXPLICIT] = TTD_VARINT_MAX,
    [TTD_COLUMN_ACQUIRED_EXPLICIT] = TTD_VARINT_MAX,
    [TTD_COLUMN_TIME_GAPS] = 4,
    [TTD_COLUMN_TIME_FORMS] = 1,
    [TTD_COLUMN_TIME_VALUES] = 3 + 8 + 4 * TTD_VARINT_MAX,
    [TTD_COLUMN_CLOCK] = 3 + TTD_VARINT_MAX,
    [TTD_COLUMN_EXTRA] = (3 + TTD_PARAMETERS_MAX) * TTD_VARINT_MAX,
};

void ttd_events_encoder_init(struct ttd_events_encoder *encoder,
                             const struct ttd_allocator *allocator, uint64_t time_unit)
{
    memset(encoder, 0, sizeof *encoder);
    ttd_event_state_init(&encoder->state, allocator);
    encoder->state.time_unit = time_unit;
    for (size_t i = 0; i < TTD_COLUMN_COUNT; i++)
        ttd_buffer_init(&encoder->columns[i], allocator);
    ttd_map_init(&encoder->class_map, allocator);
    ttd_map_init(&encoder->shape_map, allocator);
    ttd_map_init(&encoder->thread_map, allocator);
    ttd_event_state_clear(&encoder->state);
}

void ttd_events_encoder_free(struct ttd_events_encoder *encoder)
{
    ttd_event_state_free(&encoder->state);
    for (size_t i = 0; i < TTD_COLUMN_COUNT; i++)
        ttd_buffer_free(&encoder->columns[i]);
    ttd_map_free(&encoder->class_map);
    ttd_map_free(&encoder->shape_map);
    ttd_map_free(&encoder->thread_map);
}

void ttd_events_encoder_clear(struct ttd_events_encoder *encoder)
{
    ttd_event_state_clear(&encoder->state);
    for (size_t i = 0; i < TTD_COLUMN_COUNT; i++)
        ttd_buffer_clear(&encoder->columns[i]);
    ttd_map_clear(&encoder->class_map);
    ttd_map_clear(&encoder->shape_map);
    ttd_map_clear(&encoder->thread_map);
    memset(encoder->freed_at, 0, sizeof encoder->freed_at);
    memset(encoder->allocated_at, 0, sizeof encoder->allocated_at);
    encoder->count = 0;
    encoder->room = 0;
    encoder->since_exception = 0;
    encoder->since_clock = 0;
}

static bool encoder_make_room(struct ttd_events_encoder *encoder)
{
    for (size_t i = 0; i < TTD_COLUMN_COUNT; i++)
        if (!ttd_buffer_reserve(&encoder->columns[i], (size_t)ROOM * most_bytes[i]))
            return false;
    encoder->room = ROOM;
    return ttd_event_state_reserve_addresses(&encoder->state, (size_t)encoder->count + ROOM);
}

/** Whether the event's parameters, as many as the class says, are what it says of them. */
static inline bool same_parameters(const struct ttd_event_class *class,
                                   const struct ttd_event *event)
{
    const uint64_t *p = event->parameters;
    switch (class->general) {
    case TTD_GENERAL_SIZE:
        return p[0] == event->size;
    case TTD_GENERAL_BASE:
        return p[0] == event->base_address;
    case TTD_GENERAL_BASE_SIZE:
        return p[0] == event->base_address && p[1] == event->size;
    default:
        return !p || (class->items != NULL) == ttd_event_fits_template(event);
    }
}

static bool encoder_put_shape(struct ttd_events_encoder *encoder, const struct ttd_event *event)
{
    struct ttd_event_state *state = &encoder->state;
    unsigned form = ttd_events_form(event);
    uint64_t key = ttd_events_key(event, form);
    uint32_t number = ttd_events_predicted_shape(encoder);
    if (number != 0) {
        const struct ttd_event_shape *shape = &state->shapes[number];
        const struct ttd_event_class *class = &state->classes[shape->class_index];
        if (shape->stack == event->stack && class->key == key && class->flags == event->flags &&
            same_parameters(class, event)) {
            ttd_events_put8(encoder, TTD_COLUMN_SHAPES_FIRST, 0);
            state->shape = number;
            return true;
        }
    }
    if (!ttd_events_encode_shape(encoder, event, form, key, &number))
        return false;
    state->next_shapes[state->shape] = number;
    state->shape = number;
    return true;
}

static inline bool encode_time(struct ttd_events_encoder *encoder, const struct ttd_event *event)
{
    struct ttd_event_state *state = &encoder->state;
    if (encoder->count == 0 || !ttd_events_follow(event->time_start, event->time_end, event->thread,
                                                  &state->threads[state->thread]))
        return ttd_events_encode_exception(encoder, event);
    encoder->since_exception++;
    state->threads[state->thread].end = event->time_end;
    return true;
}

/** The wall clock has changed. */
static void encode_clock(struct ttd_events_encoder *encoder, uint64_t wall_time)
{
    struct ttd_event_state *state = &encoder->state;
    uint64_t clock = wall_time / state->time_unit;
    ttd_events_put(encoder, TTD_COLUMN_CLOCK, encoder->since_clock);
    ttd_events_put(encoder, TTD_COLUMN_CLOCK, ttd_zigzag(clock - state->clock));
    state->clock = clock;
    state->wall_time = wall_time;
    encoder->since_clock = 0;
}

static void encoder_put_values(struct ttd_events_encoder *encoder, const struct ttd_event *event)
{
    struct ttd_event_shape *shape = &encoder->state.shapes[encoder->state.shape];
    const struct ttd_event_class *class = &encoder->state.classes[shape->class_index];
    if (class->form & TTD_FORM_SIZE)
        ttd_events_encode_size(encoder, event->size, shape);
    if (class->form & TTD_FORM_BASE)
        ttd_events_encode_base(encoder, event->base_address, class->releases);
    if (class->form & TTD_FORM_ADDRESS)
        ttd_events_encode_address(encoder, event->address);
    if (class->general == TTD_GENERAL_OTHER)
        ttd_events_encode_extra(encoder, event, class);
}

bool ttd_events_encoder_add(struct ttd_events_encoder *encoder, const struct ttd_event *event)
{
    struct ttd_event_state *state = &encoder->state;
    if (encoder->room == 0 && !encoder_make_room(encoder))
        return false;
    encoder->room--;
    if (!encoder_put_shape(encoder, event) || !encode_time(encoder, event))
        return false;
    state->effect = ttd_event_position(event);
    if (encoder->count++ == 0)
        encoder->first = state->effect;
    if (event->wall_time == state->wall_time)
        encoder->since_clock++;
    else
        encode_clock(encoder, event->wall_time);
    encoder_put_values(encoder, event);
    return true;
}

void ttd_events_encoder_finish(struct ttd_events_encoder *encoder, struct ttd_buffer *buffer)
{
    ttd_buffer_put32(buffer, (uint32_t)encoder->state.class_count);
    ttd_buffer_put32(buffer, (uint32_t)encoder->state.shape_count);
    for (size_t i = 0; i < TTD_COLUMN_COUNT; i++)
        ttd_buffer_put32(buffer, (uint32_t)encoder->columns[i].size);
    for (size_t i = 0; i < TTD_COLUMN_COUNT; i++)
        ttd_buffer_put(buffer, encoder->columns[i].data, encoder->columns[i].size);
}
