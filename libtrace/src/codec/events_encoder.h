/* SPDX-License-Identifier: MIT */
/** What the parts of the encoder of events share. */
#ifndef TTD_CODEC_EVENTS_ENCODER_H
#define TTD_CODEC_EVENTS_ENCODER_H

#include "codec/events.h"

/* Appending to columns: room for one event was made before. */

static inline void ttd_events_put8(ttd_events_encoder *encoder, ttd_column column, unsigned value)
{
    ttd_buffer *buffer = &encoder->columns[column];
    buffer->data[buffer->size++] = (uint8_t)value;
}

static inline void ttd_events_put(ttd_events_encoder *encoder, ttd_column column, uint64_t value)
{
    ttd_buffer *buffer = &encoder->columns[column];
    buffer->size = (size_t)(ttd_put_varint(buffer->data + buffer->size, value) - buffer->data);
}

/** The form of an event, without its parameters. */
static inline unsigned ttd_events_form(const ttd_event *event)
{
    unsigned form;
    if (!ttd_event_returned(event))
        form = TTD_OUTCOME_NEVER;
    else
        form = event->result < TTD_OUTCOME_RESULT ? (unsigned)event->result : TTD_OUTCOME_RESULT;
    form |= event->address ? TTD_FORM_ADDRESS : 0;
    form |= event->base_address ? TTD_FORM_BASE : 0;
    bool allocates = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
    form |= allocates || event->size ? TTD_FORM_SIZE : 0;
    return form;
}

/**
 * Finds or adds the shape of an event that is not the predicted one, and appends its symbol.
 *
 * @param form   as ttd_events_form() gives it
 * @param shape  set to its number
 * @return false without memory
 */
bool ttd_events_encode_shape(ttd_events_encoder *encoder, const ttd_event *event, unsigned form,
                             uint32_t *shape);

/** Appends the times of an event that are not as predicted, and counts it. False without memory. */
bool ttd_events_encode_exception(ttd_events_encoder *encoder, const ttd_event *event);

#endif
