/* SPDX-License-Identifier: MIT */
/** A call of an allocation function, reduced to the members that reports show, and how a
 * reallocation moved its block (spec, "Events"). */
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

/* How a reallocation moved its block (spec, "Events"). */

enum heap_move {
    HEAP_MOVE_COPIED,
    /** Its pages were mapped to the new address. */
    HEAP_MOVE_REMAPPED,
    /** One of both. */
    HEAP_MOVE_UNKNOWN
};

/** @param flags  of the call */
static inline enum heap_move heap_move_of(uint8_t api, uint64_t flags, uint64_t before,
                                          uint64_t after)
{
    const uint64_t in_page = 4095;
    bool has_flags = api == TTD_API_REALLOC || api == TTD_API_REALLOCARRAY;
    if ((before ^ after) & in_page || (has_flags && flags == TTD_REALLOC_COPIED))
        return HEAP_MOVE_COPIED;
    return has_flags && flags == TTD_REALLOC_REMAPPED ? HEAP_MOVE_REMAPPED : HEAP_MOVE_UNKNOWN;
}

/** The same of the effect of a reallocation that acquired its block. */
static inline enum heap_move heap_move_of_effect(const struct heap_effect *effect)
{
    return heap_move_of(effect->api, effect->flags, effect->previous_address, effect->address);
}

#endif
