/* SPDX-License-Identifier: MIT */
/** The chains of reallocations whose blocks are live, by the event that acquired the block. */
#ifndef ANALYZER_ANALYSES_ACTIVITY_CHAIN_TABLE_H
#define ANALYZER_ANALYSES_ACTIVITY_CHAIN_TABLE_H

#include "analyses/activity/moves.h"
#include "base/hash.h"

struct chain_slot {
    uint64_t event;
    struct heap_chain chain;
};

/** All zero but for the key when empty. */
struct chain_table {
    /** A slot whose chain has no reallocation is empty. */
    struct chain_slot *slots;
    /** 0, or a power of two. */
    size_t capacity;
    size_t count;
    struct hash_key key;
};

void chain_table_init(struct chain_table *table);
void chain_table_free(struct chain_table *table);

/** Adds the chain of a block, which has a reallocation. The table has none of that event.
 * @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status chain_table_add(struct chain_table *table, uint64_t event,
                                const struct heap_chain *chain);

/** Removes the chain of a block, and sets `chain` to it. Returns whether there was one. */
bool chain_table_take(struct chain_table *table, uint64_t event, struct heap_chain *chain);

#endif
