/* SPDX-License-Identifier: MIT */
/* The general path: parameters, and optional fields. Few events need it, so that the loops over
 * all events stay short. */
#include "codec/events/decoder.h"

#include <string.h>

#include "codec/api.h"

static void decode_parameters(struct ttd_events_decoder *decoder, struct ttd_event *event,
                              const struct ttd_event_class *class,
                              const struct ttd_event_shape *shape, uint64_t *parameters)
{
    struct ttd_event_state *state = &decoder->state;
    uint64_t *stored = state->stored + state->stored_at[shape - state->shapes];
    for (unsigned i = 0; i < class->stored; i++)
        stored[i] =
            ttd_swap_predicted(ttd_cursor_varint(&decoder->columns[TTD_COLUMN_EXTRA]), stored[i]);
    if (!class->items)
        memcpy(parameters, stored, class->stored * sizeof *stored);
    else if (!ttd_template_apply(class->items, event, stored, parameters))
        ttd_events_decoder_fail(decoder, "parameters of an event");
}

/** Reads the optional fields: flags, result, reserve and commit size (EXTRA). */
static void decode_extra(struct ttd_events_decoder *decoder, struct ttd_event *event,
                         const struct ttd_event_class *class, const struct ttd_event_shape *shape,
                         uint64_t *parameters)
{
    struct ttd_cursor *extra = &decoder->columns[TTD_COLUMN_EXTRA];
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

void ttd_events_decode_general(struct ttd_events_decoder *decoder, size_t index)
{
    const struct ttd_event_class *class = decoder->classes[index];
    struct ttd_event *event = &decoder->batch->events[index];
    if (class->action == TTD_ACTION_REALLOC)
        event->previous_address = event->base_address;
    if (class->general == TTD_GENERAL_OTHER) {
        uint64_t *parameters = decoder->batch->more_parameters[index];
        if (class->form & TTD_FORM_PARAMETERS)
            event->parameters = parameters;
        decode_extra(decoder, event, class, decoder->shapes[index], parameters);
    } else if (class->general == TTD_GENERAL_SIZE) {
        event->parameters = &event->size;
    } else if (class->general == TTD_GENERAL_BASE) {
        event->parameters = &event->base_address;
    } else if (class->general == TTD_GENERAL_BASE_SIZE) {
        uint64_t *parameters = decoder->batch->parameters[index];
        event->parameters = parameters;
        parameters[0] = event->base_address;
        parameters[1] = event->size;
    }
}
