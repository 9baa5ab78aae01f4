/* SPDX-License-Identifier: MIT */
/*
 * Sizes, addresses and parameters of the events of a batch; their classes are known. See
 * decoder_loop.c.
 */
#include "codec/events/decoder.h"

#include <string.h>

#include "base/cursor.h"

/* Times of events that are not as predicted (spec, "Times"). */

static uint64_t columns_get(struct ttd_events_decoder *decoder)
{
    return ttd_cursor_varint(&decoder->columns[TTD_COLUMN_TIME_VALUES]);
}

/** Reads the thread of the exception. */
static bool columns_read_thread(struct ttd_events_decoder *decoder)
{
    struct ttd_event_state *state = &decoder->state;
    uint64_t index = columns_get(decoder);
    if (index > state->thread_count) {
        ttd_events_decoder_fail(decoder, "thread of an event");
        return false;
    }
    if (index == state->thread_count) {
        uint64_t id = columns_get(decoder);
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

static struct ttd_position columns_read_start(struct ttd_events_decoder *decoder, unsigned form,
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
        steps = columns_get(decoder);
        if (steps > UINT64_MAX - end.steps)
            ttd_events_decoder_fail(decoder, "times of an event");
        return (struct ttd_position){end.sequence, end.steps + steps};
    default:
        sequence += ttd_unzigzag(columns_get(decoder));
        return (struct ttd_position){sequence, columns_get(decoder)};
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
        return (struct ttd_position){start.sequence, start.steps + columns_get(decoder)};
    case TTD_TIME_END_EXPLICIT:
        sequence += ttd_unzigzag(columns_get(decoder));
        return (struct ttd_position){sequence, columns_get(decoder)};
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
    if ((form & TTD_TIME_THREAD) ? !columns_read_thread(decoder) : state->thread == UINT32_MAX) {
        ttd_events_decoder_fail(decoder, "thread of an event");
        return false;
    }
    /* Times that are just as predicted are no exception, and have no form. */
    if (form == 0 || form & ~TTD_TIME_MASK)
        ttd_events_decoder_fail(decoder, "form of an event's times");
    struct ttd_event_thread *thread = &state->threads[state->thread];
    unsigned start_form = (form & TTD_TIME_START) >> TTD_TIME_START_SHIFT;
    unsigned end_form = (form & TTD_TIME_END) >> TTD_TIME_END_SHIFT;
    *start = columns_read_start(decoder, start_form, thread->end);
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

/** Reads an address that is spelled out; returns its ordinal. There is room, also after errors. */
static inline uint32_t columns_take_explicit(struct ttd_events_decoder *decoder,
                                             enum ttd_column column, uint64_t *last)
{
    struct ttd_event_addresses *addresses = &decoder->addresses;
    uint64_t address = *last + ttd_unzigzag(ttd_varint_fast(&decoder->columns[column]));
    *last = address;
    if (address == 0)
        ttd_events_decoder_fail(decoder, "address of an event");
    addresses->spelled[addresses->count] = ttd_rotate_left(address, TTD_ADDRESS_ROTATION);
    return (uint32_t)addresses->count++;
}

/** Cursors that each event advances. A local copy, so that they stay in registers. */
struct places {
    const uint8_t *released;
    const uint8_t *acquired;
    struct ttd_ordinal_list allocated;
    struct ttd_ordinal_list freed;
};

static inline void columns_decode_base(struct ttd_events_decoder *decoder, struct places *places,
                                       bool releases, struct ttd_event *event)
{
    size_t place = *places->released++;
    struct ttd_ordinal_list *allocated = &places->allocated;
    uint32_t ordinal = 0;
    if (place == 0)
        ordinal =
            columns_take_explicit(decoder, TTD_COLUMN_RELEASED_EXPLICIT, &decoder->state.released);
    else if (place > allocated->count)
        ttd_events_decoder_fail(decoder, "place of an address");
    else if (releases)
        ordinal = ttd_ordinal_take(allocated, place);
    else
        ordinal = allocated->items[allocated->count - place];
    if (releases)
        ttd_ordinal_push(&places->freed, ordinal);
    event->base_ordinal = ordinal;
    event->base_address = decoder->addresses.spelled[ordinal];
}

static inline void columns_decode_address(struct ttd_events_decoder *decoder, struct places *places,
                                          struct ttd_event *event)
{
    size_t place = *places->acquired++;
    struct ttd_ordinal_list *freed = &places->freed;
    uint32_t ordinal = 0;
    if (place == 0)
        ordinal =
            columns_take_explicit(decoder, TTD_COLUMN_ACQUIRED_EXPLICIT, &decoder->state.acquired);
    else if (place > freed->count)
        ttd_events_decoder_fail(decoder, "place of an address");
    else
        ordinal = ttd_ordinal_take(freed, place);
    ttd_ordinal_push(&places->allocated, ordinal);
    event->address_ordinal = ordinal;
    event->address = decoder->addresses.spelled[ordinal];
}

static inline void columns_decode_size(struct ttd_cursor *sizes, struct ttd_event *event,
                                       struct ttd_event_shape *shape)
{
    shape->size = ttd_swap_predicted(ttd_varint_fast(sizes), shape->size);
    event->size = shape->size;
}

/** The only parameter of a usual event is a member of it, too. */
static inline void decode_event(struct ttd_events_decoder *decoder, struct places *places,
                                struct ttd_cursor *sizes, size_t index, struct ttd_event *event)
{
    const struct ttd_event_class *class = decoder->classes[index];
    if (class->fast == TTD_FAST_FREE) {
        columns_decode_base(decoder, places, true, event);
        event->parameters = &event->base_address;
    } else if (class->fast == TTD_FAST_ALLOC) {
        columns_decode_size(sizes, event, decoder->shapes[index]);
        columns_decode_address(decoder, places, event);
        event->parameters = &event->size;
    } else {
        if (class->form & TTD_FORM_SIZE)
            columns_decode_size(sizes, event, decoder->shapes[index]);
        if (class->form & TTD_FORM_BASE)
            columns_decode_base(decoder, places, class->releases, event);
        if (class->form & TTD_FORM_ADDRESS)
            columns_decode_address(decoder, places, event);
        if (class->general != TTD_GENERAL_NONE || class->action == TTD_ACTION_REALLOC)
            ttd_events_decode_general(decoder, index);
    }
}

/** Whether there is a place for each address. */
static bool columns_has_places(struct ttd_events_decoder *decoder)
{
    uint32_t tally = decoder->tally;
    if (ttd_cursor_left(&decoder->columns[TTD_COLUMN_RELEASED]) >= TTD_TALLY_BASES(tally) &&
        ttd_cursor_left(&decoder->columns[TTD_COLUMN_ACQUIRED]) >= TTD_TALLY_ADDRESSES(tally))
        return true;
    ttd_events_decoder_fail(decoder, "payload too short");
    return false;
}

void ttd_events_decode_values(struct ttd_events_decoder *decoder, uint32_t count)
{
    if (!columns_has_places(decoder))
        return;
    size_t spelled = decoder->addresses.count;
    struct ttd_event_buffer *batch = decoder->batch;
    struct ttd_cursor sizes = decoder->columns[TTD_COLUMN_SIZES];
    struct places places = {decoder->columns[TTD_COLUMN_RELEASED].next,
                            decoder->columns[TTD_COLUMN_ACQUIRED].next,
                            decoder->addresses.allocated, decoder->addresses.freed};
    for (uint32_t i = 0; i < count; i++)
        decode_event(decoder, &places, &sizes, i, &batch->events[i]);
    decoder->columns[TTD_COLUMN_SIZES] = sizes;
    decoder->columns[TTD_COLUMN_RELEASED].next = places.released;
    decoder->columns[TTD_COLUMN_ACQUIRED].next = places.acquired;
    decoder->addresses.allocated.count = places.allocated.count;
    decoder->addresses.freed.count = places.freed.count;
    batch->first_ordinal = (uint32_t)spelled;
    batch->address_count = decoder->addresses.count - spelled;
    memcpy(batch->addresses, decoder->addresses.spelled + spelled,
           batch->address_count * sizeof *batch->addresses);
}
