/* SPDX-License-Identifier: MIT */
#include "analyses/errors/freed.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

enum ttd_status heap_freed_init(struct heap_freed *freed, uint32_t capacity)
{
    uint32_t heads = 1;
    while (heads < capacity)
        heads *= 2;
    *freed = (struct heap_freed){.capacity = capacity, .mask = heads - 1, .key = hash_key_new()};
    freed->records = calloc(capacity, sizeof *freed->records);
    freed->heads = malloc(heads * sizeof *freed->heads);
    if (!freed->records || !freed->heads) {
        heap_freed_free(freed);
        return TTD_ERROR_NO_MEMORY;
    }
    /* NONE in every head: all of its bytes are 0xff. */
    memset(freed->heads, 0xff, heads * sizeof *freed->heads);
    return TTD_OK;
}

void heap_freed_free(struct heap_freed *freed)
{
    free(freed->records);
    free(freed->heads);
    *freed = (struct heap_freed){0};
}

static uint32_t *head_of(const struct heap_freed *freed, uint64_t address)
{
    return &freed->heads[hash_value(freed->key, address) & freed->mask];
}

struct heap_freed_block *heap_freed_find(const struct heap_freed *freed, uint64_t address,
                                         ttd_id heap)
{
    for (uint32_t i = *head_of(freed, address); i != NONE; i = freed->records[i].next) {
        struct heap_freed_block *record = &freed->records[i];
        bool may_be_same = record->heap == heap || record->heap == TTD_NONE || heap == TTD_NONE;
        if (record->address == address && may_be_same)
            return record;
    }
    return NULL;
}

/* The entry stays in the ring, and address 0 marks it as empty: taking it out would move the
 * others.
 */
static void empty(struct heap_freed *freed, struct heap_freed_block *record)
{
    uint32_t index = (uint32_t)(record - freed->records);
    uint32_t *link = head_of(freed, record->address);
    while (*link != index)
        link = &freed->records[*link].next;
    *link = record->next;
    record->address = 0;
}

void heap_freed_remove(struct heap_freed *freed, uint64_t address, ttd_id heap)
{
    struct heap_freed_block *record = heap_freed_find(freed, address, heap);
    if (record)
        empty(freed, record);
}

/* The ring overwrites the oldest record, so that a release long ago is forgotten rather than memory
 * grows with the trace. */
void heap_freed_add(struct heap_freed *freed, const struct heap_freed_block *block)
{
    uint32_t index = freed->position;
    struct heap_freed_block *record = &freed->records[index];
    freed->position = index + 1 == freed->capacity ? 0 : index + 1;
    if (record->address) {
        freed->forgotten++;
        empty(freed, record);
    }
    uint32_t *head = head_of(freed, block->address);
    *record = *block;
    record->next = *head;
    *head = index;
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
        if (record->address && address > record->address &&
            address - record->address < record->size)
            return record;
    }
    return NULL;
}
