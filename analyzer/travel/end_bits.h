/* SPDX-License-Identifier: MIT */
/** Two bits for each address of a heap, for who goes through a trace backwards. */
#ifndef ANALYZER_TRAVEL_END_BITS_H
#define ANALYZER_TRAVEL_END_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/status.h>

#include "base/hash_map.h"

/** Number of bits of a key that its place in a leaf takes. */
#define END_LEAF_BITS  12
#define END_LEAF_WORDS ((size_t)1 << (END_LEAF_BITS - 6))

#define END_CACHE_SIZE ((size_t)256)

struct end_leaf {
    uint64_t number;
    /** The calls behind release or acquire a block at the address. */
    uint64_t is_decided[END_LEAF_WORDS];
    /** The first of them releases one. */
    uint64_t needs_block[END_LEAF_WORDS];
};

/** See end_bits_init(). */
struct end_bits {
    struct end_leaf **slots;
    size_t capacity;
    /** Number of leaves. */
    size_t count;
    struct hash_key key;
    /** The leaf that was found last, by the low bits of its number. */
    struct end_leaf *cache[END_CACHE_SIZE];
};

/** Initializes bits that are all 0. */
void end_bits_init(struct end_bits *bits);
void end_bits_free(struct end_bits *bits);

/** The general case of end_bits_leaf(). */
struct end_leaf *end_bits_find(struct end_bits *bits, uint64_t number);

/** Whether calls behind release or acquire a block at an address. */
bool end_bits_is_decided(const struct end_bits *bits, uint64_t address);

/** Returns the key of an address. Neighbours have neighbouring keys, and addresses that are no
 * multiples of 16 have leaves of their own. */
static inline uint64_t end_bits_key(uint64_t address)
{
    return address >> 4 | address << 60;
}

/** Returns the word of a leaf that has the bit of a key; the bit is the remainder by 64. */
static inline size_t end_leaf_word(uint64_t key)
{
    return key >> 6 & (END_LEAF_WORDS - 1);
}

/** Returns the leaf of a key; makes it if there is none. NULL without memory. */
static inline struct end_leaf *end_bits_leaf(struct end_bits *bits, uint64_t key)
{
    uint64_t number = key >> END_LEAF_BITS;
    struct end_leaf *leaf = bits->cache[number % END_CACHE_SIZE];
    return leaf && leaf->number == number ? leaf : end_bits_find(bits, number);
}

#endif
