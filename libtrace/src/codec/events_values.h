/* SPDX-License-Identifier: MIT */
/** Sizes and addresses of the events of a batch, for the loops over them. */
#ifndef TTD_CODEC_EVENTS_VALUES_H
#define TTD_CODEC_EVENTS_VALUES_H

#include "base/take.h"
#include "codec/events_decoder.h"

/** Reads an address that is spelled out; returns its ordinal. There is room, also after errors. */
static inline uint32_t ttd_events_take_explicit(ttd_events_decoder *decoder, ttd_column column,
                                                uint64_t *last)
{
    ttd_event_addresses *addresses = &decoder->addresses;
    uint64_t address = *last + ttd_unzigzag(ttd_take(&decoder->columns[column]));
    *last = address;
    if (address == 0)
        ttd_events_decoder_fail(decoder, "address of an event");
    addresses->spelled[addresses->count] = ttd_rotate_left(address, TTD_ADDRESS_ROTATION);
    return (uint32_t)addresses->count++;
}

/** What each event moves on: local, so that it stays in registers. */
typedef struct ttd_event_values {
    const uint8_t *released;
    const uint8_t *acquired;
    ttd_ordinal_list allocated;
    ttd_ordinal_list freed;
} ttd_event_values;

static inline void ttd_events_decode_base(ttd_events_decoder *decoder, ttd_event_values *at,
                                          bool releases, ttd_event *event)
{
    size_t place = *at->released++;
    ttd_ordinal_list *allocated = &at->allocated;
    uint32_t ordinal = 0;
    if (place == 0)
        ordinal = ttd_events_take_explicit(decoder, TTD_COLUMN_RELEASED_EXPLICIT,
                                           &decoder->state.released);
    else if (place > allocated->count)
        ttd_events_decoder_fail(decoder, "place of an address");
    else if (releases)
        ordinal = ttd_ordinal_take(allocated, place);
    else
        ordinal = allocated->items[allocated->count - place];
    if (releases)
        ttd_ordinal_push(&at->freed, ordinal);
    event->base_ordinal = ordinal;
    event->base_address = decoder->addresses.spelled[ordinal];
}

static inline void ttd_events_decode_address(ttd_events_decoder *decoder, ttd_event_values *at,
                                             ttd_event *event)
{
    size_t place = *at->acquired++;
    ttd_ordinal_list *freed = &at->freed;
    uint32_t ordinal = 0;
    if (place == 0)
        ordinal = ttd_events_take_explicit(decoder, TTD_COLUMN_ACQUIRED_EXPLICIT,
                                           &decoder->state.acquired);
    else if (place > freed->count)
        ttd_events_decoder_fail(decoder, "place of an address");
    else
        ordinal = ttd_ordinal_take(freed, place);
    ttd_ordinal_push(&at->allocated, ordinal);
    event->address_ordinal = ordinal;
    event->address = decoder->addresses.spelled[ordinal];
}

/**
 * Decodes all but the size of an event that is not a usual one: out of the way of those
 * that are.
 *
 * @return `at`, moved on
 */
ttd_event_values ttd_events_decode_unusual(ttd_events_decoder *decoder, ttd_event_values at,
                                           size_t index);

#endif
