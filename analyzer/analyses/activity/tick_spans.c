/* SPDX-License-Identifier: MIT */
#include "analyses/activity/tick_spans.h"

#include <stdlib.h>

/* The number of spans with releases before a tick. */
static size_t spans_before(size_t end)
{
    return end ? end * (end - 1) / 2 : 0;
}

enum ttd_status heap_spans_init(struct heap_tick_spans *spans, size_t max)
{
    *spans = (struct heap_tick_spans){.spans = calloc(spans_before(max) + 1, sizeof *spans->spans),
                                      .width = 1};
    return spans->spans ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

void heap_spans_free(struct heap_tick_spans *spans)
{
    free(spans->spans);
    spans->spans = NULL;
}

const struct heap_tick_span *heap_spans_of(const struct heap_tick_spans *spans, size_t end)
{
    return spans->spans + spans_before(end);
}

static void spans_add(struct heap_tick_spans *spans, size_t begin, size_t end,
                      struct heap_tick_span added)
{
    if (begin >= end)
        return;
    struct heap_tick_span *span = &spans->spans[spans_before(end) + begin];
    span->blocks += added.blocks;
    span->bytes += added.bytes;
}

void heap_spans_add(struct heap_tick_spans *spans, size_t begin, size_t end, uint64_t size)
{
    spans_add(spans, begin, end, (struct heap_tick_span){1, size});
}

void heap_spans_merge(struct heap_tick_spans *spans, const uint32_t *new_ticks, size_t count)
{
    /* A span never moves to a later index, so what has been merged is never met again. */
    for (size_t end = 1, i = 0; end < count; end++) {
        for (size_t begin = 0; begin < end; begin++, i++) {
            struct heap_tick_span span = spans->spans[i];
            spans->spans[i] = (struct heap_tick_span){0, 0};
            if (span.blocks)
                spans_add(spans, new_ticks[begin], new_ticks[end], span);
        }
    }
}

size_t heap_spans_count(const struct heap_tick_spans *spans, size_t end)
{
    size_t used = 0;
    for (size_t i = spans_before(end); i < spans_before(end + 1); i++)
        used += spans->spans[i].blocks != 0;
    return used;
}

static size_t count_all(const struct heap_tick_spans *spans, size_t count)
{
    size_t used = 0;
    for (size_t end = 0; end < count; end++)
        used += heap_spans_count(spans, end);
    return used;
}

enum ttd_status heap_spans_limit(struct heap_tick_spans *spans, size_t *count, size_t max)
{
    uint32_t *new_ticks = malloc((*count + 1) * sizeof *new_ticks);
    if (!new_ticks)
        return TTD_ERROR_NO_MEMORY;
    while (*count > 2 && count_all(spans, *count) > max) {
        for (size_t i = 0; i < *count; i++)
            new_ticks[i] = (uint32_t)((i + 1) / 2);
        heap_spans_merge(spans, new_ticks, *count);
        *count = new_ticks[*count - 1] + 1;
        spans->width *= 2;
    }
    free(new_ticks);
    return TTD_OK;
}
