/* SPDX-License-Identifier: MIT */
/** A call of an allocation function, reduced to the members that reports show. */
#ifndef ANALYZER_HEAP_CALL_H
#define ANALYZER_HEAP_CALL_H

#include "heap/replay.h"

struct heap_call {
    /** Invalid if there is no such call, or it is not known. */
    struct ttd_position position;
    ttd_id stack;
    ttd_id thread;
    /** A ttd_action, and an enum ttd_api. */
    uint8_t action;
    uint8_t api;
    /** The call never returned. */
    bool is_unfinished;
};

static inline struct heap_call heap_call_none(void)
{
    return (struct heap_call){.position = {TTD_SEQUENCE_INVALID, UINT64_MAX}};
}

static inline bool heap_call_is_known(const struct heap_call *call)
{
    return ttd_position_is_valid(call->position);
}

static inline struct heap_call heap_call_of_event(const struct ttd_event *event)
{
    return (struct heap_call){
        ttd_event_position(event), event->stack, event->thread, event->action, event->api,
        !ttd_event_returned(event)};
}

/** Returns the call that allocated a block. */
static inline struct heap_call heap_call_of_block(const struct heap_block *block)
{
    return (struct heap_call){block->allocated, block->stack, block->thread,
                              block->action,    block->api,   false};
}

static inline struct heap_call heap_call_of_effect(const struct heap_effect *effect)
{
    return (struct heap_call){effect->position, effect->stack, effect->thread,
                              effect->action,   effect->api,   effect->is_unfinished};
}

#endif
