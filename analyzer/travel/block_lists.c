/* SPDX-License-Identifier: MIT */
#include "travel/block_lists.h"

#include <stdlib.h>

#include "heap/sort_blocks.h"

/* Blocks of a chunk. */
#define PART 65536

/* Blocks to be written: keys[i].index is the index of one. */
struct selection {
    const struct heap_block *blocks;
    struct sort_key *keys;
    size_t count;
    struct ttd_block *buffer;
};

static struct ttd_block lister_record_block(const struct heap_block *block)
{
    return (struct ttd_block){.address = block->address,
                              .size = block->size,
                              .event = block->event,
                              .allocated = block->allocated,
                              .thread = block->thread,
                              .heap = block->heap,
                              .stack = block->stack,
                              .api = block->api};
}

static enum ttd_status lister_write_parts(struct heap_block_lister *lister,
                                          struct ttd_position position,
                                          const struct selection *chosen)
{
    struct ttd_live_blocks list = {.list = TTD_BLOCKS_KEYFRAME,
                                   .list_id = ++lister->count,
                                   .position = position,
                                   .blocks = chosen->buffer};
    size_t written = 0;
    /* At least once: an empty list is written as well. */
    do {
        list.count = chosen->count - written < PART ? chosen->count - written : PART;
        list.last = written + list.count == chosen->count;
        for (size_t i = 0; i < list.count; i++)
            chosen->buffer[i] =
                lister_record_block(&chosen->blocks[chosen->keys[written + i].index]);
        /* One code writes an index and checks one, so that both agree on what it must hold. */
        enum ttd_status status = lister->check ? heap_index_check_blocks(lister->check, &list)
                                               : ttd_writer_live_blocks(lister->writer, &list);
        if (status != TTD_OK)
            return status;
        written += list.count;
    } while (written < chosen->count);
    return TTD_OK;
}

static bool selection_init(struct selection *chosen, const struct heap_block *blocks, size_t count)
{
    /* One key more than blocks: malloc(0) may be NULL. */
    *chosen = (struct selection){.blocks = blocks,
                                 .keys = malloc((count + 1) * sizeof *chosen->keys),
                                 .buffer = malloc(PART * sizeof *chosen->buffer)};
    return chosen->keys && chosen->buffer;
}

static void selection_free(struct selection *chosen)
{
    free(chosen->keys);
    free(chosen->buffer);
}

static enum ttd_status write_sorted(struct heap_block_lister *lister, struct ttd_position position,
                                    struct selection *chosen)
{
    struct sort_key *spare = malloc((chosen->count + 1) * sizeof *spare);
    if (!spare)
        return TTD_ERROR_NO_MEMORY;
    heap_sort_blocks(chosen->blocks, chosen->keys, spare, chosen->count);
    free(spare);
    return lister_write_parts(lister, position, chosen);
}

static void lister_choose_block(struct selection *chosen, const struct heap_block *block)
{
    chosen->keys[chosen->count++] = heap_block_key(chosen->blocks, block);
}

enum ttd_status heap_list_state(struct heap_block_lister *lister, const struct ttd_state *state)
{
    return lister->check ? heap_index_check_state(lister->check, state)
                         : ttd_writer_state(lister->writer, state);
}

enum ttd_status heap_list_live(struct heap_block_lister *lister, struct ttd_position position,
                               const struct heap_live *live)
{
    struct selection chosen;
    size_t cursor = 0;
    const struct heap_block *block;
    enum ttd_status status = TTD_ERROR_NO_MEMORY;
    if (selection_init(&chosen, live->blocks, (size_t)live->count)) {
        while ((block = heap_live_each(live, &cursor)))
            lister_choose_block(&chosen, block);
        status = write_sorted(lister, position, &chosen);
    }
    selection_free(&chosen);
    return status;
}

enum ttd_status heap_list_blocks(struct heap_block_lister *lister, struct ttd_position position,
                                 const struct heap_block *blocks, size_t count)
{
    struct selection chosen;
    enum ttd_status status = TTD_ERROR_NO_MEMORY;
    if (selection_init(&chosen, blocks, count)) {
        for (size_t i = 0; i < count; i++)
            lister_choose_block(&chosen, &blocks[i]);
        status = write_sorted(lister, position, &chosen);
    }
    selection_free(&chosen);
    return status;
}
