/* SPDX-License-Identifier: MIT */
/** How much is live, from effects as they come. */
#ifndef ANALYZER_HEAP_TOTALS_H
#define ANALYZER_HEAP_TOTALS_H

#include "heap/replay.h"
#include "heap/sum.h"

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
