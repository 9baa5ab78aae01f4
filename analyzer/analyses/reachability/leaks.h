/* SPDX-License-Identifier: MIT */
/** Leaks: the blocks that are live at a position, without those that the language runtimes keep. If
 * there is a snapshot, they are classified by the pointers that are left. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_LEAKS_H
#define ANALYZER_ANALYSES_REACHABILITY_LEAKS_H

#include "analyses/reachability/places.h"
#include "analyses/state/history.h"
#include "analyses/state/state.h"
#include "heap/groups.h"
#include "reach/reach.h"
#include "travel/islands.h"
#include "travel/pass.h"
#include "travel/replay_part.h"
#include "travel/replay_to.h"

/* Finding when lost blocks were lost: earlier snapshots give bounds. */

/** Limit on the earlier snapshots that are looked at. If there are more, this many are chosen,
 * spread evenly over the trace. */
#define HEAP_LOST_SNAPSHOTS 16

/** A lost block, and the bounds on the position of its loss. */
struct heap_lost_block {
    /** Set by the caller. */
    struct heap_block block;
    /** The block was lost after this position, */
    struct ttd_position after;
    /** and at this one at the latest. */
    struct ttd_position before;
    /** The release of the holder, the only block that pointed at this one at `after`: that release
     * lost it. Invalid if there was more than one holder or a root, or if the holder was not
     * released by `before`. */
    struct ttd_position holder_released;
    /** The call site of that release. */
    ttd_id release_stack;
    /** The event that acquired the holder; UINT64_MAX if there is not exactly one holder. */
    uint64_t holder;
};

/**
 * Narrows down when blocks were lost.
 *
 * @param snapshots  all snapshots of the trace
 * @param last       the snapshot where the blocks are lost
 * @param blocks     blocks that are definitely or indirectly lost; all members but `block` are set
 * @return as heap_replay_to().
 */
enum ttd_status heap_lost_when_find(const struct heap_trace *trace,
                                    const struct heap_snapshots *snapshots,
                                    const struct ttd_snapshot *last, struct heap_lost_block *blocks,
                                    size_t count, struct ttd_error *error);

/** Returns the bounds of one block as a range; ranges can be merged. */
struct heap_lost_range heap_lost_range_of(const struct heap_lost_block *lost);

/** Kinds of live blocks by the pointers to them in a snapshot, the worst first. DESIGN.md,
 * "Snapshots and reachability", has the idea. */
enum heap_leak_kind {
    /** No block points at the block, except blocks that it leads to itself. */
    HEAP_DEFINITELY_LOST,
    /** Roots lead to the block, but every way has a pointer into the middle of a block. */
    HEAP_POSSIBLY_LOST,
    /** Lost blocks lead to the block, and nothing else does. */
    HEAP_INDIRECTLY_LOST,
    /** Reachable, but only by way of possibly stale words. */
    HEAP_HELD_BY_STALE,
    /** Reachable, but only from a register or from the stack of a thread that ends. */
    HEAP_HELD_WEAKLY,
    HEAP_REACHABLE,
    /** The block was allocated after the snapshot, or there is no snapshot. */
    HEAP_NOT_SEEN,
    /** The block was allocated before the end of a gap, and may have been released in it. A
     * reference to it proves nothing, since another block may have its memory by now. */
    HEAP_UNKNOWN,
    HEAP_LEAK_KINDS
};

/** A range of positions, both ends included. */
struct heap_leaks_range {
    struct ttd_position first;
    struct ttd_position last;
};

/** A block that no pointer certainly leads to. */
struct heap_doubtful_block {
    /** Number of the event that acquired it. */
    uint64_t event;
    uint64_t address;
    uint64_t size;
    ttd_id stack;
    enum heap_leak_kind kind;
};

struct heap_leaks_options {
    struct ttd_position at;
    /** Only blocks that were allocated in this range; NULL for all. */
    const struct heap_leaks_range *allocated;
    /** Only blocks that cover one of these addresses; heap_leaks.lost then dates each block instead
     * of each group. NULL for all. */
    const struct heap_address_range *covering;
    /** Only blocks that were allocated in islands that the filter selects; NULL for all. */
    const struct heap_islands *islands;
    /** Splits the groups, in addition to the stack. */
    enum heap_split split;
    /** For HEAP_SPLIT_CLASS; else NULL. */
    const struct heap_block_classes *classes;
    /** Finds out when definitely lost blocks were lost; with `covering` also indirectly lost ones.
     * Takes a replay to each earlier snapshot. */
    bool tells_when;
    /** Lists the blocks of the kinds before HEAP_REACHABLE. */
    bool lists_doubtful;
    /** Takes over outcome, snapshot and nodes, for heap_held_build(): all zero, and set by
     * heap_leaks_end(); NULL if not wanted. */
    struct heap_reach *reach;
};

/** A word that points at the first block of a group whose blocks are possibly lost, or held only by
 * doubtful words or an ending stack. */
struct heap_holder {
    /** The block that has the word; address 0 for a root. */
    struct heap_block block;
    /** Of a root: its region and offset there, for heap_place_of(). */
    uint32_t region;
    uint64_t offset;
};

struct leaks_search;

struct heap_leaks {
    struct heap_outcome outcome;
    /** The newest snapshot with references at or before the position; number 0 if there is none. */
    struct ttd_snapshot snapshot;
    /** Number of references of the snapshot that lie in none of its regions, so that its data
     * contradict each other. */
    uint64_t misplaced;
    /** With options.tells_when: the blocks that have been dated. */
    struct heap_lost_block *lost;
    size_t lost_count;
    /** By group of definitely lost blocks, and heap_group.lost points here; with options.covering
     * by element of `lost`. NULL if nothing was dated. */
    struct heap_lost_range *lost_ranges;
    /** With options.lists_doubtful, in the order of their addresses. */
    struct heap_doubtful_block *doubtful;
    size_t doubtful_count;
    /** Targets of heap_group.below and heap_group.holder, and the places of roots. */
    struct heap_below *below;
    struct heap_holder *holders;
    struct heap_places places;
    struct ttd_region *regions;
    /** The groups of each kind. The totals of definitely lost groups include the indirectly lost
     * blocks below them. */
    struct heap_groups kinds[HEAP_LEAK_KINDS];
    struct heap_runtime runtime;
    /** The blocks in `runtime`. */
    struct heap_block *runtime_blocks;
    size_t runtime_block_count;
    /** Until heap_leaks_end(). */
    struct leaks_search *search;
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

/**
 * Makes the search a part of a pass, as the last of those that end at its position.
 *
 * @param leaks  release with heap_leaks_free(), also on failure; stays where it is
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status heap_leaks_watch(struct heap_leaks *leaks, const struct heap_leaks_options *options,
                                 const struct heap_trace *trace, struct heap_pass *pass,
                                 struct ttd_error *error);

/** Completes it when the pass has ended. @return as heap_replay_to(). */
enum ttd_status heap_leaks_end(struct heap_leaks *leaks, const struct heap_trace *trace,
                               struct ttd_error *error);

/** Returns the number of blocks of all kinds. */
uint64_t heap_leaks_blocks(const struct heap_leaks *leaks);

/* Dating the owners of an address: when each owner that was never released was lost. */

/**
 * Sets heap_owner.lost of the owners that are lost at the end of the trace, by the last snapshot
 * with references and those before it.
 *
 * @param leaks  set on TTD_OK: the ranges that heap_owner.lost points into; all zero if there is no
 *               snapshot or no live owner. Release with heap_leaks_free() after the last use of
 *               `history`
 * @return as heap_leaks_find().
 */
enum ttd_status heap_lost_owners_find(const struct heap_trace *trace, struct heap_history *history,
                                      struct heap_leaks *leaks, struct ttd_error *error);

#endif
