/* SPDX-License-Identifier: MIT */
#include "reach/edge_offsets.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/table.h"

#define CAPACITY_MIN 64

/* Grows an array, unless a failure of the other one left it that large. */
static enum ttd_status resize(uint32_t **array, size_t *old_size, size_t size)
{
    if (size <= *old_size)
        return TTD_OK;
    uint32_t *resized = table_resize(*array, *old_size, size);
    if (!resized)
        return TTD_ERROR_NO_MEMORY;
    *array = resized;
    *old_size = size;
    return TTD_OK;
}

enum ttd_status edge_offsets_grow(struct edge_offsets *offsets)
{
    size_t capacity =
        offsets->capacity ? table_next(offsets->capacity, sizeof(uint32_t)) : CAPACITY_MIN;
    if (capacity > SIZE_MAX / sizeof(uint32_t))
        return TTD_ERROR_NO_MEMORY;
    size_t size = capacity * sizeof(uint32_t);
    enum ttd_status status = resize(&offsets->in_target, &offsets->target_size, size);
    if (status == TTD_OK && !offsets->is_without_sources)
        status = resize(&offsets->in_source, &offsets->source_size, size);
    if (status == TTD_OK)
        offsets->capacity = capacity;
    return status;
}

void edge_offsets_free(struct edge_offsets *offsets)
{
    table_free(offsets->in_source, offsets->source_size);
    table_free(offsets->in_target, offsets->target_size);
    free(offsets->far);
    *offsets = (struct edge_offsets){.is_without_sources = offsets->is_without_sources};
}

enum ttd_status edge_offsets_add_far(struct edge_offsets *offsets, uint64_t edge, uint64_t source)
{
    enum ttd_status status = grow_array((void **)&offsets->far, &offsets->far_capacity,
                                        offsets->far_count + 1, sizeof *offsets->far);
    if (status != TTD_OK)
        return status;
    offsets->in_source[edge] = UINT32_MAX;
    offsets->far[offsets->far_count++] = (struct edge_far_offset){edge, source};
    return TTD_OK;
}

uint64_t edge_offset_in_source(const struct edge_offsets *offsets, uint64_t edge)
{
    size_t low = 0, high = offsets->far_count;
    if (offsets->in_source[edge] != UINT32_MAX)
        return offsets->in_source[edge];
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (offsets->far[middle].edge <= edge)
            low = middle;
        else
            high = middle;
    }
    return offsets->far[low].offset;
}
