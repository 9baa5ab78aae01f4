/* SPDX-License-Identifier: MIT */
#include "analyses/activity/chain_table.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/table.h"

#define CAPACITY_MIN 64

void chain_table_init(struct chain_table *table)
{
    *table = (struct chain_table){.key = hash_key_new()};
}

void chain_table_free(struct chain_table *table)
{
    free(table->slots);
    free(table->chains);
    *table = (struct chain_table){.count = 0};
}

static bool is_empty(const struct chain_slot *slot)
{
    return !slot->chain;
}

static size_t home_of(const struct chain_table *table, uint64_t event)
{
    return (size_t)hash_value(table->key, event) & (table->capacity - 1);
}

/* The slot of an event, or the empty one where it belongs. */
static size_t chain_slot(const struct chain_table *table, uint64_t event)
{
    size_t slot = home_of(table, event);
    while (!is_empty(&table->slots[slot]) && table->slots[slot].event != event)
        slot = (slot + 1) & (table->capacity - 1);
    return slot;
}

static enum ttd_status chain_table_grow(struct chain_table *table)
{
    struct chain_table larger = *table;
    larger.capacity = table->capacity ? 2 * table->capacity : CAPACITY_MIN;
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots)
        return TTD_ERROR_NO_MEMORY;
    pages_hint(larger.slots, larger.capacity * sizeof *larger.slots);
    for (size_t i = 0; i < table->capacity; i++) {
        if (!is_empty(&table->slots[i]))
            larger.slots[chain_slot(&larger, table->slots[i].event)] = table->slots[i];
    }
    free(table->slots);
    *table = larger;
    return TTD_OK;
}

/* Sets `number` to that of a chain that is not in use. */
static enum ttd_status chain_obtain(struct chain_table *table, uint32_t *number)
{
    *number = table->unused;
    if (*number) {
        table->unused = (uint32_t)table->chains[*number - 1].reallocs;
        return TTD_OK;
    }
    enum ttd_status status = grow_array((void **)&table->chains, &table->chain_capacity,
                                        table->chain_count + 1, sizeof *table->chains);
    if (status == TTD_OK)
        *number = (uint32_t)++table->chain_count;
    return status;
}

enum ttd_status chain_table_add(struct chain_table *table, uint64_t event,
                                const struct heap_chain *chain)
{
    uint32_t number;
    enum ttd_status status = table->count >= table->capacity / 2 ? chain_table_grow(table) : TTD_OK;
    if (status == TTD_OK)
        status = chain_obtain(table, &number);
    if (status != TTD_OK)
        return status;
    table->chains[number - 1] = *chain;
    table->slots[chain_slot(table, event)] = (struct chain_slot){event, number};
    table->count++;
    return TTD_OK;
}

/* Empties a slot. Those behind it move into the hole where they may, so that a search need not pass
 * holes. */
static void chain_slot_empty(struct chain_table *table, size_t hole)
{
    size_t mask = table->capacity - 1;
    for (size_t slot = (hole + 1) & mask; !is_empty(&table->slots[slot]);
         slot = (slot + 1) & mask) {
        size_t distance = (slot - home_of(table, table->slots[slot].event)) & mask;
        if (distance < ((slot - hole) & mask))
            continue;
        table->slots[hole] = table->slots[slot];
        hole = slot;
    }
    table->slots[hole] = (struct chain_slot){.chain = 0};
}

bool chain_table_take(struct chain_table *table, uint64_t event, struct heap_chain *chain)
{
    if (!table->count)
        return false;
    size_t slot = chain_slot(table, event);
    uint32_t number = table->slots[slot].chain;
    if (!number)
        return false;
    *chain = table->chains[number - 1];
    table->chains[number - 1].reallocs = table->unused;
    table->unused = number;
    chain_slot_empty(table, slot);
    table->count--;
    return true;
}
