/* SPDX-License-Identifier: MIT */
#include "heap/parents.h"

void heap_parents_free(struct heap_parents *parents)
{
    map_free(&parents->by_heap);
    *parents = (struct heap_parents){.by_heap = {0}};
}

enum ttd_status heap_parents_copy(struct heap_parents *copy, const struct heap_parents *parents)
{
    return map_copy(&copy->by_heap, &parents->by_heap);
}

enum ttd_status heap_parents_add(struct heap_parents *parents, const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    if (batch->kind != TTD_KIND_HEAP_PARENTS)
        return TTD_OK;
    if (!parents->by_heap.count)
        map_init(&parents->by_heap);
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        const struct ttd_heap_parent *record = &batch->u.heap_parents[i];
        if (heap_parents_get(parents, record->heap) == TTD_NONE)
            status = map_set(&parents->by_heap, record->heap, 0, record->parent);
    }
    return status;
}
