/* SPDX-License-Identifier: MIT */
/** Blocks grouped by the stack that allocated them. */
#ifndef ANALYZER_HEAP_GROUPS_H
#define ANALYZER_HEAP_GROUPS_H

#include "heap/rows.h"

typedef struct heap_group {
    heap_key key;
    uint64_t blocks;
    uint64_t bytes;
    /** Of the allocations. */
    ttd_position first;
    ttd_position last;
    /** A ttd_api_function: what allocated one of them. */
    uint8_t api;
} heap_group;

/** See heap_groups_init(). */
typedef struct heap_groups {
    heap_group *items;
    size_t count;
    size_t capacity;
    uint64_t blocks;
    uint64_t bytes;
    /** May be set before anything is added: what tells groups apart beside the stack, and whether
     * the stack does. */
    heap_split split;
    bool has_stacks;
    hash_map by_key;
} heap_groups;

void heap_groups_init(heap_groups *groups);
void heap_groups_free(heap_groups *groups);

/** @return TTD_OK, TTD_ERROR_NO_MEMORY. */
ttd_status heap_groups_add(heap_groups *groups, const heap_block *block);

/** Orders by bytes, then blocks, largest first. Nothing can be added afterwards. */
void heap_groups_sort(heap_groups *groups);

/** Merges groups that differ in their stacks only. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
ttd_status heap_groups_join(heap_groups *groups);

/** The groups as rows; valid while nothing is added. Their weight is bytes. */
heap_rows heap_groups_rows(heap_groups *groups);

#endif
