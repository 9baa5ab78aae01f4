/* SPDX-License-Identifier: MIT */
/* The loop over the events of a chunk: the library's hottest code. */
#include "codec/events_decoder.h"

#include <string.h>

#include "codec/api.h"

/**
 * What the loop over events uses all the time, apart from the decoder so that the compiler knows
 * that nothing else changes it. Never hand out its address.
 */
typedef struct hot {
    ttd_event_buffer *out;
    const ttd_event_class *classes;
    ttd_event_shape *shapes;
    uint32_t shape_count;
    uint32_t shape;
    const uint8_t *symbols;
    ttd_cursor sizes;
    ttd_cursor released;
    ttd_cursor acquired;
    ttd_cursor released_explicit;
    ttd_cursor acquired_explicit;
    ttd_event_addresses addresses;
    uint64_t last_released;
    uint64_t last_acquired;
    uint64_t number;
    /** Number of the next event with an exception or another wall time. */
    uint64_t special;
    /** The current thread and where its last call ended; invalid if there is none. */
    ttd_id thread;
    ttd_position end;
    const char *error;
} hot;

static inline void load_thread(hot *h, const ttd_event_state *state)
{
    if (state->thread == UINT32_MAX) {
        h->end = ttd_position_invalid();
    } else {
        h->thread = state->threads[state->thread].id;
        h->end = state->threads[state->thread].end;
    }
}

static inline void store_thread(const hot *h, ttd_event_state *state)
{
    if (state->thread != UINT32_MAX)
        state->threads[state->thread].end = h->end;
}

/** Finds the next event that is not as predicted. */
static inline void find_special(const ttd_events_decoder *decoder, hot *h)
{
    h->special =
        decoder->exception < decoder->clock_change ? decoder->exception : decoder->clock_change;
}

static inline hot warm_up(const ttd_events_decoder *decoder)
{
    const ttd_event_state *state = &decoder->state;
    hot h = {.out = decoder->batch,
             .classes = state->classes,
             .shapes = state->shapes,
             .shape_count = (uint32_t)state->shape_count,
             .shape = state->shape,
             .symbols = decoder->columns[TTD_COLUMN_SHAPES_FIRST].at,
             .sizes = decoder->columns[TTD_COLUMN_SIZES],
             .released = decoder->columns[TTD_COLUMN_RELEASED],
             .acquired = decoder->columns[TTD_COLUMN_ACQUIRED],
             .released_explicit = decoder->columns[TTD_COLUMN_RELEASED_EXPLICIT],
             .acquired_explicit = decoder->columns[TTD_COLUMN_ACQUIRED_EXPLICIT],
             .addresses = decoder->addresses,
             .last_released = state->released,
             .last_acquired = state->acquired,
             .number = decoder->number};
    load_thread(&h, state);
    find_special(decoder, &h);
    return h;
}

static inline void cool_down(ttd_events_decoder *decoder, const hot *h)
{
    ttd_event_state *state = &decoder->state;
    store_thread(h, state);
    state->shape = h->shape;
    decoder->columns[TTD_COLUMN_SHAPES_FIRST].at = h->symbols;
    decoder->columns[TTD_COLUMN_SIZES] = h->sizes;
    decoder->columns[TTD_COLUMN_RELEASED] = h->released;
    decoder->columns[TTD_COLUMN_ACQUIRED] = h->acquired;
    decoder->columns[TTD_COLUMN_RELEASED_EXPLICIT] = h->released_explicit;
    decoder->columns[TTD_COLUMN_ACQUIRED_EXPLICIT] = h->acquired_explicit;
    decoder->addresses = h->addresses;
    state->released = h->last_released;
    state->acquired = h->last_acquired;
    decoder->number = h->number;
    if (h->error)
        ttd_events_decoder_fail(decoder, h->error);
}

/** A varint and the cursor behind it, so that the cursor itself can stay in registers. */
typedef struct taken {
    uint64_t value;
    ttd_cursor cursor;
} taken;

static taken take_slow(ttd_cursor cursor)
{
    taken result;
    result.value = ttd_cursor_varint_slow(&cursor);
    result.cursor = cursor;
    return result;
}

/** Squeezes the 7-bit groups of up to 8 bytes together. */
static inline uint64_t squeeze(uint64_t x)
{
    x = (x & UINT64_C(0x7F007F007F007F00)) >> 1 | (x & UINT64_C(0x007F007F007F007F));
    x = (x & UINT64_C(0x3FFF00003FFF0000)) >> 2 | (x & UINT64_C(0x00003FFF00003FFF));
    return (x & UINT64_C(0x0FFFFFFF00000000)) >> 4 | (x & UINT64_C(0x000000000FFFFFFF));
}

/** A varint, without a branch for each of its bytes: their number is hard to predict. */
static inline uint64_t take(ttd_cursor *cursor)
{
    size_t left = ttd_cursor_left(cursor);
    const uint8_t *at = cursor->at;
    if (left >= 1 && at[0] < 0x80) {
        cursor->at = at + 1;
        return at[0];
    }
    if (left >= 8) {
        uint64_t x = ttd_get64(at);
        uint64_t stops = ~x & UINT64_C(0x8080808080808080);
        uint64_t stop = stops & (0 - stops); /* the top bit of the last byte */
        uint64_t last = stop - (stop >> 7);  /* its other bits */
        if (stop != 0 && (x & last) != 0) {
            /* Which byte that is, from 0: one of the multiplier's bytes ends up on top. */
            cursor->at = at + 1 + ((stop >> 7) * UINT64_C(0x0001020304050607) >> 56);
            return squeeze(x & (stop - 1));
        }
    }
    taken result = take_slow(*cursor);
    *cursor = result.cursor;
    return result.value;
}

static inline unsigned take8(hot *h, ttd_cursor *cursor)
{
    if (cursor->at != cursor->end)
        return *cursor->at++;
    h->error = "payload too short";
    return 0;
}

/** The general case of a symbol: see TTD_SHAPE_ONE_BYTE. */
static uint32_t read_symbol(ttd_events_decoder *decoder, uint32_t first)
{
    ttd_cursor *more = &decoder->columns[TTD_COLUMN_SHAPES_MORE];
    uint32_t low = ttd_cursor_get8(more);
    if (first == TTD_SHAPE_ESCAPE)
        return TTD_SHAPE_TWO_BYTES + low + ((uint32_t)ttd_cursor_get8(more) << 8);
    return TTD_SHAPE_ONE_BYTE + ((first - TTD_SHAPE_ONE_BYTE) << 8) + low;
}

/** The shape of the next event; NULL on failure. There is one symbol per event. */
static inline ttd_event_shape *decode_shape(ttd_events_decoder *decoder, hot *h)
{
    uint32_t symbol = *h->symbols++;
    uint32_t *next = &h->shapes[h->shape].next;
    if (symbol >= TTD_SHAPE_ONE_BYTE)
        symbol = read_symbol(decoder, symbol);
    /* Without a branch: nobody can predict whether the prediction was right. */
    symbol |= *next & (0 - (uint32_t)(symbol == 0));
    if (symbol == 0 || symbol > h->shape_count)
        return NULL;
    *next = symbol;
    h->shape = symbol;
    return &h->shapes[symbol];
}

/** See swap_predicted() of the encoder: it is its own inverse. */
static inline uint64_t swap_predicted(uint64_t value, uint64_t predicted)
{
    if (value == predicted)
        return 0;
    return value == 0 ? predicted : value;
}

/** Reads an address that is spelled out; returns its ordinal. */
static inline uint32_t take_explicit(hot *h, ttd_cursor *cursor, uint64_t *last)
{
    uint32_t ordinal = (uint32_t)h->addresses.count;
    if (cursor->at == cursor->end) {
        h->error = "payload too short";
        h->addresses.spelled[ordinal] = 0;
        return ordinal;
    }
    *last += ttd_unzigzag(take(cursor));
    if (*last == 0)
        h->error = "address of an event";
    h->addresses.spelled[ordinal] = ttd_rotate_left(*last, TTD_ADDRESS_ROTATION);
    h->addresses.count++;
    return ordinal;
}

static inline void push(ttd_ordinal_list *list, uint32_t ordinal)
{
    list->items[list->count++] = ordinal;
}

static inline void decode_base(hot *h, bool releases, ttd_event *event)
{
    size_t place = take8(h, &h->released);
    ttd_ordinal_list *allocated = &h->addresses.allocated;
    uint32_t ordinal = 0;
    if (place == 0)
        ordinal = take_explicit(h, &h->released_explicit, &h->last_released);
    else if (place > allocated->count)
        h->error = "place of an address";
    else if (releases)
        ordinal = ttd_ordinal_take(allocated, place);
    else
        ordinal = allocated->items[allocated->count - place];
    if (releases)
        push(&h->addresses.freed, ordinal);
    event->base_ordinal = ordinal;
    event->base_address = h->addresses.spelled[ordinal];
}

static inline void decode_address(hot *h, ttd_event *event)
{
    size_t place = take8(h, &h->acquired);
    ttd_ordinal_list *freed = &h->addresses.freed;
    uint32_t ordinal = 0;
    if (place == 0)
        ordinal = take_explicit(h, &h->acquired_explicit, &h->last_acquired);
    else if (place > freed->count)
        h->error = "place of an address";
    else
        ordinal = ttd_ordinal_take(freed, place);
    push(&h->addresses.allocated, ordinal);
    event->address_ordinal = ordinal;
    event->address = h->addresses.spelled[ordinal];
}

static void decode_parameters(ttd_events_decoder *decoder, ttd_event *event,
                              const ttd_event_class *class, const ttd_event_shape *shape,
                              uint64_t *parameters)
{
    uint64_t *stored = decoder->state.stored + shape->stored;
    for (unsigned i = 0; i < class->stored; i++)
        stored[i] =
            swap_predicted(ttd_cursor_varint(&decoder->columns[TTD_COLUMN_EXTRA]), stored[i]);
    if (!class->items)
        memcpy(parameters, stored, class->stored * sizeof *stored);
    else if (!ttd_template_apply(class->items, event, stored, parameters))
        ttd_events_decoder_fail(decoder, "parameters of an event");
}

/** What few events have. */
static void decode_extra(ttd_events_decoder *decoder, ttd_event *event,
                         const ttd_event_class *class, const ttd_event_shape *shape,
                         uint64_t *parameters)
{
    ttd_cursor *extra = &decoder->columns[TTD_COLUMN_EXTRA];
    if ((class->form & TTD_FORM_OUTCOME) == TTD_OUTCOME_RESULT) {
        event->result = ttd_cursor_varint(extra);
        if (event->result < TTD_OUTCOME_RESULT)
            ttd_events_decoder_fail(decoder, "result of an event");
    }
    if (class->action == TTD_ACTION_CREATE) {
        event->reserve_size = ttd_cursor_varint(extra);
        event->commit_size = ttd_cursor_varint(extra);
    } else if (class->action == TTD_ACTION_PROTECT) {
        event->make_read_only = ttd_cursor_varint(extra);
    }
    if (event->parameters)
        decode_parameters(decoder, event, class, shape, parameters);
}

/** The wall clock has changed. */
static void change_clock(ttd_events_decoder *decoder, uint64_t number)
{
    ttd_event_state *state = &decoder->state;
    state->clock += ttd_unzigzag(ttd_cursor_varint(&decoder->columns[TTD_COLUMN_CLOCK]));
    decoder->clock_change = ttd_events_next_gap(decoder, TTD_COLUMN_CLOCK, number + 1);
    if (state->time_unit && state->clock > UINT64_MAX / state->time_unit)
        ttd_events_decoder_fail(decoder, "wall time of an event");
    state->wall_time = state->clock * state->time_unit;
}

/** Times as predicted: two steps of the current thread. */
static inline bool decode_times(hot *h, const ttd_event_class *class, ttd_event *event)
{
    uint64_t steps = h->end.steps;
    /* Holds as well when there is no current thread. */
    if (steps >= UINT64_MAX - 1 || (class->form & TTD_FORM_OUTCOME) == TTD_OUTCOME_NEVER)
        return false;
    event->time_start = (ttd_position){h->end.sequence, steps + 1};
    event->time_end = (ttd_position){h->end.sequence, steps + 2};
    h->end.steps = steps + 2;
    return true;
}

/** Times that are an exception, or a change of the wall clock. */
static bool decode_special(ttd_events_decoder *decoder, hot *h, const ttd_event_class *class,
                           const ttd_event *before, ttd_event *event)
{
    ttd_event_state *state = &decoder->state;
    bool done;
    if (h->number == decoder->exception) {
        if (before)
            state->effect = ttd_event_position(before);
        store_thread(h, state);
        done = ttd_events_decode_exception(decoder, class, h->number, &event->time_start,
                                           &event->time_end);
        load_thread(h, state);
    } else {
        done = decode_times(h, class, event);
    }
    if (h->number == decoder->clock_change)
        change_clock(decoder, h->number);
    find_special(decoder, h);
    return done;
}

/**
 * Size, addresses and parameters of an event, which is a copy of its class's prototype. What is
 * known of the class when this is compiled is left out.
 */
static inline void decode_values(ttd_events_decoder *decoder, hot *h, size_t index,
                                 const ttd_event_class *class, ttd_event_shape *shape,
                                 unsigned form, unsigned rest, bool releases)
{
    ttd_event *event = &h->out->events[index];
    if (form & TTD_FORM_SIZE) {
        event->size = swap_predicted(take(&h->sizes), shape->size);
        shape->size = event->size;
    }
    if (form & TTD_FORM_BASE)
        decode_base(h, releases, event);
    if (form & TTD_FORM_ADDRESS)
        decode_address(h, event);
    if (rest == TTD_REST_OTHER) {
        if (form & TTD_FORM_PARAMETERS)
            event->parameters = h->out->more_parameters[index];
        decode_extra(decoder, event, class, shape, h->out->more_parameters[index]);
    } else if (rest != TTD_REST_NONE) {
        uint64_t *parameters = h->out->parameters[index];
        event->parameters = parameters;
        parameters[0] = rest & TTD_REST_BASE ? event->base_address : event->size;
        parameters[1] = event->size;
    }
}

static inline void decode_by_class(ttd_events_decoder *decoder, hot *h, size_t index,
                                   const ttd_event_class *class, ttd_event_shape *shape)
{
    ttd_event *event = &h->out->events[index];
    if (class->usual == TTD_USUAL_FREE) {
        decode_values(decoder, h, index, class, shape, TTD_FORM_BASE, TTD_REST_BASE, true);
    } else if (class->usual == TTD_USUAL_ALLOC) {
        decode_values(decoder, h, index, class, shape, TTD_FORM_SIZE | TTD_FORM_ADDRESS,
                      TTD_REST_SIZE, false);
    } else {
        decode_values(decoder, h, index, class, shape, class->form, class->rest, class->releases);
        if (class->action == TTD_ACTION_REALLOC)
            event->previous_address = event->base_address;
    }
}

/** Decodes one event; false on failure. */
static inline bool decode_event(ttd_events_decoder *decoder, hot *h, const ttd_event *before,
                                size_t index)
{
    ttd_event *event = &h->out->events[index];
    ttd_event_shape *shape = decode_shape(decoder, h);
    if (!shape) {
        h->error = "shape of an event";
        return false;
    }
    const ttd_event_class *class = &h->classes[shape->class_index];
    *event = decoder->prototypes[shape->class_index];
    if (h->number == h->special ? !decode_special(decoder, h, class, before, event)
                                : !decode_times(h, class, event)) {
        h->error = "times of an event";
        return false;
    }
    event->number = h->number++;
    event->wall_time = decoder->state.wall_time;
    event->thread = h->thread;
    event->stack = shape->stack;
    decode_by_class(decoder, h, index, class, shape);
    return !h->error;
}

void ttd_events_decode_batch(ttd_events_decoder *decoder, uint32_t count)
{
    hot h = warm_up(decoder);
    const ttd_event *before = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (!decode_event(decoder, &h, before, i))
            break;
        before = &h.out->events[i];
    }
    if (before)
        decoder->state.effect = ttd_event_position(before);
    cool_down(decoder, &h);
}
