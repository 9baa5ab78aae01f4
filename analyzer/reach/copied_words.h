/* SPDX-License-Identifier: MIT */
/**
 * Words that realloc() copied into their block. Such a word is as old as it was in the block
 * before, and so on back to its *origin*, the block that brought its memory into this chain. It may
 * be a relic of the memory of its origin. The replay of stale.c finds the origins; another one, the
 * last release of that memory before each origin was allocated.
 *
 * Private to reach/.
 */
#ifndef ANALYZER_REACH_COPIED_WORDS_H
#define ANALYZER_REACH_COPIED_WORDS_H

#include "reach/stale.h"
#include "reach/nodes.h"
#include "travel/heap_trace.h"

/** A block that a reallocation ended. */
struct copied_step {
    uint64_t address;
    uint64_t size;
    uint64_t event;
    struct ttd_position allocated;
    /** The index of the step that led to this block; 0 for none. Of an unused one, the next. */
    uint32_t before;
    /** Steps up to this one. */
    uint32_t depth;
    /** All words count as written: they are from calloc(), or the steps before were dropped. */
    bool is_written;
};

/** Words of a node that have one origin. */
struct copied_origin {
    uint64_t event;
    struct ttd_position allocated;
    struct address_span rows;
    /** The address of a word in the origin, minus that in the node, modulo 2^64. */
    uint64_t shift;
};

/** All zero when empty. */
struct copied_words {
    /** Index 0 is not used. */
    struct copied_step *steps;
    size_t step_count;
    size_t step_capacity;
    uint32_t unused;
    struct copied_origin *origins;
    size_t origin_count;
    size_t origin_capacity;
};

/**
 * Follows the reallocations of each block, by heap_block.user, and notes the origins of a node's
 * words. Takes at most 32 steps of 56 bytes for a block.
 *
 * @param words   the words of an origin get WORD_AGE_WRITTEN
 * @param effect  has a block before; or ends a block whose `user` is not 0
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status copied_words_see(struct copied_words *copied, struct stale_words *words,
                                 struct heap_reach *reach, const struct heap_effect *effect);
void copied_words_free(struct copied_words *copied);

/**
 * Gives WORD_AGE_RELIC to the words that may be relics. Replays the trace up to the last origin,
 * unless the address of each word's target was first used when the origin was there.
 *
 * @param words  settled
 * @return as heap_replay_to().
 */
enum ttd_status copied_words_decide(const struct copied_words *copied, struct stale_words *words,
                                    const struct heap_reach *reach,
                                    const struct reach_survivors *survivors,
                                    const struct heap_trace *trace, struct ttd_error *error);

#endif
