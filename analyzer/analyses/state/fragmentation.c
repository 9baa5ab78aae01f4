/* SPDX-License-Identifier: MIT */
#include "analyses/state/fragmentation.h"

#include <stdlib.h>

#include "analyses/state/state.h"
#include "base/grow.h"
#include "heap/sort_blocks.h"

static enum ttd_status begin_region(struct heap_fragmentation *fragmentation,
                                    const struct heap_block *block)
{
    enum ttd_status status = grow_array((void **)&fragmentation->regions, &fragmentation->capacity,
                                        fragmentation->count + 1, sizeof *fragmentation->regions);
    if (status == TTD_OK)
        fragmentation->regions[fragmentation->count++] =
            (struct heap_region){.begin = block->address,
                                 .last = heap_block_last(block),
                                 .blocks = 1,
                                 .used = heap_block_last(block) - block->address + 1};
    return status;
}

/* Adds a block that begins in or behind a region. Blocks overlap where pools lie in blocks of other
 * heaps, and in a trace with losses. */
static void extend(struct heap_region *region, const struct heap_block *block)
{
    uint64_t last = heap_block_last(block);
    region->blocks++;
    if (block->address > region->last) {
        uint64_t gap = block->address - region->last - 1;
        region->gaps += gap > 0;
        region->unused += gap;
        region->largest_gap = gap > region->largest_gap ? gap : region->largest_gap;
        region->used += last - block->address + 1;
    } else if (last > region->last) {
        region->used += last - region->last;
    }
    region->last = last > region->last ? last : region->last;
}

enum ttd_status heap_fragmentation_add(struct heap_fragmentation *fragmentation,
                                       const struct heap_block *block, uint64_t separating)
{
    /* Blocks come in order of address, so each belongs to the last region or begins a new one. */
    struct heap_region *region =
        fragmentation->count ? &fragmentation->regions[fragmentation->count - 1] : NULL;
    bool is_near = region && (block->address <= region->last ||
                              block->address - region->last - 1 < separating);
    if (!is_near)
        return begin_region(fragmentation, block);
    extend(region, block);
    return TTD_OK;
}

void heap_fragmentation_sum_up(struct heap_fragmentation *fragmentation)
{
    struct heap_region *total = &fragmentation->total;
    for (size_t i = 0; i < fragmentation->count; i++) {
        const struct heap_region *region = &fragmentation->regions[i];
        total->blocks += region->blocks;
        total->used += region->used;
        total->unused += region->unused;
        total->gaps += region->gaps;
        if (region->largest_gap > total->largest_gap)
            total->largest_gap = region->largest_gap;
    }
}

static enum ttd_status find_regions(struct heap_fragmentation *fragmentation,
                                    const struct heap_state *state, uint64_t separating)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < state->block_count && status == TTD_OK; i++)
        status = heap_fragmentation_add(fragmentation, &state->blocks[i], separating);
    heap_fragmentation_sum_up(fragmentation);
    return status;
}

enum ttd_status heap_fragmentation_find(const struct heap_trace *trace,
                                        const struct heap_fragmentation_options *options,
                                        struct heap_fragmentation *fragmentation,
                                        struct ttd_error *error)
{
    struct heap_state state;
    struct heap_state_options blocks = {.at = options->at, .keeps_blocks = true};
    *fragmentation = (struct heap_fragmentation){.count = 0};
    enum ttd_status status = heap_state_find(trace, &blocks, &state, error);
    if (status != TTD_OK)
        return status;
    fragmentation->outcome = state.outcome;
    status = find_regions(fragmentation, &state, options->gap);
    if (status == TTD_OK)
        status = heap_sparse_pages_find(state.blocks, state.block_count, &fragmentation->sparse);
    heap_state_free(&state);
    if (status != TTD_OK)
        heap_fragmentation_free(fragmentation);
    return status;
}

void heap_fragmentation_free(struct heap_fragmentation *fragmentation)
{
    free(fragmentation->regions);
    fragmentation->regions = NULL;
    heap_sparse_pages_free(&fragmentation->sparse);
}
