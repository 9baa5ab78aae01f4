/* SPDX-License-Identifier: MIT */
/** Blocks that were not released, apart from those that the language runtimes keep; told apart by
 * what still points at them, if a snapshot tells. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_LEAKS_H
#define ANALYZER_ANALYSES_REACHABILITY_LEAKS_H

#include "analyses/reachability/lost_when.h"
#include "analyses/state/kept.h"
#include "travel/islands.h"
#include "travel/replay_range.h"
#include "travel/replay_to.h"

/** Kinds of live blocks by what leads to them in a snapshot, the worst first. */
enum heap_leak_kind {
    /** Nothing points at it, or only blocks that it leads to itself. */
    HEAP_DEFINITELY_LOST,
    /** Roots lead to it, but only by pointers into blocks. */
    HEAP_POSSIBLY_LOST,
    /** Only lost blocks lead to it. */
    HEAP_INDIRECTLY_LOST,
    /** Held by words that may be older than the block, and by no others. */
    HEAP_HELD_BY_STALE,
    /** Held by a stack that ends or a register, and by nothing else. */
    HEAP_HELD_WEAKLY,
    HEAP_REACHABLE,
    /** Allocated after the snapshot, or there is none. */
    HEAP_NOT_SEEN,
    /** Allocated before the end of a gap, in which it may have been released. A reference to it
     * proves nothing: its memory may be in use again. */
    HEAP_UNKNOWN,
    HEAP_LEAK_KINDS
};

/** Positions, both included. */
struct heap_leaks_range {
    struct ttd_position first;
    struct ttd_position last;
};

struct heap_leaks_options {
    struct ttd_position at;
    /** Only blocks that were allocated in this range; NULL for all. */
    const struct heap_leaks_range *allocated;
    /** Only blocks that have one of these addresses, each by itself; NULL for all. */
    const struct heap_address_range *covering;
    /** Only blocks that were allocated in islands that these want; NULL for all. */
    const struct heap_islands *islands;
    /** Splits the groups, beside the stack. */
    enum heap_split split;
    /** For HEAP_SPLIT_CLASS; else NULL. */
    const struct heap_block_classes *classes;
    /** Finds when blocks were lost, for which the trace is replayed to earlier snapshots: those
     * definitely lost, by group; with `covering` also those indirectly lost. */
    bool tells_when;
};

struct heap_leaks {
    struct heap_outcome outcome;
    /** The newest snapshot with references at the position or before; number 0 if there is none. */
    struct ttd_snapshot snapshot;
    /** References of the snapshot that lie in none of its regions. */
    uint64_t misplaced;
    /** The blocks of which it is known when they were lost. */
    struct heap_lost_block *lost;
    size_t lost_count;
    /** By group that is definitely lost; heap_group.lost points into it. With `covering` by element
     * of `lost`. NULL if no snapshot tells when. */
    struct heap_lost_range *lost_ranges;
    /** By kind. The totals of groups that are definitely lost count what hangs below as well. */
    struct heap_groups kinds[HEAP_LEAK_KINDS];
    /** Those of all kinds in heaps that have a parent: they lie in blocks of the parent. */
    uint64_t nested_blocks;
    uint64_t nested_bytes;
    struct heap_runtime runtime;
};

/**
 * Finds the blocks that are live at a position and that no runtime keeps.
 *
 * @param leaks  set on TTD_OK; release with heap_leaks_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_leaks_find(const struct heap_trace *trace,
                                const struct heap_leaks_options *options, struct heap_leaks *leaks,
                                struct ttd_error *error);
void heap_leaks_free(struct heap_leaks *leaks);

/** All blocks, of any kind. */
uint64_t heap_leaks_blocks(const struct heap_leaks *leaks);

#endif
