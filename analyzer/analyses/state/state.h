/* SPDX-License-Identifier: MIT */
/** The live blocks at a position, from several points of view. */
#ifndef ANALYZER_ANALYSES_STATE_STATE_H
#define ANALYZER_ANALYSES_STATE_STATE_H

#include "analyses/state/kept.h"
#include "analyses/state/neighbours.h"
#include "heap/tables.h"
#include "travel/islands.h"
#include "travel/replay_to.h"

struct heap_state {
    struct heap_outcome outcome;
    /** Largest first. */
    struct heap_tables tables;
    /** If it was asked for: then it is not in the tables. */
    struct heap_runtime runtime;
    /** The unknown ones among the blocks of the tables: see heap_gaps_end(). Not sorted. */
    struct heap_groups unknown;
    /** Copies of all blocks by address, if they were asked for. */
    struct heap_block *blocks;
    size_t block_count;
    /** The neighbours of the address, if one was asked for. */
    struct heap_neighbours neighbours;
};

struct heap_state_options {
    struct ttd_position at;
    /** Splits state->tables.by[HEAP_BY_STACK], beside the stack. */
    enum heap_split split;
    /** For HEAP_SPLIT_CLASS; else NULL. */
    const struct heap_block_classes *classes;
    /** The other tables are by stack as well, so that stacks can be left out of them before they
     * are joined; it takes its time. */
    bool has_stacks_in_tables;
    /** Only blocks that were allocated in islands that these want; NULL for all. */
    const struct heap_islands *islands;
    /** Tell apart what the runtimes keep. */
    bool tells_runtime;
    /** Set state->blocks. */
    bool keeps_blocks;
    /** Set state->neighbours, to those of an address. */
    bool has_address;
    uint64_t address;
    /** Blocks that are kept, that of the address and its neighbours are shown one by one: where
     * they come from an index, each is compared with the trace. */
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
