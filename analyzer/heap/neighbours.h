/* SPDX-License-Identifier: MIT */
/** The live blocks that lie beside an address: one of them may have been written beyond its end. */
#ifndef ANALYZER_HEAP_NEIGHBOURS_H
#define ANALYZER_HEAP_NEIGHBOURS_H

#include "heap/place.h"

typedef struct heap_neighbour {
    /** 0 if there is none. */
    uint64_t address;
    uint64_t size;
    heap_place allocated;
} heap_neighbour;

typedef struct heap_neighbours {
    /** The blocks that begin next before the address, and next after it; not the one it is in. */
    heap_neighbour before;
    heap_neighbour after;
} heap_neighbours;

/** Looks at every block. */
heap_neighbours heap_neighbours_find(const heap_live *live, uint64_t address);

#endif
