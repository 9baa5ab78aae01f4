/* SPDX-License-Identifier: MIT */
/** Sums of sizes. */
#ifndef ANALYZER_HEAP_SUM_H
#define ANALYZER_HEAP_SUM_H

#include <stdbool.h>
#include <stdint.h>

/** A sum of sizes: 128 bits, since a size may be any number that the program asked for. */
struct heap_sum {
    uint64_t high;
    uint64_t low;
};

static inline void heap_sum_add(struct heap_sum *sum, uint64_t value)
{
    if (__builtin_add_overflow(sum->low, value, &sum->low))
        sum->high++;
}

/** Subtracts a number that was added before. */
static inline void heap_sum_take(struct heap_sum *sum, uint64_t value)
{
    if (__builtin_sub_overflow(sum->low, value, &sum->low))
        sum->high--;
}

static inline void heap_sum_subtract(struct heap_sum *sum, struct heap_sum value)
{
    heap_sum_take(sum, value.low);
    sum->high -= value.high;
}

static inline bool heap_sum_is_less(struct heap_sum a, struct heap_sum b)
{
    if (a.high == b.high)
        return a.low < b.low;
    return a.high < b.high;
}

/** Returns the sum, or UINT64_MAX if it is larger. */
static inline uint64_t heap_sum_value(struct heap_sum sum)
{
    return sum.high ? UINT64_MAX : sum.low;
}

#endif
