/* SPDX-License-Identifier: MIT */
/** The live blocks that lie beside an address: one of them may have been written beyond its end. */
#ifndef ANALYZER_ANALYSES_STATE_NEIGHBOURS_H
#define ANALYZER_ANALYSES_STATE_NEIGHBOURS_H

#include "heap/call.h"

struct heap_neighbour {
    /** 0 if there is none. */
    uint64_t address;
    uint64_t size;
    struct heap_call allocated;
};

struct heap_neighbours {
    /** The blocks that begin next before the address, and next after it; not the one it is in. */
    struct heap_neighbour before;
    struct heap_neighbour after;
};

/** Looks at every block. */
struct heap_neighbours heap_neighbours_find(const struct heap_live *live, uint64_t address);

#endif
