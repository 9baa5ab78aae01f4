/* SPDX-License-Identifier: MIT */
/** Totals of live blocks and bytes, kept up to date effect by effect. */
#ifndef ANALYZER_HEAP_TOTALS_H
#define ANALYZER_HEAP_TOTALS_H

#include "heap/heap_live.h"
#include "heap/replay.h"

/** Live blocks and bytes of one heap, or of all. */
struct heap_total {
    struct heap_sum bytes;
    uint64_t blocks;
};

/** The total of one heap. */
struct heap_totaled {
    struct heap_total total;
    /** The heap has a parent. */
    bool is_nested;
};

struct heap_totals {
    /** The total of all heaps. */
    struct heap_total all;
    /** The total of the heaps without a parent. It counts no memory twice, since the blocks of all
     * other heaps lie in blocks of these. */
    struct heap_total outer;
    struct heap_totaled *heaps;
    size_t count;
    size_t capacity;
    struct hash_map by_heap;
    ttd_id last_heap;
    uint32_t last;
    /** Must outlive the totals; each parent must be known before the first effect of its heap. */
    const struct heap_parents *parents;
};

void heap_totals_init(struct heap_totals *totals, const struct heap_parents *parents);
void heap_totals_free(struct heap_totals *totals);

/** Takes an effect into account. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_totals_add(struct heap_totals *totals, const struct heap_effect *effect);

#endif
