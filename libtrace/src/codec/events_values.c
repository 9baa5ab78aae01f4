/* SPDX-License-Identifier: MIT */
/*
 * Sizes, addresses and parameters of the events of a batch; their classes are known. See
 * events_loop.c.
 */
#include "codec/events_values.h"

#include <string.h>

static inline void decode_size(ttd_cursor *sizes, ttd_event *event, ttd_event_shape *shape)
{
    shape->size = ttd_swap_predicted(ttd_take(sizes), shape->size);
    event->size = shape->size;
}

/** The only parameter of a usual event is a member of it, too. */
static inline void decode_event(ttd_events_decoder *decoder, ttd_event_values *at,
                                ttd_cursor *sizes, size_t index, ttd_event *event)
{
    const ttd_event_class *class = decoder->classes[index];
    if (class->usual == TTD_USUAL_FREE) {
        ttd_events_decode_base(decoder, at, true, event);
        event->parameters = &event->base_address;
    } else if (class->usual == TTD_USUAL_ALLOC) {
        decode_size(sizes, event, decoder->shapes[index]);
        ttd_events_decode_address(decoder, at, event);
        event->parameters = &event->size;
    } else {
        if (class->form & TTD_FORM_SIZE)
            decode_size(sizes, event, decoder->shapes[index]);
        /* By way of a copy: were the address passed on, none of it would stay in registers. */
        ttd_event_values moved = ttd_events_decode_unusual(decoder, *at, index);
        *at = moved;
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
    if (!has_places(decoder))
        return;
    size_t spelled = decoder->addresses.count;
    ttd_event_buffer *batch = decoder->batch;
    ttd_cursor sizes = decoder->columns[TTD_COLUMN_SIZES];
    ttd_event_values at = {decoder->columns[TTD_COLUMN_RELEASED].at,
                           decoder->columns[TTD_COLUMN_ACQUIRED].at, decoder->addresses.allocated,
                           decoder->addresses.freed};
    for (uint32_t i = 0; i < count; i++)
        decode_event(decoder, &at, &sizes, i, &batch->events[i]);
    decoder->columns[TTD_COLUMN_SIZES] = sizes;
    decoder->columns[TTD_COLUMN_RELEASED].at = at.released;
    decoder->columns[TTD_COLUMN_ACQUIRED].at = at.acquired;
    decoder->addresses.allocated.count = at.allocated.count;
    decoder->addresses.freed.count = at.freed.count;
    batch->first_ordinal = (uint32_t)spelled;
    batch->address_count = decoder->addresses.count - spelled;
    memcpy(batch->addresses, decoder->addresses.spelled + spelled,
           batch->address_count * sizeof *batch->addresses);
}
