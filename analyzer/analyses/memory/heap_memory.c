/* SPDX-License-Identifier: MIT */
#include "analyses/memory/heap_memory.h"

#include <stdlib.h>

#include "analyses/state/state.h"
#include "heap/sort_blocks.h"

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

/* Keeps of the blocks of a state those that lie in the range. */
static void memory_take_blocks(struct heap_memory *memory, struct heap_state *state)
{
    const struct heap_memory_options *options = &memory->options;
    memory->blocks = state->blocks;
    state->blocks = NULL;
    for (size_t i = 0; i < state->block_count; i++) {
        const struct heap_block *block = &memory->blocks[i];
        if (options->keeps_all_blocks || heap_block_covers(block, options->first, options->last))
            memory->blocks[memory->block_count++] = *block;
    }
}

static enum ttd_status find_contents(struct heap_memory *memory, const struct heap_trace *trace,
                                     struct ttd_error *error)
{
    struct contents_range range = {memory->options.first, memory->options.last, memory->options.at};
    enum ttd_status status = heap_snapshots_find(trace, &memory->snapshots, error);
    if (status == TTD_OK)
        status = contents_extents_find(trace, &memory->snapshots, &range, &memory->extents, error);
    if (status == TTD_OK)
        status = contents_pages_find(trace, &memory->pages, error);
    return status;
}

enum ttd_status heap_memory_find(const struct heap_trace *trace,
                                 const struct heap_memory_options *options,
                                 struct heap_memory *memory, struct ttd_error *error)
{
    struct heap_state state;
    struct heap_state_options blocks = {
        .at = options->at, .keeps_blocks = true, .confirms_blocks = true};
    *memory = (struct heap_memory){.options = *options};
    enum ttd_status status = heap_state_find(trace, &blocks, &state, error);
    if (status != TTD_OK)
        return status;
    memory->outcome = state.outcome;
    memory_take_blocks(memory, &state);
    heap_state_free(&state);
    if (heap_blocks_are_nested(memory->blocks, memory->block_count))
        status = heap_segments_find(&memory->segments, memory->blocks, memory->block_count);
    if (status == TTD_OK)
        status = find_contents(memory, trace, error);
    if (status != TTD_OK)
        heap_memory_free(memory);
    return status;
}

void heap_memory_free(struct heap_memory *memory)
{
    heap_snapshots_free(&memory->snapshots);
    contents_extents_free(&memory->extents);
    contents_pages_free(&memory->pages);
    heap_segments_free(&memory->segments);
    free(memory->blocks);
    *memory = (struct heap_memory){.blocks = NULL};
}

const struct heap_block *heap_memory_block(const struct heap_memory *memory, uint64_t address)
{
    if (memory->segments.count) {
        size_t index = heap_segments_block(&memory->segments, address);
        return index != SIZE_MAX ? &memory->blocks[index] : NULL;
    }
    /* Finds the last block that begins at the address or before. No block lies in another, so only
     * that one can cover it. */
    size_t first = 0;
    size_t end = memory->block_count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (memory->blocks[middle].address <= address)
            first = middle + 1;
        else
            end = middle;
    }
    const struct heap_block *block = first ? &memory->blocks[first - 1] : NULL;
    return block && heap_block_covers(block, address, address) ? block : NULL;
}

bool heap_memory_is_older(const struct heap_memory *memory, const struct contents_part *part,
                          const struct heap_block *block)
{
    return part->state != CONTENTS_UNKNOWN &&
           ttd_position_compare(memory->snapshots.snapshots[part->snapshot].position,
                                block->allocated) < 0;
}
