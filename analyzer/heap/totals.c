/* SPDX-License-Identifier: MIT */
#include "heap/totals.h"

#include <stdlib.h>

#include "base/grow.h"

void heap_totals_init(struct heap_totals *totals, const struct heap_parents *parents)
{
    *totals = (struct heap_totals){.last = MAP_NONE, .parents = parents};
    map_init(&totals->by_heap);
}

void heap_totals_free(struct heap_totals *totals)
{
    free(totals->heaps);
    map_free(&totals->by_heap);
}

enum ttd_status heap_totals_find(struct heap_totals *totals, ttd_id heap,
                                 struct heap_totaled **total)
{
    uint32_t index = map_get(&totals->by_heap, heap, 0);
    if (index == MAP_NONE) {
        index = (uint32_t)totals->count;
        enum ttd_status status = grow_array((void **)&totals->heaps, &totals->capacity,
                                            totals->count + 1, sizeof *totals->heaps);
        if (status == TTD_OK)
            status = map_set(&totals->by_heap, heap, 0, index);
        if (status != TTD_OK)
            return status;
        totals->heaps[totals->count++] =
            (struct heap_totaled){.is_nested = heap_parents_get(totals->parents, heap) != TTD_NONE};
    }
    totals->last_heap = heap;
    totals->last = index;
    *total = &totals->heaps[index];
    return TTD_OK;
}

uint64_t heap_totals_end(struct heap_totals *totals, struct heap_totaled *heap)
{
    struct heap_total gone = heap->total;
    heap->total = (struct heap_total){.blocks = 0};
    if (!heap->is_nested) {
        heap_sum_subtract(&totals->outer.bytes, gone.bytes);
        totals->outer.blocks -= gone.blocks;
    }
    return gone.blocks;
}
