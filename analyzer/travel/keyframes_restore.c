/* SPDX-License-Identifier: MIT */
#include "travel/keyframes.h"

/* Distance of the prefetch of slots, in blocks. */
#define AHEAD 12

/* Kinds of the chunks that hold the blocks and the sums of keyframes. */
#define LIST_KINDS (TTD_KIND_BIT(TTD_KIND_LIVE_BLOCKS) | TTD_KIND_BIT(TTD_KIND_SUMS))

static enum ttd_status restore_block(struct heap_live *live, const struct heap_keyframe *keyframe,
                                     const struct ttd_block *block)
{
    uint32_t record;
    if (block->event >= keyframe->next ||
        ttd_position_compare(block->allocated, keyframe->position) > 0)
        return TTD_ERROR_CORRUPT;
    struct heap_block restored = {.address = block->address,
                                  .size = block->size,
                                  .event = block->event,
                                  .allocated = block->allocated,
                                  .thread = block->thread,
                                  .stack = block->stack,
                                  .heap = block->heap,
                                  .action = TTD_ACTION_ALLOC,
                                  .api = block->api};
    enum ttd_status status =
        heap_live_record(live, block->address, heap_live_hash(live, block->address), &record);
    return status == TTD_OK ? heap_live_restore(live, record, &restored) : status;
}

static enum ttd_status restore_blocks(struct heap_live *live, const struct heap_keyframe *keyframe,
                                      const struct ttd_live_blocks *list)
{
    enum ttd_status status = TTD_OK;
    if (list->list != TTD_BLOCKS_KEYFRAME ||
        ttd_position_compare(list->position, keyframe->position) != 0 ||
        list->count > keyframe->blocks - live->count)
        return TTD_ERROR_CORRUPT;
    for (size_t i = 0; i < list->count && status == TTD_OK; i++) {
        if (i + AHEAD < list->count)
            heap_live_prefetch(live, heap_live_hash(live, list->blocks[i + AHEAD].address));
        status = restore_block(live, keyframe, &list->blocks[i]);
    }
    return status;
}

static enum ttd_status restore_sums(struct heap_tables *tables,
                                    const struct heap_keyframe *keyframe,
                                    const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        const struct ttd_sum *record = &batch->u.sums[i];
        struct heap_groups *groups = &tables->by[record->table];
        struct heap_group group;
        if (!heap_group_of_sum(record, &group) ||
            group.blocks > keyframe->counts.events - groups->blocks ||
            ttd_position_compare(group.last, keyframe->position) > 0)
            return TTD_ERROR_CORRUPT;
        status = heap_groups_add_sum(groups, &group);
    }
    return status;
}

/* Goes to a chunk of the sidecar, and reads only the headers of the chunks before it. */
static enum ttd_status keyframes_go_to(struct ttd_reader *sidecar, uint64_t number)
{
    struct ttd_chunk chunk = {.number = 0};
    enum ttd_status status = ttd_reader_rewind(sidecar, LIST_KINDS);
    while (status == TTD_OK && chunk.number + 1 < number)
        status = ttd_reader_next_chunk(sidecar, &chunk, NULL);
    return status;
}

/* Reads the sums and the list, whose lengths were checked when the sidecar was opened. */
static enum ttd_status read_list(const struct heap_keyframes *keyframes,
                                 const struct heap_keyframe *keyframe, struct heap_live *live,
                                 struct heap_tables *sums)
{
    uint64_t sums_read = 0;
    enum ttd_status status = keyframes_go_to(keyframes->sidecar, keyframe->chunk);
    while (status == TTD_OK && (sums_read < keyframe->sums || live->count < keyframe->blocks)) {
        struct ttd_batch batch;
        status = ttd_reader_next(keyframes->sidecar, &batch, NULL);
        if (status != TTD_OK)
            break;
        if (batch.kind == TTD_KIND_SUMS) {
            sums_read += batch.count;
            status = restore_sums(sums, keyframe, &batch);
        } else {
            status = restore_blocks(live, keyframe, batch.u.live_blocks);
        }
    }
    return status == TTD_END ? TTD_ERROR_CORRUPT : status;
}

/* Whether all tables sum up the same number of blocks and bytes. */
static bool agree(const struct heap_tables *tables)
{
    const struct heap_groups *first = &tables->by[0];
    for (size_t i = 1; i < HEAP_TABLES; i++)
        if (tables->by[i].blocks != first->blocks || tables->by[i].bytes != first->bytes)
            return false;
    return true;
}

enum ttd_status heap_keyframes_restore(const struct heap_keyframes *keyframes,
                                       const struct heap_keyframe *keyframe,
                                       struct heap_replay *replay, struct heap_tables *sums)
{
    enum ttd_status status = heap_replay_reset(replay);
    /* A damaged count cannot ask for more room than the file has bytes. */
    uint64_t room = ttd_reader_size(keyframes->sidecar);
    if (status == TTD_OK)
        status =
            heap_live_reserve(&replay->live, keyframe->blocks < room ? keyframe->blocks : room);
    if (status == TTD_OK)
        status = read_list(keyframes, keyframe, &replay->live, sums);
    if (status == TTD_OK && keyframe->is_summary && !agree(sums))
        status = TTD_ERROR_CORRUPT;
    replay->counts = keyframe->counts;
    replay->next = keyframe->next;
    replay->position = keyframe->position;
    return status;
}
