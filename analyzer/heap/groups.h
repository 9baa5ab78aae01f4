/* SPDX-License-Identifier: MIT */
/** Blocks grouped by the stack that allocated them. */
#ifndef ANALYZER_HEAP_GROUPS_H
#define ANALYZER_HEAP_GROUPS_H

#include "heap/live.h"

typedef struct heap_group {
    /** The stack, or what else blocks are grouped by. */
    ttd_id stack;
    uint64_t blocks;
    uint64_t bytes;
    /** Of the allocations. */
    ttd_position first;
    ttd_position last;
} heap_group;

/** See heap_groups_init(). */
typedef struct heap_groups {
    heap_group *items;
    size_t count;
    size_t capacity;
    uint64_t blocks;
    uint64_t bytes;
    hash_map by_stack;
} heap_groups;

void heap_groups_init(heap_groups *groups);
void heap_groups_free(heap_groups *groups);

/** @return TTD_OK, TTD_ERROR_NO_MEMORY. */
ttd_status heap_groups_add(heap_groups *groups, const heap_block *block);

/** As heap_groups_add(), into the group of `key` instead of the block's stack. */
ttd_status heap_groups_add_as(heap_groups *groups, ttd_id key, const heap_block *block);

/** Orders by bytes, then blocks, largest first. Nothing can be added afterwards. */
void heap_groups_sort(heap_groups *groups);

#endif
