/* SPDX-License-Identifier: MIT */
/*
 * Sizes, addresses and parameters of the events of a batch; their classes are known. See
 * events_loop.c.
 */
#include "codec/events_decoder.h"

#include <string.h>

#include "base/take.h"
#include "codec/api.h"

static void decode_sizes(ttd_events_decoder *decoder)
{
    ttd_event *events = decoder->batch->events;
    ttd_cursor sizes = decoder->columns[TTD_COLUMN_SIZES];
    size_t count = TTD_TALLY_SIZES(decoder->tally);
    for (size_t i = 0; i < count; i++) {
        size_t index = decoder->sized[i];
        ttd_event_shape *shape = decoder->shapes[index];
        shape->size = ttd_swap_predicted(ttd_take(&sizes), shape->size);
        events[index].size = shape->size;
    }
    decoder->columns[TTD_COLUMN_SIZES] = sizes;
}

/** Reads an address that is spelled out; returns its ordinal. There is room, also after errors. */
static inline uint32_t take_explicit(ttd_events_decoder *decoder, ttd_column column, uint64_t *last)
{
    ttd_event_addresses *addresses = &decoder->addresses;
    uint64_t address = *last + ttd_unzigzag(ttd_take(&decoder->columns[column]));
    *last = address;
    if (address == 0)
        ttd_events_decoder_fail(decoder, "address of an event");
    addresses->spelled[addresses->count] = ttd_rotate_left(address, TTD_ADDRESS_ROTATION);
    return (uint32_t)addresses->count++;
}

static inline void push(ttd_ordinal_list *list, uint32_t ordinal)
{
    list->items[list->count++] = ordinal;
}

/** What each event moves on: local, so that it stays in registers. */
typedef struct places {
    const uint8_t *released;
    const uint8_t *acquired;
    ttd_ordinal_list allocated;
    ttd_ordinal_list freed;
} places;

static inline void decode_base(ttd_events_decoder *decoder, places *at, bool releases,
                               ttd_event *event)
{
    size_t place = *at->released++;
    ttd_ordinal_list *allocated = &at->allocated;
    uint32_t ordinal = 0;
    if (place == 0)
        ordinal = take_explicit(decoder, TTD_COLUMN_RELEASED_EXPLICIT, &decoder->state.released);
    else if (place > allocated->count)
        ttd_events_decoder_fail(decoder, "place of an address");
    else if (releases)
        ordinal = ttd_ordinal_take(allocated, place);
    else
        ordinal = allocated->items[allocated->count - place];
    if (releases)
        push(&at->freed, ordinal);
    event->base_ordinal = ordinal;
    event->base_address = decoder->addresses.spelled[ordinal];
}

static inline void decode_address(ttd_events_decoder *decoder, places *at, ttd_event *event)
{
    size_t place = *at->acquired++;
    ttd_ordinal_list *freed = &at->freed;
    uint32_t ordinal = 0;
    if (place == 0)
        ordinal = take_explicit(decoder, TTD_COLUMN_ACQUIRED_EXPLICIT, &decoder->state.acquired);
    else if (place > freed->count)
        ttd_events_decoder_fail(decoder, "place of an address");
    else
        ordinal = ttd_ordinal_take(freed, place);
    push(&at->allocated, ordinal);
    event->address_ordinal = ordinal;
    event->address = decoder->addresses.spelled[ordinal];
}

static void decode_parameters(ttd_events_decoder *decoder, ttd_event *event,
                              const ttd_event_class *class, const ttd_event_shape *shape,
                              uint64_t *parameters)
{
    uint64_t *stored = decoder->state.stored + shape->stored;
    for (unsigned i = 0; i < class->stored; i++)
        stored[i] =
            ttd_swap_predicted(ttd_cursor_varint(&decoder->columns[TTD_COLUMN_EXTRA]), stored[i]);
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

/** All but size and addresses of an event that is not a usual one. */
static void decode_rest(ttd_events_decoder *decoder, size_t index)
{
    const ttd_event_class *class = decoder->classes[index];
    ttd_event *event = &decoder->batch->events[index];
    if (class->action == TTD_ACTION_REALLOC)
        event->previous_address = event->base_address;
    if (class->rest == TTD_REST_OTHER) {
        uint64_t *parameters = decoder->batch->more_parameters[index];
        if (class->form & TTD_FORM_PARAMETERS)
            event->parameters = parameters;
        decode_extra(decoder, event, class, decoder->shapes[index], parameters);
    } else if (class->rest != TTD_REST_NONE) {
        uint64_t *parameters = decoder->batch->parameters[index];
        event->parameters = parameters;
        parameters[0] = class->rest & TTD_REST_BASE ? event->base_address : event->size;
        parameters[1] = event->size;
    }
}

static inline void decode_event(ttd_events_decoder *decoder, places *at, size_t index,
                                ttd_event *event, uint64_t *parameters)
{
    const ttd_event_class *class = decoder->classes[index];
    if (class->usual == TTD_USUAL_FREE) {
        decode_base(decoder, at, true, event);
        event->parameters = parameters;
        *parameters = event->base_address;
    } else if (class->usual == TTD_USUAL_ALLOC) {
        decode_address(decoder, at, event);
        event->parameters = parameters;
        *parameters = event->size;
    } else {
        if (class->form & TTD_FORM_BASE)
            decode_base(decoder, at, class->releases, event);
        if (class->form & TTD_FORM_ADDRESS)
            decode_address(decoder, at, event);
        decode_rest(decoder, index);
    }
}

/** Whether there is a place for each address. */
static bool has_places(ttd_events_decoder *decoder)
{
    uint32_t tally = decoder->tally;
    if (ttd_cursor_left(&decoder->columns[TTD_COLUMN_RELEASED]) >= TTD_TALLY_BASES(tally) &&
        ttd_cursor_left(&decoder->columns[TTD_COLUMN_ACQUIRED]) >= TTD_TALLY_ADDRESSES(tally))
        return true;
    ttd_events_decoder_fail(decoder, "payload too short");
    return false;
}

void ttd_events_decode_values(ttd_events_decoder *decoder, uint32_t count)
{
    decode_sizes(decoder);
    if (!has_places(decoder))
        return;
    size_t spelled = decoder->addresses.count;
    ttd_event_buffer *batch = decoder->batch;
    places at = {decoder->columns[TTD_COLUMN_RELEASED].at, decoder->columns[TTD_COLUMN_ACQUIRED].at,
                 decoder->addresses.allocated, decoder->addresses.freed};
    for (uint32_t i = 0; i < count; i++)
        decode_event(decoder, &at, i, &batch->events[i], batch->parameters[i]);
    decoder->columns[TTD_COLUMN_RELEASED].at = at.released;
    decoder->columns[TTD_COLUMN_ACQUIRED].at = at.acquired;
    decoder->addresses.allocated.count = at.allocated.count;
    decoder->addresses.freed.count = at.freed.count;
    batch->first_ordinal = (uint32_t)spelled;
    batch->address_count = decoder->addresses.count - spelled;
    memcpy(batch->addresses, decoder->addresses.spelled + spelled,
           batch->address_count * sizeof *batch->addresses);
}
