/* SPDX-License-Identifier: MIT */
/** The live blocks at the end of a trace or of a part of it, from chunks that come from the last to
 * the first. */
#ifndef ANALYZER_TRAVEL_END_SEARCH_H
#define ANALYZER_TRAVEL_END_SEARCH_H

#include "travel/end_bits.h"
#include "travel/heap_trace.h"

/** So few heaps that no block ends because too many of other heaps are at its address. */
#define END_HEAPS_MAX (HEAP_SHARED_MAX - 1)

/** A chunk of events that the reader has left unread. */
struct end_chunk {
    struct ttd_chunk chunk;
    struct ttd_defined defined;
};

/** A heap: only its own events change its blocks. */
struct end_heap {
    ttd_id id;
    /** It is destroyed in the chunks behind, so the others leave none of its blocks. */
    bool is_destroyed;
    /** Since its destruction, if it is destroyed. */
    struct end_bits bits;
    /** Number of addresses that need a block of the chunks before. */
    uint64_t needing;
};

/** A block that a ReAlloc of a chunk acquires at a position in a later chunk. */
struct end_question {
    size_t chunk;
    struct ttd_net_pending pending;
};

/** Everything but the first three members is 0 at first. */
struct end_search {
    /** Gets the blocks, counts and the position. */
    struct heap_replay *replay;
    const struct heap_trace *trace;
    struct ttd_position to;
    /** All chunks of events of the trace, in its order. */
    struct end_chunk *chunks;
    size_t count;
    size_t capacity;
    /** The number of those whose events are all at `to` or before. The others are only checked. */
    size_t before;
    /** No effect of these chunks may be behind: `to`, or where the next chunk begins. */
    struct ttd_position limit;
    struct end_heap *heaps[END_HEAPS_MAX];
    size_t heap_count;
    /** Number of addresses that were decided. */
    uint64_t decided;
    /** Releases of blocks that were never acquired. */
    uint64_t unknown_releases;
    /** Whether the chunks behind leave an address alone until its block is acquired; by chunk, the
     * last one first. */
    struct end_question *questions;
    size_t question_count;
    size_t question_capacity;
    /** Where a heap is destroyed first in the chunks behind, if one is. */
    bool has_destroyed;
    struct ttd_position destroyed;
    /** False as soon as a replay is necessary. */
    bool is_plain;
};

/** Frees all but `chunks`. */
void end_search_free(struct end_search *search);

/** Sets the limit, when all chunks are listed. */
void end_search_begin(struct end_search *search);

/**
 * Takes in a netted chunk; those behind it have been taken in.
 *
 * @param netter  has netted it last
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, or the status of the trace's hook.
 */
enum ttd_status end_search_add(struct end_search *search, const struct ttd_netter *netter,
                               size_t number, const struct ttd_netted *netted);

/** Completes the counts, when all chunks have been taken in. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status end_search_finish(struct end_search *search);

#endif
