/* SPDX-License-Identifier: MIT */
/** Arrays of the algorithms, private to `graph/`. */
#ifndef ANALYZER_GRAPH_GRAPH_ARRAYS_H
#define ANALYZER_GRAPH_GRAPH_ARRAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"

/** Allocates `count` elements of `size` bytes, all zero: no more than are used, since pages that
 * another array had are cleared. NULL without memory. */
static inline void *array_new(size_t count, size_t size)
{
    return count < SIZE_MAX / size ? table_resize(NULL, 0, (count ? count : 1) * size) : NULL;
}

/** @param array  NULL, or the result of array_new() for the same count and size */
static inline void array_free(void *array, size_t count, size_t size)
{
    if (array)
        table_free(array, (count ? count : 1) * size);
}

/** Counts the elements of an array that are 0. */
static inline uint32_t count_zeros(const uint8_t *array, uint32_t count)
{
    uint32_t zeros = 0;
    for (uint32_t i = 0; i < count; i++)
        zeros += !array[i];
    return zeros;
}

/** Adds sizes; UINT64_MAX if the sum is more than that. */
static inline uint64_t add_saturated(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

#endif
