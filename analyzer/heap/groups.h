/* SPDX-License-Identifier: MIT */
/** Blocks grouped by the stack that allocated them. */
#ifndef ANALYZER_HEAP_GROUPS_H
#define ANALYZER_HEAP_GROUPS_H

#include "heap/site_table.h"

struct heap_group {
    struct heap_key key;
    uint64_t blocks;
    uint64_t bytes;
    /** Positions of the first and the last allocation; see heap_group_is_unknown(). */
    struct ttd_position first;
    struct ttd_position last;
    /** An enum ttd_api: what allocated one of them. */
    uint8_t api;
};

/** See heap_groups_init(). */
struct heap_groups {
    struct heap_group *items;
    size_t count;
    size_t capacity;
    uint64_t blocks;
    uint64_t bytes;
    /** May be set before anything is added: what tells groups apart beside the stack, and whether
     * the stack does. */
    enum heap_split split;
    bool has_stacks;
    /** Index of the group that a block was added to last. */
    uint32_t latest;
    /** By hash of the key: numbers of groups, from 1, and 0 where there is none. A power of two of
     * them, so small that they stay in the cache; the keys are in the groups. */
    uint32_t *numbers;
    size_t number_capacity;
    struct hash_key hash;
};

void heap_groups_init(struct heap_groups *groups);
void heap_groups_free(struct heap_groups *groups);

/** @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_groups_add(struct heap_groups *groups, const struct heap_block *block);

/** Takes back a block that was added. The first and the last position are then unknown if they were
 * this block's: see heap_group_is_unknown(). */
void heap_groups_subtract(struct heap_groups *groups, const struct heap_block *block);

/** Whether the first and the last position of a group are unknown. */
static inline bool heap_group_is_unknown(const struct heap_group *group)
{
    return ttd_position_compare(group->first, group->last) > 0;
}

/** Makes a position one of those between the first and the last. */
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
 * Orders by bytes, then blocks, largest first. Nothing can be added or subtracted afterwards.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_groups_sort(struct heap_groups *groups);

/** Merges groups that differ in their stacks only. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_groups_join(struct heap_groups *groups);

/** The groups as a table by call site, valid while nothing is added. Their weight is bytes. */
struct heap_site_table heap_groups_site_table(struct heap_groups *groups);

#endif
