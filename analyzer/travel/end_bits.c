/* SPDX-License-Identifier: MIT */
#include "travel/end_bits.h"

#include <stdlib.h>
#include <string.h>

void end_bits_init(struct end_bits *bits)
{
    memset(bits, 0, sizeof *bits);
    bits->key = hash_key_new();
}

void end_bits_free(struct end_bits *bits)
{
    for (size_t i = 0; i < bits->capacity; i++)
        free(bits->slots[i]);
    free(bits->slots);
}

/* Returns the slot of a leaf, or the empty one where it belongs. */
static struct end_leaf **end_bits_slot(const struct end_bits *bits, uint64_t number)
{
    size_t slot = hash_value(bits->key, number) & (bits->capacity - 1);
    while (bits->slots[slot] && bits->slots[slot]->number != number)
        slot = (slot + 1) & (bits->capacity - 1);
    return &bits->slots[slot];
}

/* Doubles the table. */
static enum ttd_status end_bits_grow(struct end_bits *bits)
{
    struct end_bits larger = {.capacity = bits->capacity ? 2 * bits->capacity : 64,
                              .key = bits->key};
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < bits->capacity; i++) {
        if (bits->slots[i])
            *end_bits_slot(&larger, bits->slots[i]->number) = bits->slots[i];
    }
    free(bits->slots);
    bits->slots = larger.slots;
    bits->capacity = larger.capacity;
    return TTD_OK;
}

struct end_leaf *end_bits_find(struct end_bits *bits, uint64_t number)
{
    if (2 * bits->count >= bits->capacity && end_bits_grow(bits) != TTD_OK)
        return NULL;
    struct end_leaf **slot = end_bits_slot(bits, number);
    if (!*slot) {
        *slot = calloc(1, sizeof **slot);
        if (!*slot)
            return NULL;
        (*slot)->number = number;
        bits->count++;
    }
    bits->cache[number % END_CACHE_SIZE] = *slot;
    return *slot;
}

bool end_bits_is_decided(const struct end_bits *bits, uint64_t address)
{
    uint64_t key = end_bits_key(address);
    const struct end_leaf *leaf =
        bits->capacity ? *end_bits_slot(bits, key >> END_LEAF_BITS) : NULL;
    return leaf && leaf->is_decided[end_leaf_word(key)] >> (key & 63) & 1;
}
