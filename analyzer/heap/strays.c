/* SPDX-License-Identifier: MIT */
#include "heap/strays.h"

#include <stdlib.h>

#include "heap/sort_blocks.h"

/* Room for the blocks of a table. */
struct room {
    struct sort_key *keys;
    struct sort_key *spare;
    /** Blocks that begin before the next one and may hold it. */
    const struct heap_block **open;
};

static uint64_t strays_block_last(const struct heap_block *block)
{
    uint64_t last_offset = block->size ? block->size - 1 : 0;
    return last_offset > UINT64_MAX - block->address ? UINT64_MAX : block->address + last_offset;
}

/* Whether a block can lie in another one. One that is younger has the memory anew, unless a
 * reallocation has left it in its place. */
static bool strays_may_hold(const struct heap_block *outer, const struct heap_block *block)
{
    bool is_older = outer->action == TTD_ACTION_REALLOC ||
                    ttd_position_compare(outer->allocated, block->allocated) <= 0;
    return outer->heap < block->heap && strays_block_last(outer) >= strays_block_last(block) &&
           is_older;
}

/* A parent has a lower id. Blocks of other heaps in between, which only a faulty trace has, are
 * looked at up to a limit. */
static bool is_stray(const struct heap_block *block, const struct heap_block **open, size_t count)
{
    size_t least = count > HEAP_SHARED_MAX ? count - HEAP_SHARED_MAX : 0;
    for (size_t i = count; i > least; i--) {
        if (strays_may_hold(open[i - 1], block))
            return false;
    }
    return true;
}

static uint64_t count(const struct heap_live *live, const struct room *room)
{
    const struct heap_block *block;
    size_t cursor = 0;
    size_t key_count = 0;
    size_t open_count = 0;
    uint64_t strays = 0;
    while (key_count < live->count && (block = heap_live_each(live, &cursor)))
        room->keys[key_count++] = heap_block_key(live->blocks, block);
    heap_sort_blocks(live->blocks, room->keys, room->spare, key_count);
    for (size_t i = 0; i < key_count; i++) {
        block = &live->blocks[room->keys[i].index];
        while (open_count && strays_block_last(room->open[open_count - 1]) < block->address)
            open_count--;
        if (heap_parents_get(&live->parents, block->heap) != TTD_NONE)
            strays += is_stray(block, room->open, open_count);
        room->open[open_count++] = block;
    }
    return strays;
}

uint64_t heap_count_strays(const struct heap_live *live)
{
    uint64_t nested = live->count - live->outer_count;
    if (!nested)
        return 0;
    struct room room = {.keys = malloc((size_t)live->count * sizeof *room.keys),
                        .spare = malloc((size_t)live->count * sizeof *room.spare),
                        .open = malloc((size_t)live->count * sizeof *room.open)};
    uint64_t strays = room.keys && room.spare && room.open ? count(live, &room) : nested;
    free(room.keys);
    free(room.spare);
    free(room.open);
    return strays;
}
