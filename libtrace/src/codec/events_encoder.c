/* SPDX-License-Identifier: MIT */
#include "codec/events.h"

#include <string.h>

#include "base/memory.h"
#include "codec/api.h"

/** How far back places are looked for: farther gains less than it costs. */
#define SEARCH_DEPTH 63

/** Events for which room is made at once. */
#define ROOM 256

/** Bytes that one event can add to a column at most. */
static const uint8_t most_bytes[TTD_COLUMN_COUNT] = {
    [TTD_COLUMN_CLASSES] = 4 + 5 + TTD_VARINT_MAX,
    [TTD_COLUMN_SHAPE_CLASSES] = 3,
    [TTD_COLUMN_SHAPE_STACKS] = 5,
    [TTD_COLUMN_SHAPES_FIRST] = 1,
    [TTD_COLUMN_SHAPES_MORE] = 2,
    [TTD_COLUMN_SIZES] = TTD_VARINT_MAX,
    [TTD_COLUMN_RELEASED] = 1,
    [TTD_COLUMN_ACQUIRED] = 1,
    [TTD_COLUMN_RELEASED_EXPLICIT] = TTD_VARINT_MAX,
    [TTD_COLUMN_ACQUIRED_EXPLICIT] = TTD_VARINT_MAX,
    [TTD_COLUMN_TIME_GAPS] = 3,
    [TTD_COLUMN_TIME_FORMS] = 1,
    [TTD_COLUMN_TIME_VALUES] = 3 + 5 + 4 * TTD_VARINT_MAX,
    [TTD_COLUMN_CLOCK] = 3 + TTD_VARINT_MAX,
    [TTD_COLUMN_EXTRA] = (3 + TTD_PARAMETERS_MAX) * TTD_VARINT_MAX,
};

void ttd_events_encoder_init(ttd_events_encoder *encoder, const ttd_allocator *allocator,
                             uint64_t time_unit)
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

void ttd_events_encoder_free(ttd_events_encoder *encoder)
{
    ttd_event_state_free(&encoder->state);
    for (size_t i = 0; i < TTD_COLUMN_COUNT; i++)
        ttd_buffer_free(&encoder->columns[i]);
    ttd_map_free(&encoder->class_map);
    ttd_map_free(&encoder->shape_map);
    ttd_map_free(&encoder->thread_map);
}

void ttd_events_encoder_clear(ttd_events_encoder *encoder)
{
    ttd_event_state_clear(&encoder->state);
    for (size_t i = 0; i < TTD_COLUMN_COUNT; i++)
        ttd_buffer_clear(&encoder->columns[i]);
    ttd_map_clear(&encoder->class_map);
    ttd_map_clear(&encoder->shape_map);
    ttd_map_clear(&encoder->thread_map);
    encoder->count = 0;
    encoder->room = 0;
    encoder->since_exception = 0;
    encoder->since_clock = 0;
}

/* There is room: see make_room(). */

static inline void put8(ttd_events_encoder *encoder, ttd_column column, unsigned value)
{
    ttd_buffer *buffer = &encoder->columns[column];
    buffer->data[buffer->size++] = (uint8_t)value;
}

static inline void put(ttd_events_encoder *encoder, ttd_column column, uint64_t value)
{
    ttd_buffer *buffer = &encoder->columns[column];
    buffer->size = (size_t)(ttd_put_varint(buffer->data + buffer->size, value) - buffer->data);
}

static bool make_room(ttd_events_encoder *encoder)
{
    for (size_t i = 0; i < TTD_COLUMN_COUNT; i++)
        if (!ttd_buffer_reserve(&encoder->columns[i], (size_t)ROOM * most_bytes[i]))
            return false;
    encoder->room = ROOM;
    return ttd_event_state_reserve_addresses(&encoder->state, (size_t)encoder->count + ROOM);
}

/** The class of an event, without its parameters. */
static inline ttd_event_class class_of(const ttd_event *event)
{
    unsigned form;
    if (!ttd_event_returned(event))
        form = TTD_OUTCOME_NEVER;
    else
        form = event->result < TTD_OUTCOME_RESULT ? (unsigned)event->result : TTD_OUTCOME_RESULT;
    form |= event->address ? TTD_FORM_ADDRESS : 0;
    form |= event->base_address ? TTD_FORM_BASE : 0;
    bool acquires = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
    form |= acquires || event->size ? TTD_FORM_SIZE : 0;
    return (ttd_event_class){event->action, event->api,  (uint8_t)form, 0,
                             event->heap,   event->flags};
}

/** Adds how the parameters are stored. */
static void class_parameters(ttd_event_class *class, const ttd_event *event)
{
    const char *items = ttd_api_template(event->api);
    class->parameter_count = (uint8_t)event->parameter_count;
    if (items && ttd_template_matches(items, event))
        class->form |= TTD_PARAMETERS_BY_API;
    else
        class->form |= TTD_PARAMETERS_WHOLE;
}

static inline bool same_class(const ttd_event_class *a, const ttd_event_class *b)
{
    return a->action == b->action && a->api == b->api && a->form == b->form &&
           a->parameter_count == b->parameter_count && a->heap == b->heap && a->flags == b->flags;
}

static bool add_class(ttd_events_encoder *encoder, const ttd_event_class *class, uint64_t key)
{
    ttd_event_state *state = &encoder->state;
    void *classes = state->classes;
    if (ttd_grow_array(state->allocator, &classes, &state->class_capacity, state->class_count + 1,
                       sizeof *state->classes))
        return false;
    state->classes = classes;
    if (!ttd_map_add(&encoder->class_map, key, (uint32_t)state->class_count))
        return false;
    state->classes[state->class_count++] = *class;
    put8(encoder, TTD_COLUMN_CLASSES, class->action);
    put8(encoder, TTD_COLUMN_CLASSES, class->api);
    put8(encoder, TTD_COLUMN_CLASSES, class->form);
    put8(encoder, TTD_COLUMN_CLASSES, class->parameter_count);
    put(encoder, TTD_COLUMN_CLASSES, class->heap);
    put(encoder, TTD_COLUMN_CLASSES, class->flags);
    return true;
}

static bool find_class(ttd_events_encoder *encoder, const ttd_event_class *class, uint32_t *index)
{
    uint64_t key = ttd_map_hash(class->flags) +
                   (class->action | (uint64_t) class->api << 8 | (uint64_t) class->form << 16 |
                    (uint64_t) class->parameter_count << 24 | (uint64_t) class->heap << 32);
    while (ttd_map_find(&encoder->class_map, key, index)) {
        if (same_class(class, &encoder->state.classes[*index]))
            return true;
        key++;
    }
    *index = (uint32_t)encoder->state.class_count;
    return add_class(encoder, class, key);
}

/** How many of the class's parameters are in the extra column. */
static size_t stored_parameters(const ttd_event_class *class)
{
    switch (class->form & TTD_FORM_PARAMETERS) {
    case TTD_PARAMETERS_BY_API:
        return ttd_template_stored(ttd_api_template(class->api));
    case TTD_PARAMETERS_WHOLE:
        return class->parameter_count;
    default:
        return 0;
    }
}

/** Makes room for shapes up to number `count` and their stored parameters. */
static bool grow_shapes(ttd_event_state *state, size_t count, size_t stored)
{
    void *array = state->shapes;
    if (ttd_grow_array(state->allocator, &array, &state->shape_capacity, count + 1,
                       sizeof *state->shapes))
        return false;
    state->shapes = array;
    array = state->stored;
    if (ttd_grow_array(state->allocator, &array, &state->stored_capacity,
                       state->stored_count + stored, sizeof *state->stored))
        return false;
    state->stored = array;
    return true;
}

static bool add_shape(ttd_events_encoder *encoder, uint32_t class_index, ttd_id stack)
{
    ttd_event_state *state = &encoder->state;
    size_t stored = stored_parameters(&state->classes[class_index]);
    if (!grow_shapes(state, state->shape_count + 1, stored) ||
        !ttd_map_add(&encoder->shape_map, (uint64_t)class_index << 32 | stack,
                     (uint32_t)state->shape_count + 1))
        return false;
    ttd_id last = state->shape_count ? state->shapes[state->shape_count].stack : TTD_NONE;
    put(encoder, TTD_COLUMN_SHAPE_CLASSES, class_index);
    put(encoder, TTD_COLUMN_SHAPE_STACKS, ttd_zigzag((uint64_t)stack - last));
    state->shapes[++state->shape_count] =
        (ttd_event_shape){class_index, stack, 0, 0, (uint32_t)state->stored_count};
    if (stored != 0)
        memset(state->stored + state->stored_count, 0, stored * sizeof *state->stored);
    state->stored_count += stored;
    return true;
}

static void put_shape(ttd_events_encoder *encoder, uint32_t symbol)
{
    if (symbol < TTD_SHAPE_ONE_BYTE) {
        put8(encoder, TTD_COLUMN_SHAPES_FIRST, symbol);
    } else if (symbol < TTD_SHAPE_TWO_BYTES) {
        symbol -= TTD_SHAPE_ONE_BYTE;
        put8(encoder, TTD_COLUMN_SHAPES_FIRST, TTD_SHAPE_ONE_BYTE + (symbol >> 8));
        put8(encoder, TTD_COLUMN_SHAPES_MORE, symbol & 0xFF);
    } else {
        symbol -= TTD_SHAPE_TWO_BYTES;
        put8(encoder, TTD_COLUMN_SHAPES_FIRST, TTD_SHAPE_ESCAPE);
        put8(encoder, TTD_COLUMN_SHAPES_MORE, symbol & 0xFF);
        put8(encoder, TTD_COLUMN_SHAPES_MORE, symbol >> 8);
    }
}

static bool encode_shape(ttd_events_encoder *encoder, const ttd_event *event)
{
    ttd_event_state *state = &encoder->state;
    if (state->shape_count == 0) {
        if (!grow_shapes(state, 0, 0))
            return false;
        state->shapes[0] = (ttd_event_shape){0};
    }
    ttd_event_class class = class_of(event);
    if (event->parameters)
        class_parameters(&class, event);
    uint32_t shape = state->shapes[state->shape].next;
    if (shape != 0 && state->shapes[shape].stack == event->stack &&
        same_class(&class, &state->classes[state->shapes[shape].class_index])) {
        put8(encoder, TTD_COLUMN_SHAPES_FIRST, 0);
    } else {
        uint32_t class_index;
        if (!find_class(encoder, &class, &class_index))
            return false;
        if (!ttd_map_find(&encoder->shape_map, (uint64_t)class_index << 32 | event->stack,
                          &shape)) {
            if (!add_shape(encoder, class_index, event->stack))
                return false;
            shape = (uint32_t)state->shape_count;
        }
        put_shape(encoder, shape);
        state->shapes[state->shape].next = shape;
    }
    state->shape = shape;
    return true;
}

/** Exchanges 0 and the predicted value, so that a right prediction is coded as 0. */
static inline uint64_t swap_predicted(uint64_t value, uint64_t predicted)
{
    if (value == predicted)
        return 0;
    return value == 0 ? predicted : value;
}

static void encode_extra(ttd_events_encoder *encoder, const ttd_event *event,
                         const ttd_event_class *class)
{
    if ((class->form & TTD_FORM_OUTCOME) == TTD_OUTCOME_RESULT)
        put(encoder, TTD_COLUMN_EXTRA, event->result);
    if (event->action == TTD_ACTION_CREATE) {
        put(encoder, TTD_COLUMN_EXTRA, event->reserve_size);
        put(encoder, TTD_COLUMN_EXTRA, event->commit_size);
    } else if (event->action == TTD_ACTION_PROTECT) {
        put(encoder, TTD_COLUMN_EXTRA, event->make_read_only);
    }
    if ((class->form & TTD_FORM_PARAMETERS) == TTD_PARAMETERS_NONE)
        return;
    uint64_t *last = encoder->state.stored + encoder->state.shapes[encoder->state.shape].stored;
    const char *items = NULL;
    if ((class->form & TTD_FORM_PARAMETERS) == TTD_PARAMETERS_BY_API)
        items = ttd_api_template(class->api);
    for (uint32_t i = 0; i < event->parameter_count; i++) {
        if (items && items[i] != 'X')
            continue;
        put(encoder, TTD_COLUMN_EXTRA, swap_predicted(event->parameters[i], *last));
        *last++ = event->parameters[i];
    }
}

/** The place of an address in a list, 1 for the newest; 0 if it is not found near the end. */
static inline unsigned find_place(const ttd_address_list *list, uint64_t address)
{
    size_t depth = list->count < SEARCH_DEPTH ? list->count : SEARCH_DEPTH;
    const uint64_t *newest = list->items + list->count - 1;
    for (size_t i = 0; i < depth; i++, newest--)
        if (*newest == address)
            return (unsigned)i + 1;
    return 0;
}

static void put_explicit(ttd_events_encoder *encoder, ttd_column column, uint64_t address,
                         uint64_t *last)
{
    uint64_t rotated = ttd_rotate_right(address, TTD_ADDRESS_ROTATION);
    put(encoder, column, ttd_zigzag(rotated - *last));
    *last = rotated;
}

static void encode_base(ttd_events_encoder *encoder, const ttd_event *event, unsigned form)
{
    ttd_event_state *state = &encoder->state;
    unsigned place = find_place(&state->allocated, event->base_address);
    put8(encoder, TTD_COLUMN_RELEASED, place);
    if (place == 0)
        put_explicit(encoder, TTD_COLUMN_RELEASED_EXPLICIT, event->base_address, &state->released);
    if (!ttd_form_releases(event->action, form))
        return;
    if (place != 0)
        ttd_address_take(&state->allocated, place);
    ttd_address_push(&state->freed, event->base_address);
}

static void encode_address(ttd_events_encoder *encoder, const ttd_event *event)
{
    ttd_event_state *state = &encoder->state;
    unsigned place = find_place(&state->freed, event->address);
    put8(encoder, TTD_COLUMN_ACQUIRED, place);
    if (place == 0)
        put_explicit(encoder, TTD_COLUMN_ACQUIRED_EXPLICIT, event->address, &state->acquired);
    else
        ttd_address_take(&state->freed, place);
    ttd_address_push(&state->allocated, event->address);
}

static unsigned encode_start(ttd_position start, ttd_position end, uint64_t sequence,
                             uint64_t values[2], size_t *count)
{
    bool follows = start.sequence == end.sequence && start.steps >= end.steps;
    if (follows && start.steps - end.steps == 1)
        return TTD_START_STEP;
    if (start.sequence == sequence + 1 && start.steps == 0)
        return TTD_START_SEQUENCE;
    if (follows) {
        values[(*count)++] = start.steps - end.steps;
        return TTD_START_STEPS;
    }
    values[(*count)++] = ttd_zigzag(start.sequence - sequence);
    values[(*count)++] = start.steps;
    return TTD_START_EXPLICIT;
}

static unsigned encode_end(ttd_position start, ttd_position end, uint64_t sequence,
                           uint64_t values[2], size_t *count)
{
    if (!ttd_position_is_valid(end))
        return TTD_END_NEVER;
    bool follows = end.sequence == start.sequence && end.steps >= start.steps;
    if (follows && end.steps - start.steps == 1)
        return TTD_END_STEP;
    if (sequence < start.sequence)
        sequence = start.sequence;
    if (end.sequence == sequence + 1 && end.steps == 0)
        return TTD_END_SEQUENCE;
    if (follows) {
        values[(*count)++] = end.steps - start.steps;
        return TTD_END_STEPS;
    }
    values[(*count)++] = ttd_zigzag(end.sequence - sequence);
    values[(*count)++] = end.steps;
    return TTD_END_EXPLICIT;
}

/** Finds or adds the event's thread and makes it the current one. */
static bool change_thread(ttd_events_encoder *encoder, ttd_id id)
{
    ttd_event_state *state = &encoder->state;
    bool known = ttd_map_find(&encoder->thread_map, id, &state->thread);
    if (!known) {
        state->thread = (uint32_t)state->thread_count;
        if (!ttd_event_state_add_thread(state, id) ||
            !ttd_map_add(&encoder->thread_map, id, state->thread))
            return false;
    }
    put(encoder, TTD_COLUMN_TIME_VALUES, state->thread);
    if (!known)
        put(encoder, TTD_COLUMN_TIME_VALUES, id);
    return true;
}

static bool encode_time(ttd_events_encoder *encoder, const ttd_event *event)
{
    ttd_event_state *state = &encoder->state;
    unsigned form = 0;
    if (encoder->count == 0 || state->threads[state->thread].id != event->thread) {
        form = TTD_TIME_THREAD;
        if (!change_thread(encoder, event->thread))
            return false;
    }
    ttd_event_thread *thread = &state->threads[state->thread];
    uint64_t values[4];
    size_t count = 0;
    uint64_t sequence = state->effect.sequence;
    form |= encode_start(event->time_start, thread->end, sequence, values, &count)
            << TTD_TIME_START_SHIFT;
    form |= encode_end(event->time_start, event->time_end, sequence, values, &count)
            << TTD_TIME_END_SHIFT;
    if (form == 0) {
        encoder->since_exception++;
    } else {
        put(encoder, TTD_COLUMN_TIME_GAPS, encoder->since_exception);
        put8(encoder, TTD_COLUMN_TIME_FORMS, form);
        for (size_t i = 0; i < count; i++)
            put(encoder, TTD_COLUMN_TIME_VALUES, values[i]);
        encoder->since_exception = 0;
    }
    thread->end = ttd_event_returned(event) ? event->time_end : event->time_start;
    return true;
}

static void encode_clock(ttd_events_encoder *encoder, uint64_t clock)
{
    ttd_event_state *state = &encoder->state;
    if (clock == state->clock) {
        encoder->since_clock++;
        return;
    }
    put(encoder, TTD_COLUMN_CLOCK, encoder->since_clock);
    put(encoder, TTD_COLUMN_CLOCK, ttd_zigzag(clock - state->clock));
    state->clock = clock;
    encoder->since_clock = 0;
}

bool ttd_events_encoder_add(ttd_events_encoder *encoder, const ttd_event *event)
{
    ttd_event_state *state = &encoder->state;
    if (encoder->room == 0 && !make_room(encoder))
        return false;
    encoder->room--;
    if (!encode_shape(encoder, event) || !encode_time(encoder, event))
        return false;
    state->effect = ttd_event_position(event);
    if (encoder->count++ == 0)
        encoder->first = state->effect;
    encode_clock(encoder,
                 state->time_unit == 1 ? event->wall_time : event->wall_time / state->time_unit);
    ttd_event_shape *shape = &state->shapes[state->shape];
    const ttd_event_class *class = &state->classes[shape->class_index];
    if (class->form & TTD_FORM_SIZE) {
        put(encoder, TTD_COLUMN_SIZES, swap_predicted(event->size, shape->size));
        shape->size = event->size;
    }
    if (class->form & TTD_FORM_BASE)
        encode_base(encoder, event, class->form);
    if (class->form & TTD_FORM_ADDRESS)
        encode_address(encoder, event);
    encode_extra(encoder, event, class);
    return true;
}

void ttd_events_encoder_finish(ttd_events_encoder *encoder, ttd_buffer *out)
{
    ttd_buffer_put32(out, (uint32_t)encoder->state.class_count);
    ttd_buffer_put32(out, (uint32_t)encoder->state.shape_count);
    for (size_t i = 0; i < TTD_COLUMN_COUNT; i++)
        ttd_buffer_put32(out, (uint32_t)encoder->columns[i].size);
    for (size_t i = 0; i < TTD_COLUMN_COUNT; i++)
        ttd_buffer_put(out, encoder->columns[i].data, encoder->columns[i].size);
}
