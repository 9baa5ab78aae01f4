/* SPDX-License-Identifier: MIT */
/** The parts of the search for leaks. Private to leaks*.c. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_LEAKS_PARTS_H
#define ANALYZER_ANALYSES_REACHABILITY_LEAKS_PARTS_H

#include "analyses/reachability/leaks.h"

struct leaks_search {
    struct heap_leaks *leaks;
    struct heap_leaks_options options;
    bool tells_when;
    /** A copy of the parents of heaps, from leaks_collect() on. */
    struct heap_parents parents;
    struct heap_kept kept;
    struct heap_reach reach;
    /** By node: its block is live at the position asked for, and is one of those asked for. */
    bool *is_leak;
    /** The snapshot is at the end of the trace: all nodes are still live, and nothing else is. */
    bool are_nodes_live;
    struct heap_snapshots snapshots;
    size_t lost_capacity;
    size_t doubtful_capacity;
    /** Number of strays at the position of the snapshot: see heap_count_strays(). */
    uint64_t strays;
};

/** Takes the blocks of a snapshot, with the state at its position. For a watcher. */
enum ttd_status leaks_see_snapshot(void *context, struct heap_arrival *arrival,
                                   struct ttd_error *error);

/** Collects the blocks that are live at the position asked for. For a watcher. */
enum ttd_status leaks_collect(void *context, struct heap_arrival *arrival, struct ttd_error *error);

/** Sorts the blocks that the snapshot has by their holders. */
enum ttd_status leaks_classify(struct leaks_search *search, const struct heap_trace *trace,
                               struct ttd_error *error);

/** Finds a holder of the first block of each group of the kinds that are in doubt. */
enum ttd_status leaks_find_holders(struct leaks_search *search, const struct heap_trace *trace,
                                   struct ttd_error *error);

/** Sums of the blocks below groups, by group and stack; all zero when empty. */
struct leaks_below {
    /** Index in `items`, by group and stack. */
    struct hash_map index;
    struct heap_below *items;
    /** By item: the index of its group. */
    uint32_t *groups;
    size_t count;
    size_t capacity;
    size_t group_capacity;
    /** Index of the item that was added to last. */
    size_t latest;
};

/** Adds a block that hangs below a group. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status leaks_below_add(struct leaks_below *below, uint32_t group, ttd_id stack,
                                uint64_t size);
/** Hands the sums over to the groups, as rings. */
void leaks_below_end(struct leaks_below *below, struct heap_leaks *leaks);

/** Finds how groups of possibly lost blocks are held. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status leaks_find_ways(struct leaks_search *search);

#endif
