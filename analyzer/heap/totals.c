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

static enum ttd_status totals_find(struct heap_totals *totals, ttd_id heap,
                                   struct heap_totaled **total)
{
    if (totals->last == MAP_NONE || totals->last_heap != heap) {
        uint32_t index = map_get(&totals->by_heap, heap, 0);
        if (index == MAP_NONE) {
            index = (uint32_t)totals->count;
            enum ttd_status status = grow_array((void **)&totals->heaps, &totals->capacity,
                                                totals->count + 1, sizeof *totals->heaps);
            if (status == TTD_OK)
                status = map_set(&totals->by_heap, heap, 0, index);
            if (status != TTD_OK)
                return status;
            totals->heaps[totals->count++] = (struct heap_totaled){
                .is_nested = heap_parents_get(totals->parents, heap) != TTD_NONE};
        }
        totals->last_heap = heap;
        totals->last = index;
    }
    *total = &totals->heaps[totals->last];
    return TTD_OK;
}

static void totals_subtract(struct heap_total *total, const struct heap_total *part)
{
    heap_sum_subtract(&total->bytes, part->bytes);
    total->blocks -= part->blocks;
}

/* Adds a block that was acquired, or takes away one that has ended. */
static inline void totals_change(struct heap_total *total, const struct heap_effect *effect)
{
    if (effect->kind == HEAP_ACQUIRED) {
        heap_sum_add(&total->bytes, effect->block->size);
        total->blocks++;
    } else {
        heap_sum_take(&total->bytes, effect->block->size);
        total->blocks--;
    }
}

/* A heap is destroyed. */
static void end_heap(struct heap_totals *totals, struct heap_totaled *heap)
{
    struct heap_total gone = heap->total;
    totals_subtract(&heap->total, &gone);
    totals_subtract(&totals->all, &gone);
    if (!heap->is_nested)
        totals_subtract(&totals->outer, &gone);
}

enum ttd_status heap_totals_add(struct heap_totals *totals, const struct heap_effect *effect)
{
    if (effect->kind == HEAP_DISCARDED || effect->kind == HEAP_UNKNOWN_RELEASE)
        return TTD_OK;
    bool destroys = effect->kind == HEAP_DESTROYED;
    struct heap_totaled *heap;
    enum ttd_status status =
        totals_find(totals, destroys ? effect->heap : effect->block->heap, &heap);
    if (status != TTD_OK)
        return status;
    if (destroys) {
        end_heap(totals, heap);
        return TTD_OK;
    }
    totals_change(&heap->total, effect);
    totals_change(&totals->all, effect);
    if (!heap->is_nested)
        totals_change(&totals->outer, effect);
    return TTD_OK;
}
