/* SPDX-License-Identifier: MIT */
/** Where something was done: a call, as far as a report tells of it. */
#ifndef ANALYZER_HEAP_PLACE_H
#define ANALYZER_HEAP_PLACE_H

#include "heap/replay.h"

struct heap_place {
    /** Invalid if there is no such call, or none is known. */
    struct ttd_position position;
    ttd_id stack;
    ttd_id thread;
    /** A ttd_action, and a ttd_api_function. */
    uint8_t action;
    uint8_t api;
    /** The call never returned. */
    bool is_unfinished;
};

static inline struct heap_place heap_place_none(void)
{
    return (struct heap_place){.position = {TTD_SEQUENCE_INVALID, UINT64_MAX}};
}

static inline bool heap_place_is_known(const struct heap_place *place)
{
    return ttd_position_is_valid(place->position);
}

static inline struct heap_place heap_place_of_event(const struct ttd_event *event)
{
    return (struct heap_place){
        ttd_event_position(event), event->stack, event->thread, event->action, event->api,
        !ttd_event_returned(event)};
}

/** Where a block was allocated. */
static inline struct heap_place heap_place_of_block(const struct heap_block *block)
{
    return (struct heap_place){block->allocated, block->stack, block->thread,
                               block->action,    block->api,   false};
}

static inline struct heap_place heap_place_of_effect(const struct heap_effect *effect)
{
    return (struct heap_place){effect->position, effect->stack, effect->thread,
                               effect->action,   effect->api,   effect->is_unfinished};
}

#endif
