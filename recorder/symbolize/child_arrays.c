/* SPDX-License-Identifier: MIT */
#include "symbolize/child_arrays.h"

#include <stdlib.h>
#include <unistd.h>

#include "arrays.h"

void *grow_new(size_t count, size_t size)
{
    void *array = calloc(count > 0 ? count : 1, size);
    if (!array)
        _exit(EXIT_FAILURE);
    return array;
}

void *grow_by_one(void *array, size_t *capacity, size_t count, size_t size)
{
    array = array_grow(array, count, capacity, size);
    if (!array)
        _exit(EXIT_FAILURE);
    return array;
}

static int arrays_compare_spans(const void *left, const void *right)
{
    const struct span *a = left;
    const struct span *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

void spans_sort(struct span *spans, size_t count)
{
    if (count > 0)
        qsort(spans, count, sizeof *spans, arrays_compare_spans);
}

/*
 * Sweeps once over spans and addresses. The stack holds the spans that have begun, the last one on
 * top. A span on top that has ended is dropped for good: addresses ascend.
 */
void spans_find(const struct span *spans, size_t count, const uint64_t *addresses,
                size_t address_count, uint32_t *innermost)
{
    uint32_t *stack = grow_new(count, sizeof *stack);
    size_t depth = 0;
    size_t next = 0;
    for (size_t i = 0; i < address_count; i++) {
        while (next < count && spans[next].begin <= addresses[i])
            stack[depth++] = (uint32_t)next++;
        while (depth > 0 && spans[stack[depth - 1]].end <= addresses[i])
            depth--;
        innermost[i] = depth > 0 ? stack[depth - 1] : SPAN_NONE;
    }
    free(stack);
}

size_t addresses_from(const uint64_t *addresses, size_t count, uint64_t address)
{
    return array_count_below(addresses, count, sizeof *addresses, 0, address);
}
