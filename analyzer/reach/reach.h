/* SPDX-License-Identifier: MIT */
/**
 * The graph of a snapshot: the blocks that are live at its position or being reallocated there, the
 * pointers between them, and the words outside of blocks (the roots) that point at blocks.
 *
 * A word of a live block is an edge to the block that its value lies in; a word of any other region
 * that is no heap is a root. A word of a heap outside of live blocks is a doubtful root, or none:
 * see builder.h.
 */
#ifndef ANALYZER_REACH_REACH_H
#define ANALYZER_REACH_REACH_H

#include <stddef.h>

#include <ttdtrace/snapshot.h>

#include "graph/graph_classes.h"
#include "reach/nodes.h"
#include "travel/heap_trace.h"
#include "travel/replay_to.h"

/** The offset in its source of an edge that is no word: the source lies in the target. */
#define REACH_LIES_WITHIN UINT64_MAX
/** The same: the target takes the source's place. */
#define REACH_CONTINUES (UINT64_MAX - 1)

struct heap_reach_options {
    /** Takes the newest snapshot with references at this position or before. */
    struct ttd_position at;
    /** The number of the snapshot to take instead; 0 for none. */
    uint32_t snapshot;
    /** Keeps heap_reach.offsets. */
    bool keeps_offsets;
    /** Finds the classes of blocks alone: the graph has no edges and no roots. */
    bool finds_classes_only;
    /** Leaves out the verdicts, and the flags of edges. */
    bool omits_verdicts;
    /** Lists heap_reach.inner. */
    bool lists_inner;
    /** Lists heap_reach.relics. */
    bool lists_relics;
    /** Doubtful roots keep the flag GRAPH_STALE: blocks that only they hold are
     * GRAPH_HELD_BY_STALE. */
    bool tells_doubtful;
};

/** The word that is a root. */
struct heap_root_word {
    /** Number of its region, and its offset there. */
    uint32_t region;
    uint64_t offset;
    /** Offset in its target. */
    uint64_t target_offset;
};

/** A word of released memory that has the address of a block, and does not hold it: see builder.h.
 */
struct heap_relic {
    uint32_t target;
    struct heap_root_word word;
};

/** A reallocation in flight: see builder.h. */
struct reach_in_flight {
    /** The blocks before and after the call, as far as their words are the program's. */
    struct heap_block blocks[2];
    /** Whether each is a node; or is part of one, of another call. */
    bool has[2];
    bool is_joined[2];
    /** While the nodes are copied: whether each is live, and its record. */
    bool is_live[2];
    uint32_t records[2];
};

enum { REACH_BEFORE, REACH_AFTER };

/** An edge with the flag GRAPH_INTERIOR, and where it points in its target. UINT32_MAX stands for
 * that and more. */
struct heap_inner_edge {
    uint64_t edge;
    uint32_t offset;
};

/** All zero when empty. */
struct heap_reach {
    /** Certainty of the replay to the snapshot. */
    struct heap_outcome outcome;
    /** Number 0 if there is no such snapshot; then all else is empty, and the outcome is zero. Its
     * flag TTD_SNAPSHOT_INCOMPLETE is also set if regions or references of it are not in the trace
     * any more. */
    struct ttd_snapshot snapshot;
    /** The blocks, by node of the graph. */
    struct heap_nodes nodes;
    struct reach_in_flight *in_flight;
    size_t in_flight_count;
    /** By number - 1. */
    struct ttd_region *regions;
    size_t region_count;
    size_t region_capacity;
    /** Flags of edges and roots are as the rules in reach.c say, and stale.h. The id of a root is
     * its index in `roots`. */
    struct graph graph;
    struct heap_root_word *roots;
    size_t root_capacity;
    /** The class of each block. */
    struct graph_classes verdicts;
    /** For options.keeps_offsets; else they may be empty. */
    struct edge_offsets offsets;
    /** In the order of edges, with options.lists_inner. */
    struct heap_inner_edge *inner;
    size_t inner_count;
    size_t inner_capacity;
    /** With options.lists_relics. Not of blocks that others hold. */
    struct heap_relic *relics;
    size_t relic_count;
    size_t relic_capacity;
    /** By node, 1 more than the index in `classes` of its first word's target; 0 if it points at no
     * table of virtual functions. NULL if the snapshot has no classes. */
    uint32_t *node_classes;
    struct ttd_class *classes;
    size_t class_count;
    size_t class_capacity;
    /** References that were not used because they lie in no region of the snapshot. */
    uint64_t misplaced;
};

/**
 * Builds the graph of a snapshot.
 *
 * @param reach  set on TTD_OK; release with heap_reach_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_reach_find(const struct heap_trace *trace,
                                const struct heap_reach_options *options, struct heap_reach *reach,
                                struct ttd_error *error);
void heap_reach_free(struct heap_reach *reach);

/** The same for a snapshot that is known; `options` do not matter for it. */
enum ttd_status heap_reach_build(const struct heap_trace *trace,
                                 const struct heap_reach_options *options,
                                 const struct ttd_snapshot *snapshot, struct heap_reach *reach,
                                 struct ttd_error *error);

/**
 * The same in two steps, for a query that replays the trace itself: heap_reach_begin() when its
 * replay has come to the position of the snapshot, then heap_reach_read() when it needs the reader
 * no longer. The outcome is not set.
 *
 * @param replay  the index of its live blocks is dropped: see heap_nodes_copy()
 * @param reach   all zero; release with heap_reach_free(), also on failure
 */
enum ttd_status heap_reach_begin(struct heap_reach *reach, const struct ttd_snapshot *snapshot,
                                 struct heap_replay *replay);
enum ttd_status heap_reach_read(struct heap_reach *reach, const struct heap_trace *trace,
                                const struct heap_reach_options *options, struct ttd_error *error);

/**
 * Reads only the regions and the classes of a snapshot.
 *
 * @param reach  set on TTD_OK; release with heap_reach_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status heap_reach_read_regions(const struct heap_trace *trace,
                                        const struct ttd_snapshot *snapshot,
                                        struct heap_reach *reach, struct ttd_error *error);

/** Whether the words of a region have addresses: registers have none, nor have words that the
 * system keeps, whose region begins where no memory of a process is. */
static inline bool heap_region_has_addresses(const struct ttd_region *region)
{
    return region->kind != TTD_REGION_REGISTERS && region->begin >> 63 == 0;
}

/** The region of a number; NULL if the snapshot has none. */
static inline const struct ttd_region *heap_reach_region(const struct heap_reach *reach,
                                                         uint32_t number)
{
    return number && number <= reach->region_count ? &reach->regions[number - 1] : NULL;
}

/**
 * Finds the classes of the blocks that are live at a snapshot: the newest one with references at a
 * position or before.
 *
 * @param classes  set on TTD_OK, empty if there is no such snapshot; release with
 *                 heap_block_classes_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_classes_find(const struct heap_trace *trace, struct ttd_position position,
                                  struct heap_block_classes *classes, struct ttd_error *error);

/* The snapshots that a trace has. */

/** Complete snapshots, in the order of the file. All zero when empty. */
struct heap_snapshots {
    struct ttd_snapshot *snapshots;
    size_t count;
    size_t capacity;
};

/**
 * Finds the snapshots of a trace, going from header to header. A snapshot that was cut short has no
 * record, and is not among them.
 *
 * @param snapshots  set on TTD_OK; release with heap_snapshots_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status heap_snapshots_find(const struct heap_trace *trace,
                                    struct heap_snapshots *snapshots, struct ttd_error *error);
void heap_snapshots_free(struct heap_snapshots *snapshots);

/** The newest snapshot at or before a position that stores all of `contents`, a sum of
 * ttd_snapshot_contents; NULL if there is none. */
const struct ttd_snapshot *heap_snapshots_before(const struct heap_snapshots *snapshots,
                                                 struct ttd_position position, uint32_t contents);

/** The oldest such snapshot at a position or after; NULL if there is none. */
const struct ttd_snapshot *heap_snapshots_after(const struct heap_snapshots *snapshots,
                                                struct ttd_position position, uint32_t contents);

/** The snapshot of a number; NULL if there is none. */
const struct ttd_snapshot *heap_snapshots_get(const struct heap_snapshots *snapshots,
                                              uint32_t number);

#endif
