/* SPDX-License-Identifier: MIT */
/** How a reallocation moved its block (spec, "Events"). */
#ifndef ANALYZER_HEAP_MOVED_H
#define ANALYZER_HEAP_MOVED_H

#include "heap/replay.h"

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
