/* SPDX-License-Identifier: MIT */
/** How much is live, from effects as they come. */
#ifndef ANALYZER_HEAP_TOTALS_H
#define ANALYZER_HEAP_TOTALS_H

#include "heap/replay.h"

/** A sum of sizes, which may be nonsense and large: 128 bits. */
typedef struct heap_sum {
    uint64_t high;
    uint64_t low;
} heap_sum;

static inline void heap_sum_add(heap_sum *sum, uint64_t value)
{
    sum->low += value;
    sum->high += sum->low < value;
}

static inline void heap_sum_subtract(heap_sum *sum, heap_sum value)
{
    sum->high -= value.high + (sum->low < value.low);
    sum->low -= value.low;
}

static inline bool heap_sum_is_less(heap_sum a, heap_sum b)
{
    return a.high != b.high ? a.high < b.high : a.low < b.low;
}

/** The sum, or the largest number if it is beyond that. */
static inline uint64_t heap_sum_value(heap_sum sum)
{
    return sum.high ? UINT64_MAX : sum.low;
}

/** What is live in one heap, or in all. */
typedef struct heap_total {
    heap_sum bytes;
    uint64_t blocks;
} heap_total;

typedef struct heap_totals {
    heap_total all;
    heap_total *heaps;
    size_t count;
    size_t capacity;
    hash_map by_heap;
    ttd_id last_heap;
    uint32_t last;
} heap_totals;

void heap_totals_init(heap_totals *totals);
void heap_totals_free(heap_totals *totals);

/** Takes an effect into account. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
ttd_status heap_totals_add(heap_totals *totals, const heap_effect *effect);

#endif
