/* SPDX-License-Identifier: MIT */
/** Internals of the encoder of events, private to its parts. */
#ifndef TTD_CODEC_EVENTS_ENCODER_H
#define TTD_CODEC_EVENTS_ENCODER_H

#include "codec/events/events.h"

/* Append to columns. The caller has reserved room for one event in each column. */

static inline void ttd_events_put8(struct ttd_events_encoder *encoder, enum ttd_column column,
                                   unsigned value)
{
    struct ttd_buffer *buffer = &encoder->columns[column];
    buffer->data[buffer->size++] = (uint8_t)value;
}

static inline void ttd_events_put(struct ttd_events_encoder *encoder, enum ttd_column column,
                                  uint64_t value)
{
    ttd_buffer_append_varint(&encoder->columns[column], value);
}

/** The shape that is predicted to come next; 0 for none. */
static inline uint32_t ttd_events_predicted_shape(const struct ttd_events_encoder *encoder)
{
    const struct ttd_event_state *state = &encoder->state;
    return encoder->count ? state->next_shapes[state->shape] : 0;
}

/** Whether a call began and ended right after the one before, of the same thread. */
static inline bool ttd_events_follow(struct ttd_position start, struct ttd_position end, ttd_id id,
                                     const struct ttd_event_thread *thread)
{
    struct ttd_position last = thread->end;
    return ((start.sequence ^ last.sequence) | (end.sequence ^ last.sequence) |
            (start.steps - last.steps - 1) | (end.steps - last.steps - 2) | (id ^ thread->id)) ==
               0 &&
           end.steps >= last.steps;
}

static inline void ttd_events_encode_size(struct ttd_events_encoder *encoder, uint64_t size,
                                          struct ttd_event_shape *shape)
{
    ttd_events_put(encoder, TTD_COLUMN_SIZES, ttd_swap_predicted(size, shape->size));
    shape->size = size;
}

/** Returns the form of an event (TTD_FORM_*), without the bits about its parameters. */
static inline unsigned ttd_events_form(const struct ttd_event *event)
{
    bool allocates = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
    unsigned form =
        event->result < TTD_OUTCOME_RESULT ? (unsigned)event->result : TTD_OUTCOME_RESULT;
    if (!ttd_event_returned(event))
        form = TTD_OUTCOME_NEVER;
    form |= (unsigned)(event->address != 0) * TTD_FORM_ADDRESS;
    form |= (unsigned)(event->base_address != 0) * TTD_FORM_BASE;
    form |= (unsigned)(allocates | (event->size != 0)) * TTD_FORM_SIZE;
    return form;
}

/** Returns the key of an event's class; `form` is as ttd_events_form() returns it. */
static inline uint64_t ttd_events_key(const struct ttd_event *event, unsigned form)
{
    /* The number of parameters plus 1; 0 stands for an event without recorded parameters. */
    uint64_t parameters = event->parameters ? event->parameter_count + UINT64_C(1) : 0;
    return event->action | (uint64_t)event->api << 8 | (uint64_t)form << 16 | parameters << 24 |
           (uint64_t)event->heap << 32;
}

/**
 * Finds or adds the shape of an event that is not the predicted one, and appends its symbol.
 *
 * @param form   as ttd_events_form() gives it
 * @param key    as ttd_events_key() gives it
 * @param shape  set to its number
 * @return false without memory
 */
bool ttd_events_encode_shape(struct ttd_events_encoder *encoder, const struct ttd_event *event,
                             unsigned form, uint64_t key, uint32_t *shape);

/** Appends the symbol of a shape to its columns. */
void ttd_events_put_symbol(struct ttd_events_encoder *encoder, uint32_t symbol);

/** Appends the times of an event that are not as predicted, and counts it. False without memory. */
bool ttd_events_encode_exception(struct ttd_events_encoder *encoder, const struct ttd_event *event);

/** Appends the address that an event gives back, or (`releases` is false) only refers to. */
void ttd_events_encode_base(struct ttd_events_encoder *encoder, uint64_t base, bool releases);

/** Appends the address that an event acquires. */
void ttd_events_encode_address(struct ttd_events_encoder *encoder, uint64_t address);

/** Appends the optional values of an event: see enum ttd_event_general. */
void ttd_events_encode_extra(struct ttd_events_encoder *encoder, const struct ttd_event *event,
                             const struct ttd_event_class *class);

#endif
