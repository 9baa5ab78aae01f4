/* SPDX-License-Identifier: MIT */
#include "heap/pending.h"

#include <stdlib.h>

#include "base/grow.h"

void heap_queue_free(struct heap_queue *queue)
{
    free(queue->items);
    *queue = (struct heap_queue){0};
}

static bool pending_is_before(const struct heap_pending *a, const struct heap_pending *b)
{
    int order = ttd_position_compare(a->block.allocated, b->block.allocated);
    return order < 0 || (order == 0 && a->block.event < b->block.event);
}

enum ttd_status heap_queue_push(struct heap_queue *queue, const struct heap_pending *pending)
{
    enum ttd_status status = grow_array((void **)&queue->items, &queue->capacity, queue->count + 1,
                                        sizeof *queue->items);
    if (status != TTD_OK)
        return status;
    size_t i = queue->count++;
    while (i > 0 && pending_is_before(pending, &queue->items[(i - 1) / 2])) {
        queue->items[i] = queue->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    queue->items[i] = *pending;
    return TTD_OK;
}

void heap_queue_pop(struct heap_queue *queue, struct heap_pending *pending)
{
    *pending = queue->items[0];
    const struct heap_pending *last = &queue->items[--queue->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= queue->count)
            break;
        if (child + 1 < queue->count &&
            pending_is_before(&queue->items[child + 1], &queue->items[child]))
            child++;
        if (!pending_is_before(&queue->items[child], last))
            break;
        queue->items[i] = queue->items[child];
        i = child;
    }
    if (queue->count)
        queue->items[i] = *last;
}
