/* SPDX-License-Identifier: MIT */
/** Totals: the live blocks and bytes, kept from effects as they come. */
#ifndef ANALYZER_HEAP_TOTALS_H
#define ANALYZER_HEAP_TOTALS_H

#include "heap/replay.h"
#include "heap/sum.h"

/** Live blocks and bytes of one heap, or of all. */
struct heap_total {
    struct heap_sum bytes;
    uint64_t blocks;
};

struct heap_totals {
    struct heap_total all;
    struct heap_total *heaps;
    size_t count;
    size_t capacity;
    struct hash_map by_heap;
    ttd_id last_heap;
    uint32_t last;
};

void heap_totals_init(struct heap_totals *totals);
void heap_totals_free(struct heap_totals *totals);

/** Takes an effect into account. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_totals_add(struct heap_totals *totals, const struct heap_effect *effect);

#endif
