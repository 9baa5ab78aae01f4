/* SPDX-License-Identifier: MIT */
/* Addresses, and optional fields (spec, "Addresses", "Extra"). */
#include "codec/events/encoder.h"

/** How far back places are looked for: farther gains less than it costs. */
#define SEARCH_DEPTH 64

static inline size_t hash_address(uint64_t address)
{
    uint32_t low = (uint32_t)(address >> TTD_ADDRESS_ROTATION);
    return low * UINT32_C(0x9E3779B1) >> (32 - TTD_ADDRESS_HASH_BITS);
}

/** The place of an address in a list, 1 for the newest; 0 if it is not found near the end. */
static inline unsigned find_place(const struct ttd_address_list *list, const uint32_t *newest_at,
                                  uint64_t address)
{
    /* Since it was appended it can only have moved towards the begin. */
    size_t i = newest_at[hash_address(address)];
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

static inline void values_push(struct ttd_address_list *list, uint32_t *newest_at, uint64_t address)
{
    ttd_address_push(list, address);
    newest_at[hash_address(address)] = (uint32_t)list->count;
}

static void put_explicit(struct ttd_events_encoder *encoder, enum ttd_column column,
                         uint64_t address, uint64_t *last)
{
    uint64_t rotated = ttd_rotate_right(address, TTD_ADDRESS_ROTATION);
    ttd_events_put(encoder, column, ttd_zigzag(rotated - *last));
    *last = rotated;
}

void ttd_events_encode_base(struct ttd_events_encoder *encoder, uint64_t base, bool releases)
{
    struct ttd_event_state *state = &encoder->state;
    unsigned place = find_place(&state->allocated, encoder->allocated_at, base);
    ttd_events_put8(encoder, TTD_COLUMN_RELEASED, place);
    if (place == 0)
        put_explicit(encoder, TTD_COLUMN_RELEASED_EXPLICIT, base, &state->released);
    if (!releases)
        return;
    if (place != 0)
        ttd_address_take(&state->allocated, place);
    values_push(&state->freed, encoder->freed_at, base);
}

void ttd_events_encode_address(struct ttd_events_encoder *encoder, uint64_t address)
{
    struct ttd_event_state *state = &encoder->state;
    unsigned place = find_place(&state->freed, encoder->freed_at, address);
    ttd_events_put8(encoder, TTD_COLUMN_ACQUIRED, place);
    if (place == 0)
        put_explicit(encoder, TTD_COLUMN_ACQUIRED_EXPLICIT, address, &state->acquired);
    else
        ttd_address_take(&state->freed, place);
    values_push(&state->allocated, encoder->allocated_at, address);
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
