/* SPDX-License-Identifier: MIT */
/** The cost of reallocations, by call site and by block. */
#ifndef ANALYZER_ANALYSES_ACTIVITY_MOVES_H
#define ANALYZER_ANALYSES_ACTIVITY_MOVES_H

#include "heap/site_table.h"
#include "travel/islands.h"
#include "travel/pass.h"

/** Patterns of growth of the sizes of a call site. */
enum heap_growth {
    /** Too few reallocations to say. */
    HEAP_GROWTH_UNKNOWN,
    /** Most make blocks smaller, or leave the size as it is. */
    HEAP_GROWTH_SHRINKING,
    HEAP_GROWTH_SAME,
    /** Growth by about the same number of bytes each time: moving may cost quadratic time. */
    HEAP_GROWTH_LINEAR,
    /** Growth by about the same factor each time. */
    HEAP_GROWTH_GEOMETRIC,
    HEAP_GROWTH_IRREGULAR
};

/** Bytes copied by moves of blocks. */
struct heap_copies {
    /** Moves that mapped the pages of the block to the new address, and copied nothing. */
    uint64_t remapped;
    /** Moves that may have done so. */
    uint64_t unknown;
    /** Sum over the moves that copied: the smaller of old and new size; and over all but those that
     * are known to have copied nothing. */
    uint64_t bytes;
    uint64_t bytes_at_most;
};

/** Calls of realloc and the like, by their result. */
struct heap_move_counts {
    /** All calls: the sum of the six counts from `moved` to `unfinished`. */
    uint64_t reallocs;
    uint64_t moved;
    uint64_t in_place;
    uint64_t from_null;
    uint64_t to_zero;
    uint64_t failed;
    uint64_t unfinished;
    /** Calls, counted in `moved` or `in_place`, whose old block is not in the trace: its size, and
     * so the bytes copied, are unknown. */
    uint64_t unknown_old;
    /** Of the calls in `moved`. */
    struct heap_copies copies;
    /** How many bytes would not have been copied if blocks had grown by doubling their size:
     * a block that grows so copies no more bytes than it gains. Calls of a site that have others
     * copy less may make it negative: see heap_move_avoidable(). */
    int64_t avoidable;
};

/** An estimate, for output. */
static inline uint64_t heap_move_avoidable(const struct heap_move_counts *counts)
{
    return counts->avoidable > 0 ? (uint64_t)counts->avoidable : 0;
}

/** The reallocations of a call site, and statistics of how its sizes grow. */
struct heap_move_group {
    struct heap_key key;
    struct heap_move_counts counts;
    /** Smallest and largest size, before or after a reallocation; and the numbers of reallocations
     * that made a block larger and smaller. Only reallocations of known blocks count. */
    uint64_t smallest;
    uint64_t largest;
    uint64_t grown;
    uint64_t shrunk;
    /** Number of reallocations that grew from a size above 0; and sums over these of the factor, of
     * the bytes added, and of the squares of both. */
    uint64_t measured;
    double factor_sum, factor_squares;
    double step_sum, step_squares;
};

/** The successive reallocations of one block. */
struct heap_chain {
    uint64_t start_size;
    uint64_t final_size;
    uint64_t reallocs;
    uint64_t largest_size;
    uint64_t moved;
    struct heap_copies copies;
    uint64_t avoidable;
    /** Positions of the first allocation and of the last reallocation. */
    struct ttd_position first;
    struct ttd_position last;
    uint64_t address;
    ttd_id stack;
};

/** Groups by key. heap_move_table_sort() sorts by avoidable copied bytes, then by copied bytes. */
struct heap_move_table {
    struct heap_move_counts total;
    struct heap_move_group *groups;
    size_t count;
    size_t capacity;
    struct hash_map by_key;
};

struct heap_moves_options {
    /** Number of the worst chains to keep. */
    size_t chains;
    /** Splits the groups, beside the stack. */
    enum heap_split split;
    /** Counts only calls in these islands; NULL for all. A chain is then the history of its block
     * through these calls. */
    const struct heap_islands *islands;
    /** In a pass: counts only the calls and the bytes that they copied, in all and by call site.
     * There are no chains, no bytes that could have been avoided, no statistics of sizes, and
     * `regrown` stays empty; without islands. Takes a fraction of the time. */
    bool only_copies;
};

struct move_finder;

struct heap_moves {
    struct heap_outcome outcome;
    struct heap_move_table reallocs;
    /** Growth without realloc, inferred: see struct heap_regrowth. */
    struct heap_move_table regrown;
    enum heap_split split;
    /** The worst chains, worst first. */
    struct heap_chain *worst;
    size_t worst_count;
    size_t worst_max;
    /** Until heap_moves_end(). */
    struct move_finder *finder;
};

/**
 * Replays the whole trace.
 *
 * @param moves  set on TTD_OK; release with heap_moves_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_moves_find(const struct heap_trace *trace,
                                const struct heap_moves_options *options, struct heap_moves *moves,
                                struct ttd_error *error);
void heap_moves_free(struct heap_moves *moves);

/**
 * Makes the moves a part of a pass to the end of the trace.
 *
 * @param moves  release with heap_moves_free(), also on failure; stays where it is
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_moves_watch(struct heap_moves *moves, const struct heap_moves_options *options,
                                 struct heap_pass *pass);

/** Completes them when the pass has ended. */
void heap_moves_end(struct heap_moves *moves);

void heap_move_table_init(struct heap_move_table *table);
void heap_move_table_free(struct heap_move_table *table);

/** Sets `group` to the group of a key; adds the group if there is none. Valid until the next call.
 * @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_move_table_find(struct heap_move_table *table, struct heap_key key,
                                     struct heap_move_group **group);

/** Adds to heap_move_counts.avoidable. */
void heap_move_add_avoidable(struct heap_move_counts *counts, int64_t bytes);

/** Puts the groups in order. */
void heap_move_table_sort(struct heap_move_table *table);

/** Presents the groups as a table of call sites, weighted by the bytes that were copied at most. */
struct heap_site_table heap_move_site_table(struct heap_move_table *table);

/**
 * Classifies the growth of a group.
 *
 * @param measure  set to the mean number of bytes added for linear growth, to the mean factor for
 *                 geometric growth, else to 0
 */
enum heap_growth heap_move_growth(const struct heap_move_group *group, double *measure);

/** Returns the static name of a growth, such as "geometric". */
const char *heap_growth_name(enum heap_growth growth);

/*
 * Growth without realloc, inferred. A C++ container that is full allocates a larger block, copies
 * its elements, and releases the old block. The analysis assumes such a growth where a thread
 * releases a block, and one of its last REGROWTH_CALLS calls has allocated a larger block, later,
 * with the same stack and from the same heap, and the thread has not released it. The newest such
 * allocation is the successor, and an allocation is the successor of one block only. The number of
 * bytes copied is unknown; the size of the old block is an upper limit.
 */

/* Growth: the pattern in the sizes of a call site's reallocations. */

/** Adds a reallocation from `before` to `after` bytes to the group's statistics. */
void heap_growth_add(struct heap_move_group *group, uint64_t before, uint64_t after);

/** Adds the statistics of `group` to `sum`. */
void heap_growth_merge(struct heap_move_group *sum, const struct heap_move_group *group);

/** Number of calls of a thread from the allocation to the release, both included. */
#define REGROWTH_CALLS 8

/** The state of the analysis: the last calls of each thread, some hundred bytes for each. */
struct regrowth_finder {
    struct heap_move_table *regrown;
    enum heap_split split;
    const struct heap_islands *islands;
    /** Maps a thread to an index in `recent`. */
    struct hash_map threads;
    /** The thread that was looked up last, and its index, if there is any thread. */
    ttd_id last_thread;
    uint32_t last_index;
    struct regrowth_recent *recent;
    size_t count;
    size_t capacity;
};

/** @param regrown  borrowed; inferred growths are added to it
 * @param islands   borrowed; only growths into blocks that were allocated in them; NULL for all */
void regrowth_init(struct regrowth_finder *finder, struct heap_move_table *regrown,
                   enum heap_split split, const struct heap_islands *islands);
void regrowth_free(struct regrowth_finder *finder);

/** Handles an effect of a replay; must be called for every one. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status regrowth_see(struct regrowth_finder *finder, const struct heap_effect *effect);

/** The same for calls that take the fast path: see struct heap_plain_observer. */
enum ttd_status regrowth_see_alloc(struct regrowth_finder *finder, const struct ttd_event *event);
enum ttd_status regrowth_see_free(struct regrowth_finder *finder, const struct ttd_event *event,
                                  const struct heap_block *block);

#endif
