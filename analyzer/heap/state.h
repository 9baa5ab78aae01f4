/* SPDX-License-Identifier: MIT */
/** The live blocks at a position, from several points of view. */
#ifndef ANALYZER_HEAP_STATE_H
#define ANALYZER_HEAP_STATE_H

#include "heap/groups.h"
#include "heap/pass.h"

typedef struct heap_state {
    /** By the stack that allocated, and as `split` says; largest first, as the others. */
    heap_groups groups;
    /** By heap, thread and class of size, as far as they were asked for. */
    heap_groups heaps;
    heap_groups threads;
    heap_groups sizes;
    /** Copies of all blocks by address, if they were asked for. */
    heap_block *blocks;
    size_t block_count;
    heap_outcome outcome;
} heap_state;

/** What is wanted of a state, beside state->groups. */
typedef struct heap_state_wishes {
    /** Of state->groups. */
    heap_split split;
    /** Set the tables by heap, thread and size; if by stack as well, stacks can be left out of them
     * before they are joined, but it takes its time. */
    bool has_tables;
    bool has_stacks_in_tables;
    /** Set state->blocks. */
    bool keeps_blocks;
} heap_state_wishes;

/**
 * @param state  set on TTD_OK; release with heap_state_free()
 * Others and statuses as heap_pass_run().
 */
ttd_status heap_state_find(ttd_reader *reader, const heap_keyframes *keyframes, ttd_position at,
                           const heap_state_wishes *wishes, const heap_batch_hook *hook,
                           heap_state *state, ttd_error *error);
void heap_state_free(heap_state *state);

/** The sizes of a class of heap_state.sizes, both included. */
void heap_size_class(ttd_id size_class, uint64_t *first, uint64_t *last);

#endif
