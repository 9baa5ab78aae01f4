/* SPDX-License-Identifier: MIT */
/** Words that may be stale, and when the memory of each was last released. Private to reach/. */
#ifndef ANALYZER_REACH_STALE_WORDS_H
#define ANALYZER_REACH_STALE_WORDS_H

#include "reach/reach.h"

/** Releases that are noted together. */
#define STALE_RELEASES 32

/** Memory that was released. */
struct stale_release {
    uint64_t address;
    uint64_t size;
    struct ttd_position position;
};

/** All zero when empty. */
struct stale_words {
    uint32_t count;
    /** The words, by address: see enum stale_field. */
    struct packed_table table;
    struct address_index index;
    /**
     * A tree above the words, which are its leaves from `count` on; node n is the parent of 2n and
     * 2n + 1. Holds when all words below a node were last released at once: the last release of a
     * word is the latest one from its leaf up to the root.
     */
    struct ttd_position *released;
    /** By word: it was copied by realloc() into its block. */
    bool *is_copied;
    /** Releases that are not noted in `released` yet. */
    struct stale_release pending[STALE_RELEASES];
    size_t pending_count;
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
enum ttd_status stale_words_begin(struct stale_words *words);
void stale_words_free(struct stale_words *words);

/** Notes that memory was released, or copied by realloc() into the block of a node. Releases are
 * noted by and by, many together: memory is slower than all else. */
void stale_words_release(struct stale_words *words, uint64_t address, uint64_t size,
                         struct ttd_position position);
void stale_words_copy(struct stale_words *words, const struct graph *graph, uint32_t node,
                      uint64_t address, uint64_t size);

/** Ends the noting: brings what was noted of many words at once to each of them. */
void stale_words_settle(struct stale_words *words);

/** When the memory of a word was last released; 0:0 if never. After stale_words_settle(). */
static inline struct ttd_position stale_words_last_release(const struct stale_words *words,
                                                           uint32_t word)
{
    return words->released[(size_t)word + words->count];
}

#endif
