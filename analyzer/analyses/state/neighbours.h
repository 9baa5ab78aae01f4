/* SPDX-License-Identifier: MIT */
/** The live blocks beside an address. If memory there is corrupt, the program may have written
 * beyond the end of one of them. */
#ifndef ANALYZER_ANALYSES_STATE_NEIGHBOURS_H
#define ANALYZER_ANALYSES_STATE_NEIGHBOURS_H

#include "heap/call.h"

struct heap_neighbour {
    /** 0 if there is none. */
    uint64_t address;
    uint64_t size;
    struct heap_call allocated;
};

/** The nearest block that begins before the address, and the nearest that begins after it; the
 * block that contains the address is neither. */
struct heap_neighbours {
    struct heap_neighbour before;
    struct heap_neighbour after;
};

/** Finds the neighbours of an address; looks at every live block. */
struct heap_neighbours heap_neighbours_find(const struct heap_live *live, uint64_t address);

#endif
