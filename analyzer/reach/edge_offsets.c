/* SPDX-License-Identifier: MIT */
#include "reach/edge_offsets.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/table.h"

#define CAPACITY_MIN 64

static size_t edge_offsets_bytes(size_t capacity)
{
    return capacity * sizeof(uint32_t);
}

enum ttd_status edge_offsets_grow(const struct edge_offsets *offsets,
                                  struct edge_offset_array *array, uint64_t edge, uint32_t offset)
{
    size_t capacity = array->capacity ? array->capacity : offsets->expected;
    if (capacity < CAPACITY_MIN)
        capacity = CAPACITY_MIN;
    while (capacity <= edge) {
        if (capacity > SIZE_MAX / 2 / sizeof(uint32_t))
            return TTD_ERROR_NO_MEMORY;
        capacity = table_next(capacity, sizeof(uint32_t));
    }
    uint32_t *grown = table_resize(array->offsets, edge_offsets_bytes(array->capacity),
                                   edge_offsets_bytes(capacity));
    if (!grown)
        return TTD_ERROR_NO_MEMORY;
    *array = (struct edge_offset_array){grown, capacity};
    grown[edge] = offset;
    return TTD_OK;
}

void edge_offsets_free(struct edge_offsets *offsets)
{
    table_free(offsets->in_source.offsets, edge_offsets_bytes(offsets->in_source.capacity));
    table_free(offsets->in_target.offsets, edge_offsets_bytes(offsets->in_target.capacity));
    free(offsets->far);
    *offsets = (struct edge_offsets){.expected = offsets->expected,
                                     .is_without_sources = offsets->is_without_sources};
}

static void clear_array(const struct edge_offset_array *array, uint64_t count)
{
    if (array->offsets)
        memset(array->offsets, 0,
               edge_offsets_bytes(count < array->capacity ? count : array->capacity));
}

void edge_offsets_clear(struct edge_offsets *offsets, uint64_t count)
{
    clear_array(&offsets->in_source, count);
    clear_array(&offsets->in_target, count);
    offsets->far_count = 0;
}

enum ttd_status edge_offsets_add_far(struct edge_offsets *offsets, uint64_t edge, uint64_t source)
{
    enum ttd_status status = grow_array((void **)&offsets->far, &offsets->far_capacity,
                                        offsets->far_count + 1, sizeof *offsets->far);
    if (status != TTD_OK)
        return status;
    offsets->far[offsets->far_count++] = (struct edge_far_offset){edge, source};
    return edge_offsets_set(offsets, &offsets->in_source, edge, UINT32_MAX);
}

uint64_t edge_offset_in_source(const struct edge_offsets *offsets, uint64_t edge)
{
    uint32_t near = edge < offsets->in_source.capacity ? offsets->in_source.offsets[edge] : 0;
    if (near != UINT32_MAX)
        return near;
    size_t low = 0, high = offsets->far_count;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (offsets->far[middle].edge <= edge)
            low = middle;
        else
            high = middle;
    }
    return offsets->far[low].offset;
}
