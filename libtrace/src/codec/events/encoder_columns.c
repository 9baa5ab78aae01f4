/* SPDX-License-Identifier: MIT */
/* Times that are not as predicted, addresses, and optional fields (spec, "Times", "Addresses",
 * "Extra"). */
#include "codec/events/encoder.h"

static unsigned encoder_encode_start(struct ttd_position start, struct ttd_position end,
                                     uint64_t sequence, uint64_t values[2], size_t *count)
{
    bool follows = start.sequence == end.sequence && start.steps >= end.steps;
    if (follows && start.steps - end.steps == 1)
        return TTD_TIME_START_STEP;
    if (start.sequence == sequence + 1 && start.steps == 0)
        return TTD_TIME_START_SEQUENCE;
    if (follows) {
        values[(*count)++] = start.steps - end.steps;
        return TTD_TIME_START_STEPS;
    }
    values[(*count)++] = ttd_zigzag(start.sequence - sequence);
    values[(*count)++] = start.steps;
    return TTD_TIME_START_EXPLICIT;
}

static unsigned encoder_encode_end(struct ttd_position start, struct ttd_position end,
                                   uint64_t sequence, uint64_t values[2], size_t *count)
{
    if (!ttd_position_is_valid(end))
        return TTD_TIME_END_NEVER;
    bool follows = end.sequence == start.sequence && end.steps >= start.steps;
    if (follows && end.steps - start.steps == 1)
        return TTD_TIME_END_STEP;
    /* An end is not before its start, so the larger number is the nearer prediction. */
    if (sequence < start.sequence)
        sequence = start.sequence;
    if (end.sequence == sequence + 1 && end.steps == 0)
        return TTD_TIME_END_SEQUENCE;
    if (follows) {
        values[(*count)++] = end.steps - start.steps;
        return TTD_TIME_END_STEPS;
    }
    values[(*count)++] = ttd_zigzag(end.sequence - sequence);
    values[(*count)++] = end.steps;
    return TTD_TIME_END_EXPLICIT;
}

/** Finds or adds the event's thread and makes it the current one. */
static bool encoder_change_thread(struct ttd_events_encoder *encoder, ttd_id id)
{
    struct ttd_event_state *state = &encoder->state;
    bool is_known = ttd_map_find(&encoder->thread_map, id, &state->thread);
    if (!is_known) {
        state->thread = (uint32_t)state->thread_count;
        if (!ttd_event_state_add_thread(state, id) ||
            !ttd_map_add(&encoder->thread_map, id, state->thread))
            return false;
    }
    ttd_events_put(encoder, TTD_COLUMN_TIME_VALUES, state->thread);
    if (!is_known)
        ttd_events_put(encoder, TTD_COLUMN_TIME_VALUES, id);
    return true;
}

bool ttd_events_encode_exception(struct ttd_events_encoder *encoder, const struct ttd_event *event)
{
    struct ttd_event_state *state = &encoder->state;
    unsigned form = 0;
    if (encoder->count == 0 || state->threads[state->thread].id != event->thread) {
        form = TTD_TIME_THREAD;
        if (!encoder_change_thread(encoder, event->thread))
            return false;
    }
    struct ttd_event_thread *thread = &state->threads[state->thread];
    uint64_t values[4];
    size_t count = 0;
    uint64_t sequence = state->effect.sequence;
    form |= encoder_encode_start(event->time_start, thread->end, sequence, values, &count)
            << TTD_TIME_START_SHIFT;
    form |= encoder_encode_end(event->time_start, event->time_end, sequence, values, &count)
            << TTD_TIME_END_SHIFT;
    ttd_events_put(encoder, TTD_COLUMN_TIME_GAPS, encoder->since_exception);
    ttd_events_put8(encoder, TTD_COLUMN_TIME_FORMS, form);
    for (size_t i = 0; i < count; i++)
        ttd_events_put(encoder, TTD_COLUMN_TIME_VALUES, values[i]);
    encoder->since_exception = 0;
    thread->end = ttd_event_returned(event) ? event->time_end : event->time_start;
    return true;
}

/** How far back places are looked for: farther gains less than it costs. */
#define SEARCH_DEPTH 64

static inline size_t encoder_hash_address(uint64_t address)
{
    uint32_t low = (uint32_t)(address >> TTD_ADDRESS_ROTATION);
    return low * UINT32_C(0x9E3779B1) >> (32 - TTD_ADDRESS_HASH_BITS);
}

/** The place of an address in a list, 1 for the newest; 0 if it is not found near the end. */
static inline unsigned encoder_find_place(const struct ttd_address_list *list,
                                          const uint32_t *newest_at, uint64_t address)
{
    /* Since it was appended it can only have moved towards the begin. */
    size_t i = newest_at[encoder_hash_address(address)];
    size_t least = list->count > SEARCH_DEPTH ? list->count - SEARCH_DEPTH : 0;
    if (i > list->count)
        i = list->count;
    const uint64_t *items = list->items;
    /* Four at a time, since where the search ends is hard to predict. */
    for (; i >= least + 4; i -= 4)
        if ((items[i - 1] == address) | (items[i - 2] == address) | (items[i - 3] == address) |
            (items[i - 4] == address))
            break;
    for (; i > least; i--)
        if (items[i - 1] == address)
            return (unsigned)(list->count - i + 1);
    return 0;
}

static inline void encoder_values_push(struct ttd_address_list *list, uint32_t *newest_at,
                                       uint64_t address)
{
    ttd_address_push(list, address);
    newest_at[encoder_hash_address(address)] = (uint32_t)list->count;
}

static void encoder_put_explicit(struct ttd_events_encoder *encoder, enum ttd_column column,
                                 uint64_t address, uint64_t *last)
{
    uint64_t rotated = ttd_rotate_right(address, TTD_ADDRESS_ROTATION);
    ttd_events_put(encoder, column, ttd_zigzag(rotated - *last));
    *last = rotated;
}

void ttd_events_encode_base(struct ttd_events_encoder *encoder, uint64_t base, bool releases)
{
    struct ttd_event_state *state = &encoder->state;
    unsigned place = encoder_find_place(&state->allocated, encoder->allocated_at, base);
    ttd_events_put8(encoder, TTD_COLUMN_RELEASED, place);
    if (place == 0)
        encoder_put_explicit(encoder, TTD_COLUMN_RELEASED_EXPLICIT, base, &state->released);
    if (!releases)
        return;
    if (place != 0)
        ttd_address_take(&state->allocated, place);
    encoder_values_push(&state->freed, encoder->freed_at, base);
}

void ttd_events_encode_address(struct ttd_events_encoder *encoder, uint64_t address)
{
    struct ttd_event_state *state = &encoder->state;
    unsigned place = encoder_find_place(&state->freed, encoder->freed_at, address);
    ttd_events_put8(encoder, TTD_COLUMN_ACQUIRED, place);
    if (place == 0)
        encoder_put_explicit(encoder, TTD_COLUMN_ACQUIRED_EXPLICIT, address, &state->acquired);
    else
        ttd_address_take(&state->freed, place);
    encoder_values_push(&state->allocated, encoder->allocated_at, address);
}

void ttd_events_encode_extra(struct ttd_events_encoder *encoder, const struct ttd_event *event,
                             const struct ttd_event_class *class)
{
    if ((class->form & TTD_FORM_OUTCOME) == TTD_OUTCOME_RESULT)
        ttd_events_put(encoder, TTD_COLUMN_EXTRA, event->result);
    if (event->action == TTD_ACTION_CREATE) {
        ttd_events_put(encoder, TTD_COLUMN_EXTRA, event->reserve_size);
        ttd_events_put(encoder, TTD_COLUMN_EXTRA, event->commit_size);
    } else if (event->action == TTD_ACTION_PROTECT) {
        ttd_events_put(encoder, TTD_COLUMN_EXTRA, event->make_read_only);
    }
    if ((class->form & TTD_FORM_PARAMETERS) == TTD_PARAMETERS_NONE)
        return;
    uint64_t *last = encoder->state.stored + encoder->state.stored_at[encoder->state.shape];
    for (uint32_t i = 0; i < event->parameter_count; i++) {
        if (class->items && class->items[i] != 'X')
            continue;
        ttd_events_put(encoder, TTD_COLUMN_EXTRA, ttd_swap_predicted(event->parameters[i], *last));
        *last++ = event->parameters[i];
    }
}
