/* SPDX-License-Identifier: MIT */
/** The chains of reallocations whose blocks are live, by the event that acquired the block. */
#ifndef ANALYZER_ANALYSES_ACTIVITY_CHAIN_TABLE_H
#define ANALYZER_ANALYSES_ACTIVITY_CHAIN_TABLE_H

#include "analyses/activity/moves.h"
#include "base/map.h"

struct chain_slot {
    uint64_t event;
    /** Number of the chain, from 1; 0 in an empty slot. */
    uint32_t chain;
};

/** All zero but for the key when empty. */
struct chain_table {
    /** The slots have no chains in them, so that a search passes several in one line of the cache.
     */
    struct chain_slot *slots;
    /** 0, or a power of two. */
    size_t capacity;
    size_t count;
    /** The chains, by number less 1. Of one that is not in use, `reallocs` is the number of the
     * next such one, or 0. */
    struct heap_chain *chains;
    size_t chain_count;
    size_t chain_capacity;
    /** Number of the first chain that is not in use, or 0. */
    uint32_t unused;
    struct hash_key key;
};

void chain_table_init(struct chain_table *table);
void chain_table_free(struct chain_table *table);

/** Adds the chain of a block. The table has none of that event. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status chain_table_add(struct chain_table *table, uint64_t event,
                                const struct heap_chain *chain);

/** Removes the chain of a block, and sets `chain` to it. Returns whether there was one. */
bool chain_table_take(struct chain_table *table, uint64_t event, struct heap_chain *chain);

#endif
