/* SPDX-License-Identifier: MIT */
#include "analyses/activity/chain_table.h"

#include <stdlib.h>

#define CAPACITY_MIN 64

void chain_table_init(struct chain_table *table)
{
    *table = (struct chain_table){.key = hash_key_new()};
}

void chain_table_free(struct chain_table *table)
{
    free(table->slots);
    *table = (struct chain_table){.count = 0};
}

static bool is_empty(const struct chain_slot *slot)
{
    return !slot->chain.reallocs;
}

static size_t home_of(const struct chain_table *table, uint64_t event)
{
    return (size_t)hash_value(table->key, event) & (table->capacity - 1);
}

/* The slot of an event, or the empty one where it belongs. */
static size_t find(const struct chain_table *table, uint64_t event)
{
    size_t slot = home_of(table, event);
    while (!is_empty(&table->slots[slot]) && table->slots[slot].event != event)
        slot = (slot + 1) & (table->capacity - 1);
    return slot;
}

static enum ttd_status grow(struct chain_table *table)
{
    struct chain_table larger = *table;
    larger.capacity = table->capacity ? 2 * table->capacity : CAPACITY_MIN;
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < table->capacity; i++) {
        if (!is_empty(&table->slots[i]))
            larger.slots[find(&larger, table->slots[i].event)] = table->slots[i];
    }
    free(table->slots);
    *table = larger;
    return TTD_OK;
}

enum ttd_status chain_table_add(struct chain_table *table, uint64_t event,
                                const struct heap_chain *chain)
{
    if (table->count >= table->capacity / 2) {
        enum ttd_status status = grow(table);
        if (status != TTD_OK)
            return status;
    }
    table->slots[find(table, event)] = (struct chain_slot){event, *chain};
    table->count++;
    return TTD_OK;
}

bool chain_table_take(struct chain_table *table, uint64_t event, struct heap_chain *chain)
{
    if (!table->count)
        return false;
    size_t mask = table->capacity - 1;
    size_t hole = find(table, event);
    if (is_empty(&table->slots[hole]))
        return false;
    *chain = table->slots[hole].chain;
    /* Slots behind the hole move into it where they may, so that a search need not pass holes. */
    for (size_t slot = (hole + 1) & mask; !is_empty(&table->slots[slot]);
         slot = (slot + 1) & mask) {
        size_t distance = (slot - home_of(table, table->slots[slot].event)) & mask;
        if (distance < ((slot - hole) & mask))
            continue;
        table->slots[hole] = table->slots[slot];
        hole = slot;
    }
    table->slots[hole] = (struct chain_slot){.event = 0};
    table->count--;
    return true;
}
