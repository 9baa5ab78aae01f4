/* SPDX-License-Identifier: MIT */
#include "spans.h"

#include <stdlib.h>

#include "grow.h"

static int compare_spans(const void *left, const void *right)
{
    const struct span *a = left;
    const struct span *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    return (a->item > b->item) - (a->item < b->item);
}

void spans_sort(struct span *spans, size_t count)
{
    if (count > 0)
        qsort(spans, count, sizeof *spans, compare_spans);
}

/*
 * One sweep: the stack holds spans that began, the last one on top. One that has ended when it is
 * on top holds no later address either.
 */
void spans_find(const struct span *spans, size_t count, const uint64_t *addresses,
                size_t address_count, uint32_t *found)
{
    uint32_t *stack = grow_new(count, sizeof *stack);
    size_t depth = 0;
    size_t next = 0;
    for (size_t i = 0; i < address_count; i++) {
        while (next < count && spans[next].begin <= addresses[i])
            stack[depth++] = (uint32_t)next++;
        while (depth > 0 && spans[stack[depth - 1]].end <= addresses[i])
            depth--;
        found[i] = depth > 0 ? stack[depth - 1] : SPAN_NONE;
    }
    free(stack);
}

size_t addresses_from(const uint64_t *addresses, size_t count, uint64_t address)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (addresses[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
