/* SPDX-License-Identifier: MIT */
/** Blocks grouped by the stack that allocated them. */
#ifndef ANALYZER_HEAP_GROUPS_H
#define ANALYZER_HEAP_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include <ttdtrace/snapshot.h>

#include "base/hash_map.h"
#include "heap/heap_live.h"
#include "heap/site_table.h"

enum { HEAP_POOLED_MAX = 4, HEAP_POOLED_SIZE = 64, HEAP_UNRECORDED_SIZE = 128 };

/* The choice of blocks that a trace has, if not all of them are recorded. */
struct heap_choice {
    /** Not all live blocks are recorded. */
    bool is_made;
    /** All blocks that are live at a snapshot or at the end are there, and no others. */
    bool is_live_only;
    /** All blocks that the process had when the recorder was attached are there, and all calls
     * from then on. */
    bool has_earlier;
    /** The snapshot of the program's end, or of the recording's, is missing. */
    bool lacks_end_snapshot;
    /** The trace was made of the traces of several processes. */
    bool is_merged;
    /** Mean number of bytes from one recorded block to the next; 0 if the blocks are no sample. */
    uint64_t sample;
    /** Size of the smallest recorded blocks, if they are no sample. */
    uint64_t least;
    /** Objects that lie in pools of the program's own, which are not recorded: texts of the
     * recorder, ended by NUL. */
    char pooled[HEAP_POOLED_MAX][HEAP_POOLED_SIZE];
    unsigned pooled_count;
    /** Calls of the last program that were not recorded: text of the recorder, ended by NUL; empty
     * for none. */
    char unrecorded[HEAP_UNRECORDED_SIZE];
};

/** An estimate, by the blocks of a sample. */
struct heap_estimate {
    double blocks;
    double bytes;
};

static inline void heap_estimate_add(struct heap_estimate *sum, struct heap_estimate estimate)
{
    sum->blocks += estimate.blocks;
    sum->bytes += estimate.bytes;
}

/* The classes of blocks that begin with the address of a vtable, from a snapshot. */

/** All zero when empty. */
struct heap_block_classes {
    /** The snapshot that the classes come from; number 0 if there is none. */
    struct ttd_snapshot snapshot;
    /** References of the snapshot that lie in none of its regions. */
    uint64_t misplaced;
    struct ttd_class *classes;
    size_t count;
    /** By the address of a block and the number of the event that acquired it: the number of its
     * class: 1 more than the index in `classes`. */
    struct hash_map numbers;
};

void heap_block_classes_free(struct heap_block_classes *classes);

/** Returns the number of a block's class; TTD_NONE if it is not known, because the block was not
 * live at the snapshot or begins with something else. */
static inline ttd_id heap_block_classes_get(const struct heap_block_classes *classes,
                                            const struct heap_block *block)
{
    uint32_t number = map_get(&classes->numbers, block->address, block->event);
    return number == MAP_NONE ? TTD_NONE : number;
}

/** When the blocks of a group were lost: after the first position, at the second at the latest. */
struct heap_lost_range {
    struct ttd_position after;
    struct ttd_position before;
    /** Blocks whose only holder was released meanwhile; and the first and the last of these
     * releases. */
    uint64_t released;
    struct ttd_position first_release;
    struct ttd_position last_release;
    /** The call site of the first release, and whether others have released some. */
    ttd_id release_stack;
    bool has_other_stacks;
};

/** Widens a range by the range of other blocks. */
void heap_lost_range_merge(struct heap_lost_range *sum, const struct heap_lost_range *range);

/** Blocks of one call site that hang below lost ones: an element of a ring. */
struct heap_below {
    struct heap_below *next;
    ttd_id stack;
    uint64_t blocks;
    uint64_t bytes;
};

struct heap_holder;

/** How possibly lost blocks are held. */
enum heap_way_kind {
    HEAP_WAY_NONE,
    /** By a pointer into the block. */
    HEAP_WAY_INTO,
    /** By words of an allocator's memory outside of blocks. */
    HEAP_WAY_OUTSIDE,
    /** By other possibly lost blocks. */
    HEAP_WAY_BELOW,
    /** Some of them in one way and others in another one. */
    HEAP_WAY_SEVERAL
};

struct heap_way {
    enum heap_way_kind kind;
    /** Of HEAP_WAY_INTO: where the pointer points; UINT32_MAX stands for that and more. */
    uint32_t offset;
};

/** Merges how other blocks are held. HEAP_WAY_NONE changes nothing. */
void heap_way_merge(struct heap_way *sum, struct heap_way way);

struct heap_group {
    struct heap_key key;
    uint64_t blocks;
    uint64_t bytes;
    /** Positions of the first and the last allocation; see heap_group_is_unknown(). */
    struct ttd_position first;
    struct ttd_position last;
    /** Address of the block that was allocated first; 0 if unknown. */
    uint64_t address;
    /** A word that points at that block, and any element of the ring of blocks below them. Both
     * belong to the caller; NULL if unknown. Merging groups joins their rings. */
    const struct heap_holder *holder;
    struct heap_below *below;
    /** These blocks and all below them, for groups of heap_groups_add_total(); else 0. */
    uint64_t total_blocks;
    uint64_t total_bytes;
    /** The blocks that lie in blocks of other heaps, by heap_groups.parents. */
    uint64_t nested_blocks;
    uint64_t nested_bytes;
    /** All blocks that these stand for, with heap_groups.sample; else 0. */
    struct heap_estimate estimate;
    /** When the blocks were lost. Belongs to the caller; NULL if not known. Merging groups widens
     * it. */
    struct heap_lost_range *lost;
    /** How they are held, if they are possibly lost. */
    struct heap_way way;
    /** An enum ttd_api: the function that allocated one of them. */
    uint8_t api;
    /** heap_groups.kind. */
    uint8_t kind;
};

/** See heap_groups_init(). */
struct heap_groups {
    struct heap_group *items;
    size_t count;
    size_t capacity;
    uint64_t blocks;
    uint64_t bytes;
    /** heap_choice.sample of the trace, for estimates; 0 for none. May be set before anything is
     * added. */
    uint64_t sample;
    struct heap_estimate estimate;
    /** The property that distinguishes groups, and whether the stack does so as well. May be set
     * before anything is added. */
    enum heap_split split;
    bool has_stacks;
    /** The caller's, for HEAP_SPLIT_CLASS; may be set before anything is added. */
    const struct heap_block_classes *classes;
    /** The caller's; may be set before anything is added: NULL if no block counts as nested. */
    const struct heap_parents *parents;
    /** A number for distinguishing the caller's several tables. May be set before anything is
     * added. */
    uint8_t kind;
    /** heap_groups_add_total() was called. */
    bool has_totals;
    /** Index of the group that a block was added to last. */
    uint32_t latest;
    /** Hash table of the numbers of groups, by key: from 1, and 0 in a free slot. The capacity is a
     * power of two. The keys are in the groups, so that it stays in the cache. */
    uint32_t *numbers;
    size_t number_capacity;
    struct hash_key hash;
};

void heap_groups_init(struct heap_groups *groups);
/** Makes an empty table that groups blocks as another does. */
void heap_groups_init_like(struct heap_groups *groups, const struct heap_groups *other);
void heap_groups_free(struct heap_groups *groups);

/** @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_groups_add(struct heap_groups *groups, const struct heap_block *block);

/** Takes back a block that was added. The first and the last position are then unknown if they were
 * this block's: see heap_group_is_unknown(). */
void heap_groups_subtract(struct heap_groups *groups, const struct heap_block *block);

/** The group that a block was added to; NULL if there is none. */
struct heap_group *heap_groups_find(const struct heap_groups *groups,
                                    const struct heap_block *block);

/** Adds a block to the total of the group that `owner` belongs to, and has been added to. Returns
 * that group; NULL if there is none. */
struct heap_group *heap_groups_add_total(struct heap_groups *groups, const struct heap_block *owner,
                                         uint64_t size);

/** Adds the nested blocks of all groups, and their bytes, to the sums. */
void heap_groups_count_nested(const struct heap_groups *groups, uint64_t *blocks, uint64_t *bytes);

/** Whether the first and the last position of a group are unknown. */
static inline bool heap_group_is_unknown(const struct heap_group *group)
{
    return ttd_position_compare(group->first, group->last) > 0;
}

/** Widens the range from the first to the last position, so that it has this one. */
static inline void heap_group_widen(struct heap_group *group, struct ttd_position position)
{
    if (ttd_position_compare(position, group->first) < 0)
        group->first = position;
    if (ttd_position_compare(position, group->last) > 0)
        group->last = position;
}

/** Adds blocks that were summed up already. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_groups_add_sum(struct heap_groups *groups, const struct heap_group *sum);

/**
 * Orders by bytes in total, then bytes, then blocks, largest first. Nothing can be added or
 * subtracted afterwards.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_groups_sort(struct heap_groups *groups);

/** Merges groups that differ in their stacks only. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_groups_join(struct heap_groups *groups);

/** The groups as a table by call site, valid while nothing is added. Their weight is bytes. */
struct heap_site_table heap_groups_site_table(struct heap_groups *groups);

/* Sums of the live blocks by stack, heap, thread and size, each in a table of its own. */

/** The tables. All but the first sum over all stacks. */
enum {
    HEAP_BY_STACK,
    HEAP_BY_HEAP,
    HEAP_BY_THREAD,
    /** By heap_class_of(). */
    HEAP_BY_SIZE,
    HEAP_TABLES
};

struct heap_tables {
    struct heap_groups by[HEAP_TABLES];
};

void heap_tables_init(struct heap_tables *tables);
void heap_tables_free(struct heap_tables *tables);

/** Empties the tables: they are as after heap_tables_init(). */
void heap_tables_clear(struct heap_tables *tables);

/** @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_tables_add(struct heap_tables *tables, const struct heap_block *block);

/** Sorts each table like heap_groups_sort(). */
enum ttd_status heap_tables_sort(struct heap_tables *tables);

#endif
