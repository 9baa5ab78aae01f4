/* SPDX-License-Identifier: MIT */
#include "codec/events/encoder.h"

#include <string.h>

#include "base/memory.h"
#include "codec/api.h"

/* Usual calls, run by run: most events of a recording. */

/** Returns the form of the event of a call that returned. */
static inline enum ttd_event_fast calls_fast_shape(const struct ttd_call *call)
{
    if (call->address == 0)
        return TTD_FAST_NONE;
    if (call->action == TTD_ACTION_ALLOC && call->parameter_count == 1)
        return TTD_FAST_ALLOC;
    if (call->action != TTD_ACTION_FREE)
        return TTD_FAST_NONE;
    if (call->parameter_count == 1 && call->size == 0)
        return TTD_FAST_FREE;
    return call->parameter_count == 2 && call->size != 0 ? TTD_FAST_FREE_SIZED : TTD_FAST_NONE;
}

/** Whether the events of a class are such calls on a heap. */
static inline bool encoder_is_class_of(const struct ttd_event_class *class,
                                       const struct ttd_call *call, enum ttd_event_fast fast,
                                       ttd_id heap)
{
    return ((class->heap ^ heap) | (uint32_t)(class->fast ^ fast) |
            (uint32_t)(class->api ^ call->api)) == 0 &&
           class->flags == 0;
}

/** Returns the shape of a call, if the chunk has it; else 0. */
static uint32_t encoder_find_shape(const struct ttd_events_encoder *encoder,
                                   const struct ttd_call *call, enum ttd_event_fast fast,
                                   ttd_id heap)
{
    const struct ttd_event_state *state = &encoder->state;
    uint32_t index = encoder->last_class[call->api], number;
    if (index >= state->class_count ||
        !encoder_is_class_of(&state->classes[index], call, fast, heap) ||
        !ttd_map_find(&encoder->shape_map, (uint64_t)index << 32 | call->stack, &number))
        return 0;
    return number;
}

/** Appends the symbol of a call's shape. False, and nothing has changed, if the chunk lacks it. */
static inline bool calls_put_shape(struct ttd_events_encoder *encoder, const struct ttd_call *call,
                                   enum ttd_event_fast fast, ttd_id heap)
{
    struct ttd_event_state *state = &encoder->state;
    uint32_t number = state->next_shapes[state->shape];
    const struct ttd_event_shape *shape = &state->shapes[number];
    if (number != 0 && shape->stack == call->stack &&
        encoder_is_class_of(&state->classes[shape->class_index], call, fast, heap)) {
        ttd_events_put8(encoder, TTD_COLUMN_SHAPES_FIRST, 0);
    } else {
        number = encoder_find_shape(encoder, call, fast, heap);
        if (number == 0)
            return false;
        ttd_events_put_symbol(encoder, number);
        state->next_shapes[state->shape] = number;
    }
    state->shape = number;
    return true;
}

static inline void calls_put_values(struct ttd_events_encoder *encoder, const struct ttd_call *call,
                                    enum ttd_event_fast fast)
{
    struct ttd_event_shape *shape = &encoder->state.shapes[encoder->state.shape];
    if (fast != TTD_FAST_FREE)
        ttd_events_encode_size(encoder, call->size, shape);
    if (fast == TTD_FAST_ALLOC)
        ttd_events_encode_address(encoder, call->address);
    else
        ttd_events_encode_base(encoder, call->address, true);
}

size_t ttd_events_encoder_add_calls(struct ttd_events_encoder *encoder,
                                    const struct ttd_calls *calls, size_t first)
{
    struct ttd_event_state *state = &encoder->state;
    size_t remaining = calls->count - first, added_count = 0;
    if (encoder->count == 0 || calls->wall_time != state->wall_time)
        return 0;
    struct ttd_event_thread *thread = &state->threads[state->thread];
    struct ttd_position start = calls->start;
    start.steps += 2 * first;
    if (!ttd_events_follow(start, (struct ttd_position){start.sequence, start.steps + 1},
                           calls->thread, thread) ||
        2 * remaining > UINT64_MAX - start.steps)
        return 0;
    if (remaining > encoder->room)
        remaining = encoder->room;
    for (; added_count < remaining; added_count++) {
        const struct ttd_call *call = &calls->calls[first + added_count];
        enum ttd_event_fast fast = calls_fast_shape(call);
        if (fast == TTD_FAST_NONE || !calls_put_shape(encoder, call, fast, calls->heap))
            break;
        calls_put_values(encoder, call, fast);
    }
    if (added_count == 0)
        return 0;
    encoder->room -= (uint32_t)added_count;
    encoder->count += (uint32_t)added_count;
    encoder->since_exception += (uint32_t)added_count;
    encoder->since_clock += (uint32_t)added_count;
    thread->end = (struct ttd_position){start.sequence, start.steps + 2 * added_count - 1};
    state->effect = thread->end;
    state->effect.steps -= calls->calls[first + added_count - 1].action == TTD_ACTION_FREE;
    return added_count;
}

/** Whether a returned event has exactly its own values as parameters. */
static inline bool encoder_is_usual(const struct ttd_event *event)
{
    uint64_t others =
        event->previous_address | event->reserve_size | event->commit_size | event->make_read_only;
    if (!event->parameters || (others | event->flags | (event->result ^ 1)) != 0)
        return false;
    const uint64_t *p = event->parameters;
    if (event->action == TTD_ACTION_ALLOC)
        return event->parameter_count == 1 && (event->base_address | (p[0] ^ event->size)) == 0;
    return event->action == TTD_ACTION_FREE &&
           (event->address | (p[0] ^ event->base_address)) == 0 &&
           (event->parameter_count == 1 || (event->parameter_count == 2 && p[1] == event->size));
}

bool ttd_events_encoder_add_usual(struct ttd_events_encoder *encoder, const struct ttd_event *event)
{
    if (!encoder_is_usual(event) || event->time_end.sequence != event->time_start.sequence ||
        event->time_end.steps - event->time_start.steps != 1)
        return false;
    struct ttd_call call = {.address = event->address | event->base_address,
                            .size = event->size,
                            .stack = event->stack,
                            .action = event->action,
                            .api = event->api,
                            .parameter_count = (uint8_t)event->parameter_count};
    struct ttd_calls calls = {.calls = &call,
                              .count = 1,
                              .thread = event->thread,
                              .heap = event->heap,
                              .wall_time = event->wall_time,
                              .start = event->time_start};
    return ttd_events_encoder_add_calls(encoder, &calls, 0) == 1;
}

/* Classes and shapes (spec, "Shapes"). */

/** Adds how the parameters are stored. */
static void encoder_add_parameters(struct ttd_event_class *class, const struct ttd_event *event)
{
    class->parameter_count = (uint8_t)event->parameter_count;
    if (ttd_event_fits_template(event))
        class->form |= TTD_PARAMETERS_BY_API;
    else
        class->form |= TTD_PARAMETERS_WHOLE;
}

static inline bool encoder_same_class(const struct ttd_event_class *a,
                                      const struct ttd_event_class *b)
{
    return a->key == b->key && a->form == b->form && a->flags == b->flags;
}

static bool encoder_add_class(struct ttd_events_encoder *encoder,
                              const struct ttd_event_class *class, uint64_t key)
{
    struct ttd_event_state *state = &encoder->state;
    void *classes = state->classes;
    if (ttd_grow_array(state->allocator, &classes, &state->class_capacity, state->class_count + 1,
                       sizeof *state->classes))
        return false;
    state->classes = classes;
    if (!ttd_map_add(&encoder->class_map, key, (uint32_t)state->class_count))
        return false;
    state->classes[state->class_count] = *class;
    ttd_event_class_complete(&state->classes[state->class_count++]);
    ttd_events_put8(encoder, TTD_COLUMN_CLASSES, class->action);
    ttd_events_put8(encoder, TTD_COLUMN_CLASSES, class->api);
    ttd_events_put8(encoder, TTD_COLUMN_CLASSES, class->form);
    ttd_events_put8(encoder, TTD_COLUMN_CLASSES, class->parameter_count);
    ttd_events_put(encoder, TTD_COLUMN_CLASSES, class->heap);
    ttd_events_put(encoder, TTD_COLUMN_CLASSES, class->flags);
    return true;
}

static bool encoder_find_class(struct ttd_events_encoder *encoder,
                               const struct ttd_event_class *class, uint32_t *index)
{
    /* Mostly the class that this API had the last time: no look-up then. */
    *index = encoder->last_class[class->api];
    if (*index < encoder->state.class_count &&
        encoder_same_class(class, &encoder->state.classes[*index]))
        return true;
    /* Different classes may have one key: the next keys are tried until one is free or equal. */
    uint64_t key = ttd_map_hash(class->flags) + class->form + class->key;
    while (ttd_map_find(&encoder->class_map, key, index)) {
        if (encoder_same_class(class, &encoder->state.classes[*index]))
            return true;
        key++;
    }
    *index = (uint32_t)encoder->state.class_count;
    return encoder_add_class(encoder, class, key);
}

/** Makes room for shapes up to number `count` and their stored parameters. */
static bool encoder_grow_shapes(struct ttd_event_state *state, size_t count, size_t stored)
{
    void *array = state->stored;
    if (!ttd_event_state_reserve_shapes(state, count) ||
        ttd_grow_array(state->allocator, &array, &state->stored_capacity,
                       state->stored_count + stored + 1, sizeof *state->stored))
        return false;
    state->stored = array;
    return true;
}

static bool encoder_add_shape(struct ttd_events_encoder *encoder, uint32_t class_index,
                              ttd_id stack)
{
    struct ttd_event_state *state = &encoder->state;
    size_t stored = state->classes[class_index].stored;
    if (!encoder_grow_shapes(state, state->shape_count + 1, stored) ||
        !ttd_map_add(&encoder->shape_map, (uint64_t)class_index << 32 | stack,
                     (uint32_t)state->shape_count + 1))
        return false;
    ttd_id last = state->shape_count ? state->shapes[state->shape_count].stack : TTD_NONE;
    ttd_events_put(encoder, TTD_COLUMN_SHAPE_CLASSES, class_index);
    ttd_events_put(encoder, TTD_COLUMN_SHAPE_STACKS, ttd_zigzag((uint64_t)stack - last));
    ttd_event_state_set_shape(state, ++state->shape_count, class_index, stack);
    if (stored != 0)
        memset(state->stored + state->stored_count, 0, stored * sizeof *state->stored);
    state->stored_count += stored;
    return true;
}

void ttd_events_put_symbol(struct ttd_events_encoder *encoder, uint32_t symbol)
{
    if (symbol < TTD_SHAPE_ONE_BYTE) {
        ttd_events_put8(encoder, TTD_COLUMN_SHAPES_FIRST, symbol);
    } else if (symbol < TTD_SHAPE_TWO_BYTES) {
        symbol -= TTD_SHAPE_ONE_BYTE;
        ttd_events_put8(encoder, TTD_COLUMN_SHAPES_FIRST, TTD_SHAPE_ONE_BYTE + (symbol >> 8));
        ttd_events_put8(encoder, TTD_COLUMN_SHAPES_MORE, symbol & 0xFF);
    } else {
        symbol -= TTD_SHAPE_TWO_BYTES;
        ttd_events_put8(encoder, TTD_COLUMN_SHAPES_FIRST, TTD_SHAPE_ESCAPE);
        ttd_events_put8(encoder, TTD_COLUMN_SHAPES_MORE, symbol & 0xFF);
        ttd_events_put8(encoder, TTD_COLUMN_SHAPES_MORE, symbol >> 8);
    }
}

bool ttd_events_encode_shape(struct ttd_events_encoder *encoder, const struct ttd_event *event,
                             unsigned form, uint64_t key, uint32_t *shape)
{
    struct ttd_event_state *state = &encoder->state;
    /* The first event has no shape before it: number 0, of no class, stands for that. */
    if (encoder->count == 0) {
        if (!encoder_grow_shapes(state, 0, 0))
            return false;
        ttd_event_state_set_shape(state, 0, 0, TTD_NONE);
    }
    struct ttd_event_class class = {.action = event->action,
                                    .api = event->api,
                                    .form = (uint8_t)form,
                                    .heap = event->heap,
                                    .flags = event->flags,
                                    .key = key};
    if (event->parameters)
        encoder_add_parameters(&class, event);
    uint32_t index;
    if (!encoder_find_class(encoder, &class, &index))
        return false;
    encoder->last_class[class.api] = index;
    if (!ttd_map_find(&encoder->shape_map, (uint64_t)index << 32 | event->stack, shape)) {
        if (!encoder_add_shape(encoder, index, event->stack))
            return false;
        *shape = (uint32_t)state->shape_count;
    }
    /* 0 says that the same shape follows as the last time: a loop is then a run of zeros. */
    ttd_events_put_symbol(encoder, *shape == state->next_shapes[state->shape] ? 0 : *shape);
    return true;
}

/** Number of events that room is made for at once. */
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

/** Whether the event's parameters, as many as the class has, equal its template. */
static inline bool encoder_same_parameters(const struct ttd_event_class *class,
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
            encoder_same_parameters(class, event)) {
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

static inline bool encoder_encode_time(struct ttd_events_encoder *encoder,
                                       const struct ttd_event *event)
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
static void encoder_encode_clock(struct ttd_events_encoder *encoder, uint64_t wall_time)
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
    if (!encoder_put_shape(encoder, event) || !encoder_encode_time(encoder, event))
        return false;
    state->effect = ttd_event_position(event);
    if (encoder->count++ == 0)
        encoder->first = state->effect;
    if (event->wall_time == state->wall_time)
        encoder->since_clock++;
    else
        encoder_encode_clock(encoder, event->wall_time);
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
