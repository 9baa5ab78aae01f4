/* SPDX-License-Identifier: MIT */
/** Growing arrays, searching sorted ones, and the hash for those that are hash tables. */
#ifndef RECORDER_ARRAYS_H
#define RECORDER_ARRAYS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/search.h"

/**
 * Makes room for `needed` elements of `size` bytes; `needed` is not 0. Returns the array (it may
 * have moved); NULL if memory ran out, and then the array is as it was.
 */
static inline void *array_reserve(void *array, size_t needed, size_t *capacity, size_t size)
{
    if (needed <= *capacity)
        return array;
    size_t new_capacity = (needed > *capacity * 2 ? needed : *capacity * 2) + 16;
    void *grown = reallocarray(array, new_capacity, size);
    if (grown)
        *capacity = new_capacity;
    return grown;
}

/** Makes room for one more than `count` elements, as array_reserve() does. */
static inline void *array_grow(void *array, size_t count, size_t *capacity, size_t size)
{
    return array_reserve(array, count + 1, capacity, size);
}

/**
 * Returns how many of `count` elements of `size` bytes have an address of at most `address` in
 * their uint64_t at `offset`; the array is sorted by it.
 */
static inline size_t array_count_up_to(const void *array, size_t count, size_t size, size_t offset,
                                       uint64_t address)
{
    if (count == 0) /* the array may be NULL */
        return 0;
    const char *addresses = (const char *)array + offset;
    size_t low = 0, high = count;
    SEARCH_SORTED(low, high, middle,
                  *(const uint64_t *)(const void *)(addresses + middle * size) <= address);
    return low;
}

/** Returns how many elements of a sorted array have an address below `address`. */
static inline size_t array_count_below(const void *array, size_t count, size_t size, size_t offset,
                                       uint64_t address)
{
    return address == 0 ? 0 : array_count_up_to(array, count, size, offset, address - 1);
}

/**
 * Returns the hash of a value: the product of two numbers, whose halves are combined. All bits are
 * usable. At least one of the numbers depends on a random key: programs choose the values, and
 * could make all of them collide.
 */
static inline uint64_t array_hash(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

#endif
