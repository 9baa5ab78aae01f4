/* SPDX-License-Identifier: MIT */
#include "collect/trace/trace_stacks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

/* Many processes live only for a moment. The others soon fill a small table. */
enum { FIRST_CAPACITY = 1 << 9, SMALL_CAPACITY = 1 << 14 };

/* Has the system provide the pages of a large table at once: entries come to all of them soon, and
 * a page that is read before it is written would be provided twice. An old system refuses. */
static void trace_stacks_populate(void *table, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)table + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)table + size) / page * page;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
}

/* Makes an empty table. False, with nothing changed, when there is no memory. */
static bool trace_stacks_make_table(struct stacks *stacks, size_t capacity)
{
    struct stack_entry *entries = calloc(capacity, sizeof *entries);
    uint32_t *hashes = malloc(capacity * sizeof *hashes);
    if (!entries || !hashes) {
        free(entries);
        free(hashes);
        return false;
    }
    if (capacity > SMALL_CAPACITY)
        trace_stacks_populate(entries, capacity * sizeof *entries);
    stacks->entries = entries;
    stacks->hashes = hashes;
    stacks->capacity = capacity;
    stacks->count = 0;
    return true;
}

bool stacks_init(struct stacks *stacks)
{
    memset(stacks, 0, sizeof *stacks);
    if (getrandom(&stacks->key, sizeof stacks->key, 0) != sizeof stacks->key)
        stacks->key = (uintptr_t)stacks;
    return trace_stacks_make_table(stacks, FIRST_CAPACITY);
}

void stacks_free(struct stacks *stacks)
{
    free(stacks->entries);
    free(stacks->hashes);
    stacks->entries = NULL;
    stacks->hashes = NULL;
}

/* Adds an entry that the table does not have. */
static struct stack_entry *stacks_add_entry(struct stacks *stacks, uint32_t hash,
                                            const struct stack_entry *new)
{
    struct stack_entry *entry = stacks_probe(stacks, hash, new->parent, new->pc);
    stacks->hashes[entry - stacks->entries] = hash;
    stacks->count++;
    *entry = *new;
    return entry;
}

/* Moves all entries, except addresses in [begin, end), to a table of the given capacity. */
static bool trace_stacks_rebuild(struct stacks *stacks, size_t capacity, uint64_t begin,
                                 uint64_t end)
{
    struct stacks old = *stacks;
    if (!trace_stacks_make_table(stacks, capacity))
        return false;
    for (size_t i = 0; i < old.capacity; i++) {
        const struct stack_entry *entry = &old.entries[i];
        if (entry->id != TTD_NONE && (entry->pc < begin || entry->pc >= end))
            stacks_add_entry(stacks, old.hashes[i], entry);
    }
    stacks_free(&old);
    return true;
}

struct stack_entry *stacks_find(struct stacks *stacks, uint32_t hash, ttd_id parent, uint64_t pc)
{
    struct stack_entry *entry = stacks_probe(stacks, hash, parent, pc);
    if (entry->id != TTD_NONE)
        return entry;
    if (stacks->count + stacks->count / 2 >= stacks->capacity) {
        size_t factor = stacks->capacity < SMALL_CAPACITY ? 4 : 2;
        if (!trace_stacks_rebuild(stacks, stacks->capacity * factor, 0, 0))
            return NULL;
    }
    return stacks_add_entry(stacks, hash, &(struct stack_entry){.pc = pc, .parent = parent});
}

void stacks_forget(struct stacks *stacks, uint64_t begin, uint64_t end)
{
    stacks->removals++;
    /* If memory runs out the entries stay, and names may belong to the unloaded code. */
    trace_stacks_rebuild(stacks, stacks->capacity, begin, end);
}
