/* SPDX-License-Identifier: MIT */
#include "codec/events.h"

#include <string.h>

#include "base/memory.h"
#include "codec/api.h"
#include "codec/columns.h"

/** The fewest bytes of a class. */
#define CLASS_SIZE_MIN 6

/** More events than a chunk can have before the next entry of a list: there is none. */
#define NO_GAP UINT64_MAX

void ttd_events_decoder_init(ttd_events_decoder *decoder, const ttd_allocator *allocator)
{
    memset(decoder, 0, sizeof *decoder);
    ttd_event_state_init(&decoder->state, allocator);
}

void ttd_events_decoder_free(ttd_events_decoder *decoder)
{
    ttd_event_state_free(&decoder->state);
}

static inline void fail(ttd_events_decoder *decoder, const char *what)
{
    if (!decoder->error)
        decoder->error = what;
}

/* Reading columns: errors stay in the column's cursor until the end of the batch. */

static inline uint64_t get(ttd_events_decoder *decoder, ttd_column column)
{
    return ttd_cursor_varint(&decoder->columns[column]);
}

static inline unsigned get8(ttd_events_decoder *decoder, ttd_column column)
{
    ttd_cursor *cursor = &decoder->columns[column];
    return cursor->at != cursor->end ? *cursor->at++ : ttd_cursor_get8(cursor);
}

/** What is wrong with a class; NULL if nothing. */
static const char *check_class(const ttd_event_class *class)
{
    unsigned outcome = class->form & TTD_FORM_OUTCOME;
    bool allocates = class->action == TTD_ACTION_ALLOC || class->action == TTD_ACTION_REALLOC;
    bool releases = class->action == TTD_ACTION_FREE || class->action == TTD_ACTION_REALLOC;
    if (class->action < TTD_ACTION_ALLOC || class->action > TTD_ACTION_DESTROY)
        return "action of an event";
    if (class->form & ~TTD_FORM_MASK)
        return "form of an event";
    if ((class->form & TTD_FORM_ADDRESS) &&
        (!allocates || outcome == TTD_OUTCOME_FAILED || outcome == TTD_OUTCOME_NEVER))
        return "address of an event";
    if ((class->form & TTD_FORM_BASE) && !releases)
        return "base address of an event";
    if ((class->form & TTD_FORM_SIZE) ? !allocates && !releases : allocates)
        return "size of an event";
    const char *items = ttd_api_template(class->api);
    switch (class->form & TTD_FORM_PARAMETERS) {
    case TTD_PARAMETERS_NONE:
        return class->parameter_count == 0 ? NULL : "parameters of an event";
    case TTD_PARAMETERS_BY_API:
        return items && strlen(items) == class->parameter_count ? NULL : "parameters of an event";
    case TTD_PARAMETERS_WHOLE:
        return class->parameter_count <= TTD_PARAMETERS_MAX ? NULL : "parameters of an event";
    default:
        return "form of an event";
    }
}

static ttd_status read_classes(ttd_events_decoder *decoder, uint32_t count)
{
    ttd_event_state *state = &decoder->state;
    ttd_cursor *in = &decoder->columns[TTD_COLUMN_CLASSES];
    if (count > ttd_cursor_left(in) / CLASS_SIZE_MIN || count > TTD_ITEMS_MAX) {
        fail(decoder, "number of classes");
        return TTD_ERROR_CORRUPT;
    }
    void *classes = state->classes;
    if (ttd_grow_array(state->allocator, &classes, &state->class_capacity, count,
                       sizeof *state->classes))
        return TTD_ERROR_NO_MEMORY;
    state->classes = classes;
    for (uint32_t i = 0; i < count; i++) {
        ttd_event_class *class = &state->classes[i];
        class->action = ttd_cursor_get8(in);
        class->api = ttd_cursor_get8(in);
        class->form = ttd_cursor_get8(in);
        class->parameter_count = ttd_cursor_get8(in);
        class->heap = ttd_cursor_varint32(in);
        class->flags = ttd_cursor_varint(in);
        const char *wrong = check_class(class);
        if (wrong)
            fail(decoder, wrong);
    }
    state->class_count = count;
    return TTD_OK;
}

static size_t stored_parameters(const ttd_event_class *class)
{
    if ((class->form & TTD_FORM_PARAMETERS) == TTD_PARAMETERS_BY_API)
        return ttd_template_stored(ttd_api_template(class->api));
    return class->parameter_count;
}

static bool read_shape(ttd_events_decoder *decoder, ttd_event_shape *shape, ttd_id last)
{
    ttd_event_state *state = &decoder->state;
    uint64_t class_index = get(decoder, TTD_COLUMN_SHAPE_CLASSES);
    uint64_t stack = last + ttd_unzigzag(get(decoder, TTD_COLUMN_SHAPE_STACKS));
    if (class_index >= state->class_count || stack > UINT32_MAX) {
        fail(decoder, "shape of an event");
        return false;
    }
    *shape = (ttd_event_shape){(uint32_t)class_index, (ttd_id)stack, 0, 0,
                               (uint32_t)state->stored_count};
    state->stored_count += stored_parameters(&state->classes[class_index]);
    return true;
}

static ttd_status read_shapes(ttd_events_decoder *decoder, uint32_t count)
{
    ttd_event_state *state = &decoder->state;
    if (count > ttd_cursor_left(&decoder->columns[TTD_COLUMN_SHAPE_CLASSES]) ||
        count > TTD_ITEMS_MAX) {
        fail(decoder, "number of shapes");
        return TTD_ERROR_CORRUPT;
    }
    void *array = state->shapes;
    if (ttd_grow_array(state->allocator, &array, &state->shape_capacity, (size_t)count + 1,
                       sizeof *state->shapes))
        return TTD_ERROR_NO_MEMORY;
    state->shapes = array;
    state->shapes[0] = (ttd_event_shape){0};
    for (uint32_t i = 1; i <= count; i++)
        if (!read_shape(decoder, &state->shapes[i], state->shapes[i - 1].stack))
            return TTD_ERROR_CORRUPT;
    state->shape_count = count;
    array = state->stored;
    if (ttd_grow_array(state->allocator, &array, &state->stored_capacity, state->stored_count,
                       sizeof *state->stored))
        return TTD_ERROR_NO_MEMORY;
    state->stored = array;
    if (state->stored_count != 0)
        memset(state->stored, 0, state->stored_count * sizeof *state->stored);
    return TTD_OK;
}

/** Moves the first error of a column to the decoder; true if there is one. */
static bool column_errors(ttd_events_decoder *decoder)
{
    for (size_t i = 0; i < TTD_COLUMN_COUNT && !decoder->error; i++)
        decoder->error = decoder->columns[i].error;
    return decoder->error != NULL;
}

/** Reads the number of events until the next entry of a list; beyond all events if it is empty. */
static inline uint64_t next_gap(ttd_events_decoder *decoder, ttd_column column)
{
    ttd_cursor *cursor = &decoder->columns[column];
    return cursor->at == cursor->end ? NO_GAP : ttd_cursor_varint_max(cursor, TTD_ITEMS_MAX);
}

ttd_status ttd_events_decoder_begin(ttd_events_decoder *decoder, ttd_cursor payload,
                                    uint64_t time_unit, uint64_t number, uint32_t count,
                                    ttd_position first, ttd_position last)
{
    ttd_event_state *state = &decoder->state;
    ttd_event_state_clear(state);
    decoder->error = NULL;
    decoder->no_memory = false;
    state->time_unit = time_unit;
    decoder->number = number;
    decoder->left = count;
    decoder->first = first;
    decoder->last = last;
    decoder->first_batch = true;
    state->effect = ttd_position_min();
    uint32_t classes = ttd_cursor_get32(&payload);
    uint32_t shapes = ttd_cursor_get32(&payload);
    ttd_split_columns(&payload, decoder->columns, TTD_COLUMN_COUNT);
    decoder->error = payload.error;
    if (decoder->error)
        return TTD_ERROR_CORRUPT;
    ttd_status status = read_classes(decoder, classes);
    if (status == TTD_OK && !column_errors(decoder))
        status = read_shapes(decoder, shapes);
    if (status != TTD_OK)
        return status;
    ttd_cursor_finish(&decoder->columns[TTD_COLUMN_CLASSES]);
    ttd_cursor_finish(&decoder->columns[TTD_COLUMN_SHAPE_CLASSES]);
    ttd_cursor_finish(&decoder->columns[TTD_COLUMN_SHAPE_STACKS]);
    if (ttd_cursor_left(&decoder->columns[TTD_COLUMN_SHAPES_FIRST]) != count)
        fail(decoder, "number of events");
    if (column_errors(decoder))
        return TTD_ERROR_CORRUPT;
    if (!ttd_event_state_reserve_addresses(state, count))
        return TTD_ERROR_NO_MEMORY;
    decoder->until_exception = next_gap(decoder, TTD_COLUMN_TIME_GAPS);
    decoder->until_clock = next_gap(decoder, TTD_COLUMN_CLOCK);
    return TTD_OK;
}

static inline bool decode_shape(ttd_events_decoder *decoder)
{
    ttd_event_state *state = &decoder->state;
    uint32_t symbol = get8(decoder, TTD_COLUMN_SHAPES_FIRST);
    uint32_t before = state->shape;
    if (symbol == 0) {
        symbol = state->shapes[before].next;
    } else if (symbol == TTD_SHAPE_ESCAPE) {
        symbol = TTD_SHAPE_TWO_BYTES + get8(decoder, TTD_COLUMN_SHAPES_MORE);
        symbol += get8(decoder, TTD_COLUMN_SHAPES_MORE) << 8;
    } else if (symbol >= TTD_SHAPE_ONE_BYTE) {
        symbol = TTD_SHAPE_ONE_BYTE + ((symbol - TTD_SHAPE_ONE_BYTE) << 8) +
                 get8(decoder, TTD_COLUMN_SHAPES_MORE);
    }
    if (symbol == 0 || symbol > state->shape_count) {
        fail(decoder, "shape of an event");
        return false;
    }
    state->shapes[before].next = symbol;
    state->shape = symbol;
    return true;
}

/** Reads which thread the exception is about. */
static bool read_thread(ttd_events_decoder *decoder)
{
    ttd_event_state *state = &decoder->state;
    uint64_t index = get(decoder, TTD_COLUMN_TIME_VALUES);
    if (index > state->thread_count) {
        fail(decoder, "thread of an event");
        return false;
    }
    if (index == state->thread_count) {
        uint64_t id = get(decoder, TTD_COLUMN_TIME_VALUES);
        if (id > UINT32_MAX) {
            fail(decoder, "thread of an event");
            return false;
        }
        if (!ttd_event_state_add_thread(state, (ttd_id)id)) {
            decoder->no_memory = true;
            return false;
        }
    }
    state->thread = (uint32_t)index;
    return true;
}

static ttd_position read_start(ttd_events_decoder *decoder, unsigned form, ttd_position end)
{
    uint64_t sequence = decoder->state.effect.sequence;
    switch (form) {
    case TTD_START_STEP:
        return (ttd_position){end.sequence, end.steps + 1};
    case TTD_START_SEQUENCE:
        return (ttd_position){sequence + 1, 0};
    case TTD_START_STEPS:
        return (ttd_position){end.sequence, end.steps + get(decoder, TTD_COLUMN_TIME_VALUES)};
    default:
        sequence += ttd_unzigzag(get(decoder, TTD_COLUMN_TIME_VALUES));
        return (ttd_position){sequence, get(decoder, TTD_COLUMN_TIME_VALUES)};
    }
}

static ttd_position read_end(ttd_events_decoder *decoder, unsigned form, ttd_position start)
{
    uint64_t sequence = decoder->state.effect.sequence;
    if (sequence < start.sequence)
        sequence = start.sequence;
    switch (form) {
    case TTD_END_STEP:
        return (ttd_position){start.sequence, start.steps + 1};
    case TTD_END_SEQUENCE:
        return (ttd_position){sequence + 1, 0};
    case TTD_END_STEPS:
        return (ttd_position){start.sequence, start.steps + get(decoder, TTD_COLUMN_TIME_VALUES)};
    case TTD_END_EXPLICIT:
        sequence += ttd_unzigzag(get(decoder, TTD_COLUMN_TIME_VALUES));
        return (ttd_position){sequence, get(decoder, TTD_COLUMN_TIME_VALUES)};
    case TTD_END_NEVER:
        return ttd_position_invalid();
    default:
        fail(decoder, "form of an event's times");
        return start;
    }
}

/** An event whose times are not as predicted. */
static bool decode_exception(ttd_events_decoder *decoder, ttd_event *event, bool never)
{
    ttd_event_state *state = &decoder->state;
    unsigned form = get8(decoder, TTD_COLUMN_TIME_FORMS);
    if ((form & TTD_TIME_THREAD) ? !read_thread(decoder) : state->thread == UINT32_MAX) {
        fail(decoder, "thread of an event");
        return false;
    }
    if (form == 0 || form & ~TTD_TIME_MASK)
        fail(decoder, "form of an event's times");
    ttd_event_thread *thread = &state->threads[state->thread];
    unsigned start_form = (form & TTD_TIME_START) >> TTD_TIME_START_SHIFT;
    unsigned end_form = (form & TTD_TIME_END) >> TTD_TIME_END_SHIFT;
    ttd_position start = read_start(decoder, start_form, thread->end);
    ttd_position end = read_end(decoder, end_form, start);
    event->time_start = start;
    event->time_end = end;
    if (never != (end_form == TTD_END_NEVER) || !ttd_position_is_valid(start) ||
        (!never && !ttd_position_is_valid(end)) || ttd_position_compare(start, end) > 0 ||
        ttd_position_compare(ttd_event_position(event), state->effect) < 0) {
        fail(decoder, "times of an event");
        return false;
    }
    thread->end = never ? start : end;
    decoder->until_exception = next_gap(decoder, TTD_COLUMN_TIME_GAPS);
    return true;
}

static inline bool decode_time(ttd_events_decoder *decoder, ttd_event *event, bool never)
{
    ttd_event_state *state = &decoder->state;
    if (decoder->until_exception == 0) {
        if (!decode_exception(decoder, event, never))
            return false;
    } else {
        decoder->until_exception--;
        if (state->thread == UINT32_MAX || never) {
            fail(decoder, "times of an event");
            return false;
        }
        ttd_position *end = &state->threads[state->thread].end;
        if (end->steps >= UINT64_MAX - 1) {
            fail(decoder, "times of an event");
            return false;
        }
        event->time_start = (ttd_position){end->sequence, end->steps + 1};
        end->steps += 2;
        event->time_end = *end;
    }
    event->thread = state->threads[state->thread].id;
    state->effect = ttd_event_position(event);
    return true;
}

static inline bool decode_clock(ttd_events_decoder *decoder, ttd_event *event)
{
    ttd_event_state *state = &decoder->state;
    if (decoder->until_clock == 0) {
        state->clock += ttd_unzigzag(get(decoder, TTD_COLUMN_CLOCK));
        decoder->until_clock = next_gap(decoder, TTD_COLUMN_CLOCK);
        if (state->clock > UINT64_MAX / state->time_unit) {
            fail(decoder, "wall time of an event");
            return false;
        }
    } else {
        decoder->until_clock--;
    }
    event->wall_time = state->clock * state->time_unit;
    return true;
}

/** See swap_predicted() of the encoder: it is its own inverse. */
static inline uint64_t swap_predicted(uint64_t value, uint64_t predicted)
{
    if (value == predicted)
        return 0;
    return value == 0 ? predicted : value;
}

static inline uint64_t get_explicit(ttd_events_decoder *decoder, ttd_column column, uint64_t *last)
{
    *last += ttd_unzigzag(get(decoder, column));
    uint64_t address = ttd_rotate_left(*last, TTD_ADDRESS_ROTATION);
    if (address == 0)
        fail(decoder, "address of an event");
    return address;
}

static inline uint64_t decode_base(ttd_events_decoder *decoder, const ttd_event_class *class)
{
    ttd_event_state *state = &decoder->state;
    unsigned place = get8(decoder, TTD_COLUMN_RELEASED);
    bool releases = ttd_form_releases(class->action, class->form);
    uint64_t address;
    if (place == 0) {
        address = get_explicit(decoder, TTD_COLUMN_RELEASED_EXPLICIT, &state->released);
    } else if (place > state->allocated.count) {
        fail(decoder, "place of an address");
        return 0;
    } else if (releases) {
        address = ttd_address_take(&state->allocated, place);
    } else {
        address = state->allocated.items[state->allocated.count - place];
    }
    if (releases)
        ttd_address_push(&state->freed, address);
    return address;
}

static inline uint64_t decode_address(ttd_events_decoder *decoder)
{
    ttd_event_state *state = &decoder->state;
    unsigned place = get8(decoder, TTD_COLUMN_ACQUIRED);
    uint64_t address;
    if (place == 0) {
        address = get_explicit(decoder, TTD_COLUMN_ACQUIRED_EXPLICIT, &state->acquired);
    } else if (place > state->freed.count) {
        fail(decoder, "place of an address");
        return 0;
    } else {
        address = ttd_address_take(&state->freed, place);
    }
    ttd_address_push(&state->allocated, address);
    return address;
}

static void decode_parameters(ttd_events_decoder *decoder, ttd_event *event,
                              const ttd_event_class *class, uint64_t *stored, uint64_t *parameters)
{
    size_t count = stored_parameters(class);
    for (size_t i = 0; i < count; i++)
        stored[i] = swap_predicted(get(decoder, TTD_COLUMN_EXTRA), stored[i]);
    event->parameters = parameters;
    event->parameter_count = class->parameter_count;
    if ((class->form & TTD_FORM_PARAMETERS) == TTD_PARAMETERS_WHOLE) {
        if (count != 0)
            memcpy(parameters, stored, count * sizeof *stored);
    } else if (!ttd_template_apply(ttd_api_template(class->api), event, stored, parameters)) {
        fail(decoder, "parameters of an event");
    }
}

static void decode_extra(ttd_events_decoder *decoder, ttd_event *event,
                         const ttd_event_class *class, const ttd_event_shape *shape,
                         uint64_t *parameters)
{
    if ((class->form & TTD_FORM_OUTCOME) == TTD_OUTCOME_RESULT) {
        event->result = get(decoder, TTD_COLUMN_EXTRA);
        if (event->result < TTD_OUTCOME_RESULT)
            fail(decoder, "result of an event");
    }
    if (class->action == TTD_ACTION_CREATE) {
        event->reserve_size = get(decoder, TTD_COLUMN_EXTRA);
        event->commit_size = get(decoder, TTD_COLUMN_EXTRA);
    } else if (class->action == TTD_ACTION_PROTECT) {
        event->make_read_only = get(decoder, TTD_COLUMN_EXTRA);
    }
    if (class->form & TTD_FORM_PARAMETERS)
        decode_parameters(decoder, event, class, decoder->state.stored + shape->stored, parameters);
}

static inline bool decode_event(ttd_events_decoder *decoder, ttd_event *event, uint64_t *parameters)
{
    if (!decode_shape(decoder))
        return false;
    ttd_event_shape *shape = &decoder->state.shapes[decoder->state.shape];
    const ttd_event_class *class = &decoder->state.classes[shape->class_index];
    unsigned outcome = class->form & TTD_FORM_OUTCOME;
    *event = (ttd_event){.number = decoder->number++,
                         .flags = class->flags,
                         .result = outcome == TTD_OUTCOME_ONE,
                         .heap = class->heap,
                         .stack = shape->stack,
                         .action = class->action,
                         .api = class->api};
    if (!decode_time(decoder, event, outcome == TTD_OUTCOME_NEVER) || !decode_clock(decoder, event))
        return false;
    if (class->form & TTD_FORM_SIZE) {
        event->size = swap_predicted(get(decoder, TTD_COLUMN_SIZES), shape->size);
        shape->size = event->size;
    }
    if (class->form & TTD_FORM_BASE) {
        event->base_address = decode_base(decoder, class);
        if (class->action == TTD_ACTION_REALLOC)
            event->previous_address = event->base_address;
    }
    if (class->form & TTD_FORM_ADDRESS)
        event->address = decode_address(decoder);
    decode_extra(decoder, event, class, shape, parameters);
    return decoder->error == NULL;
}

/** Checks that nothing is left over after the last event. */
static void finish(ttd_events_decoder *decoder)
{
    for (size_t i = 0; i < TTD_COLUMN_COUNT; i++)
        ttd_cursor_finish(&decoder->columns[i]);
    /* A gap without its entry was read already. */
    if (decoder->until_exception <= TTD_ITEMS_MAX || decoder->until_clock <= TTD_ITEMS_MAX)
        fail(decoder, "entry beyond the last event");
    if (ttd_position_compare(decoder->state.effect, decoder->last) != 0)
        fail(decoder, "last position of a chunk");
}

ttd_status ttd_events_decoder_next(ttd_events_decoder *decoder, size_t *count)
{
    if (decoder->left == 0)
        return TTD_END;
    uint32_t n = decoder->left < TTD_EVENT_BATCH ? decoder->left : TTD_EVENT_BATCH;
    bool is_first = decoder->first_batch;
    for (uint32_t i = 0; i < n; i++) {
        if (decode_event(decoder, &decoder->events[i], decoder->parameters[i]))
            continue;
        column_errors(decoder);
        return decoder->no_memory ? TTD_ERROR_NO_MEMORY : TTD_ERROR_CORRUPT;
    }
    decoder->left -= n;
    if (is_first &&
        ttd_position_compare(ttd_event_position(&decoder->events[0]), decoder->first) != 0)
        fail(decoder, "first position of a chunk");
    decoder->first_batch = false;
    if (decoder->left == 0)
        finish(decoder);
    if (column_errors(decoder))
        return TTD_ERROR_CORRUPT;
    *count = n;
    return TTD_OK;
}
