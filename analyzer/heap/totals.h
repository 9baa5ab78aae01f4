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

/** Sets `total` to the total of a heap, and remembers it as the last one. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_totals_find(struct heap_totals *totals, ttd_id heap,
                                 struct heap_totaled **total);

/** Ends all blocks of a heap. Returns their number. */
uint64_t heap_totals_end(struct heap_totals *totals, struct heap_totaled *heap);

/** Adds a block that was acquired, or takes away one that has ended. */
static inline void heap_total_change(struct heap_total *total, const struct heap_block *block,
                                     bool is_acquired)
{
    total->blocks += is_acquired ? 1 : UINT64_MAX;
    if (is_acquired)
        heap_sum_add(&total->bytes, block->size);
    else
        heap_sum_take(&total->bytes, block->size);
}

/** Sets `total` to the total of a heap. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
static inline enum ttd_status heap_totals_of(struct heap_totals *totals, ttd_id heap,
                                             struct heap_totaled **total)
{
    if (totals->last == MAP_NONE || totals->last_heap != heap)
        return heap_totals_find(totals, heap, total);
    *total = &totals->heaps[totals->last];
    return TTD_OK;
}

/**
 * Takes an effect into account.
 *
 * @param released  set on TTD_OK to the number of blocks that have ended
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
static inline enum ttd_status heap_totals_add(struct heap_totals *totals,
                                              const struct heap_effect *effect, uint64_t *released)
{
    *released = 0;
    if (effect->kind == HEAP_DISCARDED || effect->kind == HEAP_UNKNOWN_RELEASE)
        return TTD_OK;
    bool destroys = effect->kind == HEAP_DESTROYED;
    bool is_acquired = effect->kind == HEAP_ACQUIRED;
    struct heap_totaled *heap;
    enum ttd_status status =
        heap_totals_of(totals, destroys ? effect->heap : effect->block->heap, &heap);
    if (status != TTD_OK)
        return status;
    if (destroys) {
        *released = heap_totals_end(totals, heap);
        return TTD_OK;
    }
    *released = !is_acquired;
    heap_total_change(&heap->total, effect->block, is_acquired);
    if (!heap->is_nested)
        heap_total_change(&totals->outer, effect->block, is_acquired);
    return TTD_OK;
}

#endif
