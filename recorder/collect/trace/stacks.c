/* SPDX-License-Identifier: MIT */
#include "stacks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Many processes live only for a moment. Of the others, a small table is soon full. */
enum { FIRST_CAPACITY = 1 << 9, SMALL_CAPACITY = 1 << 14 };

bool stacks_init(struct stacks *stacks)
{
    memset(stacks, 0, sizeof *stacks);
    if (getrandom(&stacks->key, sizeof stacks->key, 0) != sizeof stacks->key)
        stacks->key = (uintptr_t)stacks;
    stacks->capacity = FIRST_CAPACITY;
    stacks->entries = calloc(stacks->capacity, sizeof *stacks->entries);
    return stacks->entries != NULL;
}

void stacks_free(struct stacks *stacks)
{
    free(stacks->entries);
    stacks->entries = NULL;
}

/* Moves all entries but those of addresses in [begin, end) to a table of the given capacity. */
static bool rebuild(struct stacks *stacks, size_t capacity, uint64_t begin, uint64_t end)
{
    struct stacks old = *stacks;
    struct stack_entry *entries = calloc(capacity, sizeof *entries);
    if (entries == NULL)
        return false;
    stacks->entries = entries;
    stacks->capacity = capacity;
    stacks->count = 0;
    for (size_t i = 0; i < old.capacity; i++) {
        const struct stack_entry *entry = &old.entries[i];
        if (entry->id == TTD_NONE || (entry->pc >= begin && entry->pc < end))
            continue;
        *stacks_probe(stacks, entry->parent, entry->pc) = *entry;
        stacks->count++;
    }
    stacks_free(&old);
    return true;
}

struct stack_entry *stacks_find(struct stacks *stacks, ttd_id parent, uint64_t pc)
{
    struct stack_entry *entry = stacks_probe(stacks, parent, pc);
    if (entry->id != TTD_NONE)
        return entry;
    if (stacks->count + stacks->count / 2 >= stacks->capacity) {
        size_t factor = stacks->capacity < SMALL_CAPACITY ? 4 : 2;
        if (!rebuild(stacks, stacks->capacity * factor, 0, 0))
            return NULL;
        entry = stacks_probe(stacks, parent, pc);
    }
    entry->pc = pc;
    entry->parent = parent;
    stacks->count++;
    return entry;
}

void stacks_forget(struct stacks *stacks, uint64_t begin, uint64_t end)
{
    /* If memory runs out the entries stay, and names may be those of the unloaded code. */
    rebuild(stacks, stacks->capacity, begin, end);
}
