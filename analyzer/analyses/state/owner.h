/* SPDX-License-Identifier: MIT */
/** Owners of an address: the blocks that cover it at one time or another. */
#ifndef ANALYZER_ANALYSES_STATE_OWNER_H
#define ANALYZER_ANALYSES_STATE_OWNER_H

#include "heap/call.h"
#include "heap/groups.h"
#include "heap/sort_blocks.h"
#include "heap/moved.h"

/** An owner: a block that covers, or covered, an address of the range. */
struct heap_owner {
    struct heap_block block;
    /**
     * The call that released the block; unknown while it is live. If the release is missing in the
     * trace, this is the call that acquired another block there: action Alloc, or action ReAlloc
     * with `overlapped`.
     */
    struct heap_call released;
    bool overlapped;
    /** Address of the block that this one was reallocated from; 0 if it was newly allocated. */
    uint64_t previous_address;
    /** How it was moved from there, if that is another address. */
    enum heap_move move;
    /** Number of the owner, from 1, in order of acquisition. */
    uint64_t ordinal;
    /** When the block was lost; NULL if no snapshot shows that it is lost. Set by
     * heap_lost_owners_find(). */
    const struct heap_lost_range *lost;
};

#endif
