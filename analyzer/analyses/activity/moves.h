/* SPDX-License-Identifier: MIT */
/** The cost of reallocations, by call site and by block. */
#ifndef ANALYZER_ANALYSES_ACTIVITY_MOVES_H
#define ANALYZER_ANALYSES_ACTIVITY_MOVES_H

#include "heap/site_table.h"
#include "travel/replay_to.h"

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

/** Calls of realloc by what became of them. */
struct heap_move_counts {
    /** All; the sum of the seven that follow. */
    uint64_t reallocs;
    uint64_t moved;
    uint64_t in_place;
    uint64_t from_null;
    uint64_t to_zero;
    uint64_t failed;
    uint64_t unfinished;
    /** Calls among those moved or in place whose old block is unknown, and so the bytes copied. */
    uint64_t unknown_old;
    /** The smaller of old and new size, summed over the moved ones. */
    uint64_t bytes_copied;
};

struct heap_move_group {
    struct heap_key key;
    struct heap_move_counts counts;
    /** Over reallocations of known blocks. */
    uint64_t smallest;
    uint64_t largest;
    uint64_t grown;
    uint64_t shrunk;
    /** Sums over those that grew from a size above 0: factor, bytes, and their squares. */
    uint64_t measured;
    double factor_sum, factor_squares;
    double step_sum, step_squares;
};

/** Successive reallocations of one block. */
struct heap_chain {
    uint64_t start_size;
    uint64_t final_size;
    uint64_t reallocs;
    uint64_t moved;
    uint64_t bytes_copied;
    /** Positions of the first allocation and of the last reallocation. */
    struct ttd_position first;
    struct ttd_position last;
    uint64_t address;
    ttd_id stack;
};

/** Groups, in the end those that copied most bytes first. */
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
};

struct heap_moves {
    struct heap_outcome outcome;
    struct heap_move_table reallocs;
    /** Inferred: see analyses/regrowth.h. */
    struct heap_move_table regrown;
    enum heap_split split;
    /** The worst chains, worst first. */
    struct heap_chain *worst;
    size_t worst_count;
    size_t worst_max;
    /** Chains of blocks that are live; `user` of a block is an index plus 1. */
    struct heap_chain *chains;
    size_t chain_count;
    size_t chain_capacity;
    uint32_t *unused;
    size_t unused_count;
    size_t unused_capacity;
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

void heap_move_table_init(struct heap_move_table *table);
void heap_move_table_free(struct heap_move_table *table);

/** Sets `group` to that of a key, valid until the next; adds it if there is none.
 * @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_move_table_find(struct heap_move_table *table, struct heap_key key,
                                     struct heap_move_group **group);

/** Puts the groups in order. */
void heap_move_table_sort(struct heap_move_table *table);

/** The groups as a table by call site; their weight is the bytes copied. */
struct heap_site_table heap_move_site_table(struct heap_move_table *table);

/**
 * The growth of a group, and its measure: for linear the mean number of bytes, for geometric the
 * mean factor, else 0.
 */
enum heap_growth heap_move_growth(const struct heap_move_group *group, double *measure);

/** Name of a growth, such as "geometric". Static. */
const char *heap_growth_name(enum heap_growth growth);

#endif
