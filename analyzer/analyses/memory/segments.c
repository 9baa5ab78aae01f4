/* SPDX-License-Identifier: MIT */
#include "analyses/memory/segments.h"

#include <stdlib.h>

/* The sweep through the blocks: those that have begun and not ended, the innermost last. */
struct sweep {
    struct heap_segments *segments;
    const struct heap_block *blocks;
    size_t *open;
    size_t open_count;
};

static uint64_t segments_block_last(const struct heap_block *block)
{
    uint64_t last_offset = block->size ? block->size - 1 : 0;
    return last_offset > UINT64_MAX - block->address ? UINT64_MAX : block->address + last_offset;
}

bool heap_blocks_are_nested(const struct heap_block *blocks, size_t count)
{
    uint64_t last = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && blocks[i].address <= last)
            return true;
        last = segments_block_last(&blocks[i]);
    }
    return false;
}

/* Begins a segment of the innermost open block. */
static void begin_segment(struct sweep *sweep, uint64_t first)
{
    struct heap_segments *segments = sweep->segments;
    if (!segments->count || segments->items[segments->count - 1].first != first)
        segments->count++;
    segments->items[segments->count - 1] = (struct heap_segment){
        first, sweep->open_count ? sweep->open[sweep->open_count - 1] : SIZE_MAX};
}

/* Closes the innermost block, and those around it that end before it does, as those of a damaged
 * trace may. */
static void close_one(struct sweep *sweep)
{
    uint64_t last = segments_block_last(&sweep->blocks[sweep->open[--sweep->open_count]]);
    while (sweep->open_count &&
           segments_block_last(&sweep->blocks[sweep->open[sweep->open_count - 1]]) <= last)
        sweep->open_count--;
    if (last != UINT64_MAX)
        begin_segment(sweep, last + 1);
}

enum ttd_status heap_segments_find(struct heap_segments *segments, const struct heap_block *blocks,
                                   size_t count)
{
    struct sweep sweep = {
        .segments = segments, .blocks = blocks, .open = calloc(count + 1, sizeof *sweep.open)};
    /* Each block begins one segment, and ends at the begin of another. */
    *segments = (struct heap_segments){.items = calloc(2 * count + 1, sizeof *segments->items)};
    if (!sweep.open || !segments->items) {
        free(sweep.open);
        heap_segments_free(segments);
        return TTD_ERROR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        while (sweep.open_count &&
               segments_block_last(&blocks[sweep.open[sweep.open_count - 1]]) < blocks[i].address)
            close_one(&sweep);
        sweep.open[sweep.open_count++] = i;
        begin_segment(&sweep, blocks[i].address);
    }
    while (sweep.open_count)
        close_one(&sweep);
    free(sweep.open);
    return TTD_OK;
}

void heap_segments_free(struct heap_segments *segments)
{
    free(segments->items);
    *segments = (struct heap_segments){.items = NULL};
}

size_t heap_segments_block(const struct heap_segments *segments, uint64_t address)
{
    size_t first = 0;
    size_t end = segments->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (segments->items[middle].first <= address)
            first = middle + 1;
        else
            end = middle;
    }
    return first ? segments->items[first - 1].block : SIZE_MAX;
}
