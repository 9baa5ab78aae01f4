/* SPDX-License-Identifier: MIT */
/** Keyed hashing, so that a crafted trace cannot choose which values collide. */
#ifndef ANALYZER_BASE_HASH_H
#define ANALYZER_BASE_HASH_H

#include <stdint.h>

/** A random key. */
struct hash_key {
    uint64_t add;
    uint64_t multiply;
};

/** Makes a random key. */
struct hash_key hash_key_new(void);

/** Hashes a value. All bits of the result are usable, the low ones as well. */
static inline uint64_t hash_value(struct hash_key key, uint64_t value)
{
    value = (value ^ key.add) * key.multiply;
    value ^= value >> 32;
    value *= UINT64_C(0x9E3779B97F4A7C15);
    return value ^ value >> 29;
}

#endif
