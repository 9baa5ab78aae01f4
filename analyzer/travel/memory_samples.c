/* SPDX-License-Identifier: MIT */
#include "travel/memory_samples.h"

#include <stdlib.h>

#include "base/grow.h"

static void samples_raise(uint64_t *most, uint64_t value)
{
    *most = value > *most ? value : *most;
}

enum ttd_status heap_memory_samples_add(struct heap_memory_samples *samples,
                                        const struct heap_mark *mark)
{
    enum ttd_status status = grow_array((void **)&samples->items, &samples->capacity,
                                        samples->count + 1, sizeof *samples->items);
    if (status != TTD_OK)
        return status;
    struct heap_memory_sample *sample = &samples->items[samples->count++];
    *sample = (struct heap_memory_sample){.position = mark->event->position,
                                          .wall_time = mark->event->wall_time,
                                          .resident = mark->memory[TTD_MEMORY_RESIDENT],
                                          .mapped = mark->memory[TTD_MEMORY_MAPPED]};
    samples_raise(&samples->most_resident, sample->resident);
    samples_raise(&samples->most_resident, mark->memory[TTD_MEMORY_MOST_RESIDENT]);
    samples_raise(&samples->most_mapped, sample->mapped);
    return TTD_OK;
}

enum ttd_status heap_memory_samples_read(const struct heap_trace *trace,
                                         struct heap_memory_samples *samples,
                                         struct ttd_error *error)
{
    *samples = (struct heap_memory_samples){.items = NULL};
    enum ttd_status status = ttd_reader_rewind(trace->reader, TTD_KIND_BIT(TTD_KIND_USER_EVENTS));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, error);
        for (size_t i = 0;
             status == TTD_OK && batch.kind == TTD_KIND_USER_EVENTS && i < batch.count; i++) {
            struct heap_mark mark = heap_mark_of(&batch.u.user_events[i]);
            if (mark.kind == HEAP_MARK_MEMORY)
                status = heap_memory_samples_add(samples, &mark);
        }
    }
    if (heap_is_over(status))
        return TTD_OK;
    heap_memory_samples_free(samples);
    return status;
}

void heap_memory_samples_free(struct heap_memory_samples *samples)
{
    free(samples->items);
    *samples = (struct heap_memory_samples){.items = NULL};
}
