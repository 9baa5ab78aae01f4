/* SPDX-License-Identifier: MIT */
#include "heap/lists.h"

#include <stdlib.h>

#include "base/sort.h"

/* Blocks of a chunk. */
#define PART 65536

/* Blocks to be written: keys[i].item is the index of one. */
typedef struct selection {
    const heap_block *blocks;
    sort_key *keys;
    size_t count;
    ttd_block *part;
} selection;

static ttd_block block_of(const heap_block *block)
{
    return (ttd_block){.address = block->address,
                       .size = block->size,
                       .event = block->event,
                       .allocated = block->allocated,
                       .thread = block->thread,
                       .heap = block->heap,
                       .stack = block->stack,
                       .api = block->api};
}

static ttd_status write_parts(heap_lister *lister, ttd_position position, const selection *chosen)
{
    ttd_live_blocks list = {.list = TTD_BLOCKS_KEYFRAME,
                            .list_id = ++lister->count,
                            .position = position,
                            .blocks = chosen->part};
    size_t done = 0;
    do {
        list.count = chosen->count - done < PART ? chosen->count - done : PART;
        list.last = done + list.count == chosen->count;
        for (size_t i = 0; i < list.count; i++)
            chosen->part[i] = block_of(&chosen->blocks[chosen->keys[done + i].item]);
        ttd_status status = ttd_writer_live_blocks(lister->writer, &list);
        if (status != TTD_OK)
            return status;
        done += list.count;
    } while (done < chosen->count);
    return TTD_OK;
}

static bool selection_init(selection *chosen, const heap_block *blocks, size_t count)
{
    *chosen = (selection){.blocks = blocks,
                          .keys = malloc((count + 1) * sizeof *chosen->keys),
                          .part = malloc(PART * sizeof *chosen->part)};
    return chosen->keys && chosen->part;
}

static void selection_free(selection *chosen)
{
    free(chosen->keys);
    free(chosen->part);
}

static ttd_status write_sorted(heap_lister *lister, ttd_position position, selection *chosen)
{
    sort_key *spare = malloc((chosen->count + 1) * sizeof *spare);
    if (!spare)
        return TTD_ERROR_NO_MEMORY;
    sort_keys(chosen->keys, spare, chosen->count);
    free(spare);
    return write_parts(lister, position, chosen);
}

static void choose(selection *chosen, const heap_block *block)
{
    chosen->keys[chosen->count++] = (sort_key){block->address, (uint32_t)(block - chosen->blocks)};
}

ttd_status heap_list_live(heap_lister *lister, ttd_position position, const heap_live *live)
{
    selection chosen;
    size_t cursor = 0;
    const heap_block *block;
    ttd_status status = TTD_ERROR_NO_MEMORY;
    if (selection_init(&chosen, live->blocks, (size_t)live->count)) {
        while ((block = heap_live_each(live, &cursor)))
            choose(&chosen, block);
        status = write_sorted(lister, position, &chosen);
    }
    selection_free(&chosen);
    return status;
}

ttd_status heap_list_blocks(heap_lister *lister, ttd_position position, const heap_block *blocks,
                            size_t count)
{
    selection chosen;
    ttd_status status = TTD_ERROR_NO_MEMORY;
    if (selection_init(&chosen, blocks, count)) {
        for (size_t i = 0; i < count; i++)
            choose(&chosen, &blocks[i]);
        status = write_sorted(lister, position, &chosen);
    }
    selection_free(&chosen);
    return status;
}
