/* SPDX-License-Identifier: MIT */
#include "analyses/memory/memory.h"

#include <stdlib.h>

#include "analyses/state/state.h"
#include "heap/sort_blocks.h"

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
