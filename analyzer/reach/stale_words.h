/* SPDX-License-Identifier: MIT */
/** Words that may be stale: the last release of the memory of each, and the first block at the
 * address that it points at. Private to reach/. */
#ifndef ANALYZER_REACH_STALE_WORDS_H
#define ANALYZER_REACH_STALE_WORDS_H

#include "reach/address_marks.h"
#include "reach/reach.h"

/** All zero when empty. */
struct stale_words {
    /** The words, by address: see enum stale_field. Marked with the releases of their memory. */
    struct address_marks words;
    /** By word: it was copied by realloc() into its block. */
    bool *is_copied;
    /** The first addresses of the nodes that edges among the words lead to. Marked with the births
     * of blocks that had them earlier, each as its complement: the latest is the earliest. */
    struct address_marks targets;
    /** The notes of births, by a few bits of the address: of those at one address, mostly the first
     * one is the earliest. Allocated. */
    struct address_note *births;
    /** By node: whether it is among `targets`; and by 64 nodes, how many are before these. */
    uint64_t *is_target;
    uint32_t *targets_before;
};

/** The edge or root of a word, and whether it is a root. */
enum stale_field { STALE_ADDRESS, STALE_EDGE, STALE_IS_ROOT, STALE_FIELDS };

/**
 * Takes the words of edges and of roots that have GRAPH_STALE, but for REACH_ROOT_DROPPED.
 *
 * @param reach  has offsets of edges
 * @param words  release with stale_words_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status stale_words_take(struct stale_words *words, const struct heap_reach *reach);
/** Begins the noting of releases, for which it takes most of its memory. Offsets of edges are not
 * needed any more. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status stale_words_begin(struct stale_words *words, const struct heap_reach *reach);
void stale_words_free(struct stale_words *words);

/** Notes that a block was released, or that memory was copied by realloc() into the block of a
 * node. */
void stale_words_release(struct stale_words *words, const struct heap_block *block,
                         struct ttd_position position);
void stale_words_copy(struct stale_words *words, const struct graph *graph, uint32_t node,
                      uint64_t address, uint64_t size);

/** Ends the noting. */
void stale_words_settle(struct stale_words *words);

/** The node that a word points at. */
uint32_t stale_words_target(const struct stale_words *words, const struct graph *graph,
                            uint32_t word);

/** The position at which the memory of a word was last released; 0:0 if never. After
 * stale_words_settle(). */
static inline struct ttd_position stale_words_last_release(const struct stale_words *words,
                                                           uint32_t word)
{
    return address_marks_latest(&words->words, word);
}

/** The birth of the first block, which may be the target itself, that had the first address of a
 * target of an edge. After stale_words_settle(). */
struct ttd_position stale_words_first_birth(const struct stale_words *words,
                                            const struct heap_nodes *nodes, uint32_t target);

#endif
