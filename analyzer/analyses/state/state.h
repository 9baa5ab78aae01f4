/* SPDX-License-Identifier: MIT */
/** The live blocks at a position, from several points of view. */
#ifndef ANALYZER_ANALYSES_STATE_STATE_H
#define ANALYZER_ANALYSES_STATE_STATE_H

#include "analyses/state/kept.h"
#include "heap/call.h"
#include "heap/tables.h"
#include "travel/islands.h"
#include "travel/replay_to.h"

/* The live blocks beside an address. If memory there is corrupt, the program may have written
 * beyond the end of one of them. */

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

struct heap_state {
    struct heap_outcome outcome;
    /** Largest first. */
    struct heap_tables tables;
    /** With options.tells_runtime: the blocks of the runtimes, which are not in the tables then. */
    struct heap_runtime runtime;
    /** Those blocks of the tables that are unknown: see heap_gaps_end(). Not sorted. */
    struct heap_groups unknown;
    /** With options.keeps_blocks: copies of all live blocks, sorted by address. */
    struct heap_block *blocks;
    size_t block_count;
    /** With options.has_address: the neighbours of the address. */
    struct heap_neighbours neighbours;
};

struct heap_state_options {
    struct ttd_position at;
    /** Splits the groups of tables.by[HEAP_BY_STACK], in addition to the stack. */
    enum heap_split split;
    /** For HEAP_SPLIT_CLASS; else NULL. */
    const struct heap_block_classes *classes;
    /** Groups the other tables by stack as well, so that a caller can leave out stacks before it
     * joins their groups. Slower, since there are more groups. */
    bool has_stacks_in_tables;
    /** Only blocks that were allocated in islands that these want; NULL for all. */
    const struct heap_islands *islands;
    /** Sets heap_state.runtime. */
    bool tells_runtime;
    /** Sets heap_state.blocks. */
    bool keeps_blocks;
    /** Sets heap_state.neighbours to the neighbours of `address`. */
    bool has_address;
    uint64_t address;
    /** Compares with the trace those blocks that come from an index and that the caller shows one
     * by one: heap_state.blocks, the block that contains the address, and its neighbours. */
    bool confirms_blocks;
};

/**
 * @param state  set on TTD_OK; release with heap_state_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_state_find(const struct heap_trace *trace,
                                const struct heap_state_options *options, struct heap_state *state,
                                struct ttd_error *error);
void heap_state_free(struct heap_state *state);

#endif
