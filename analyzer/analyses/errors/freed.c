/* SPDX-License-Identifier: MIT */
#include "analyses/errors/freed.h"

#include <string.h>

#include "base/table.h"

#define NONE UINT32_MAX

/* Distance of the prefetch in the ring, in entries. */
#define AHEAD 4

enum ttd_status heap_freed_init(struct heap_freed *freed, uint32_t capacity)
{
    uint32_t heads = 1;
    while (heads < capacity)
        heads *= 2;
    *freed = (struct heap_freed){.capacity = capacity, .mask = heads - 1, .key = hash_key_new()};
    /* In large pages: elsewhere prefetches are lost, which the processor drops where it does not
     * know the page. */
    freed->keys = table_resize(NULL, 0, capacity * sizeof *freed->keys);
    freed->records = table_resize(NULL, 0, capacity * sizeof *freed->records);
    freed->heads = table_resize(NULL, 0, heads * sizeof *freed->heads);
    if (!freed->keys || !freed->records || !freed->heads) {
        heap_freed_free(freed);
        return TTD_ERROR_NO_MEMORY;
    }
    /* NONE in every head: all of its bytes are 0xff. */
    memset(freed->heads, 0xff, heads * sizeof *freed->heads);
    return TTD_OK;
}

void heap_freed_free(struct heap_freed *freed)
{
    table_free(freed->keys, freed->capacity * sizeof *freed->keys);
    table_free(freed->records, freed->capacity * sizeof *freed->records);
    table_free(freed->heads, ((size_t)freed->mask + 1) * sizeof *freed->heads);
    *freed = (struct heap_freed){0};
}

static uint32_t *head_of(const struct heap_freed *freed, uint64_t address)
{
    return &freed->heads[hash_value(freed->key, address) & freed->mask];
}

/* The newest entry of an address and heap; NONE if there is none. */
static uint32_t freed_find(const struct heap_freed *freed, uint64_t address, ttd_id heap)
{
    uint32_t index = *head_of(freed, address);
    for (; index != NONE; index = freed->keys[index].next) {
        const struct heap_freed_key *key = &freed->keys[index];
        bool may_be_same = key->heap == heap || key->heap == TTD_NONE || heap == TTD_NONE;
        if (key->address == address && may_be_same)
            break;
    }
    return index;
}

struct heap_freed_block *heap_freed_find(const struct heap_freed *freed, uint64_t address,
                                         ttd_id heap)
{
    uint32_t index = freed_find(freed, address, heap);
    return index == NONE ? NULL : &freed->records[index];
}

/* The entry stays in the ring, and address 0 marks it as empty: taking it out would move the
 * others.
 */
static void freed_empty_entry(struct heap_freed *freed, uint32_t index)
{
    struct heap_freed_key *key = &freed->keys[index];
    uint32_t *link = head_of(freed, key->address);
    while (*link != index)
        link = &freed->keys[*link].next;
    *link = key->next;
    key->address = 0;
}

void heap_freed_remove(struct heap_freed *freed, uint64_t address, ttd_id heap)
{
    uint32_t index = freed_find(freed, address, heap);
    if (index != NONE)
        freed_empty_entry(freed, index);
}

/* Prefetches the entry that a later call replaces: the ring is larger than the cache. */
static void prefetch_entry(const struct heap_freed *freed, uint32_t index)
{
    if (index >= freed->capacity)
        return;
    const char *record = (const char *)&freed->records[index];
    __builtin_prefetch(&freed->keys[index], 1);
    __builtin_prefetch(record, 1);
    __builtin_prefetch(record + sizeof *freed->records - 1, 1);
}

/* The ring overwrites the oldest entry, so that a release long ago is forgotten rather than memory
 * grows with the trace. */
struct heap_freed_block *heap_freed_add(struct heap_freed *freed, uint64_t address, ttd_id heap)
{
    uint32_t index = freed->position;
    prefetch_entry(freed, index + AHEAD);
    freed->position = index + 1 == freed->capacity ? 0 : index + 1;
    if (freed->keys[index].address) {
        freed->forgotten++;
        freed_empty_entry(freed, index);
    }
    uint32_t *head = head_of(freed, address);
    freed->keys[index] = (struct heap_freed_key){address, heap, *head};
    *head = index;
    struct heap_freed_block *record = &freed->records[index];
    record->address = address;
    record->heap = heap;
    return record;
}

const struct heap_freed_block *heap_freed_containing(const struct heap_freed *freed,
                                                     uint64_t address)
{
    /* From the newest entry on: of all blocks that had the address, the last owner is the one
     * meant. */
    for (uint32_t distance = 1; distance <= freed->capacity; distance++) {
        uint32_t index = freed->position >= distance ? freed->position - distance
                                                     : freed->position + freed->capacity - distance;
        const struct heap_freed_block *record = &freed->records[index];
        if (freed->keys[index].address && address > record->address &&
            address - record->address < record->size)
            return record;
    }
    return NULL;
}
