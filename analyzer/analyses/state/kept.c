/* SPDX-License-Identifier: MIT */
#include "analyses/state/kept.h"

#include <stdlib.h>

#include "base/grow.h"

static enum ttd_status add_list(struct heap_kept *kept, struct heap_runtime *runtime,
                                const struct ttd_live_blocks *list)
{
    enum ttd_status status = TTD_OK;
    if (list->list != TTD_BLOCKS_RUNTIME)
        return TTD_OK;
    if (list->last)
        runtime->list = HEAP_RUNTIME_TOLD;
    else if (runtime->list == HEAP_RUNTIME_UNKNOWN)
        runtime->list = HEAP_RUNTIME_CUT_SHORT;
    for (size_t i = 0; i < list->count && status == TTD_OK; i++)
        status = map_set(&kept->addresses, list->blocks[i].address, 0, 1);
    kept->address_count += list->count;
    return status;
}

enum ttd_status heap_kept_read(struct heap_kept *kept, const struct heap_trace *trace,
                               enum heap_split split, struct heap_runtime *runtime,
                               struct ttd_error *error)
{
    *kept = (struct heap_kept){.judge = trace->hook.judge};
    map_init(&kept->addresses);
    runtime->list = HEAP_RUNTIME_UNKNOWN;
    heap_groups_init(&runtime->groups);
    runtime->groups.split = split;
    enum ttd_status status = ttd_reader_rewind(trace->reader, TTD_KIND_BIT(TTD_KIND_LIVE_BLOCKS));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, error);
        for (size_t i = 0;
             status == TTD_OK && batch.kind == TTD_KIND_LIVE_BLOCKS && i < batch.count; i++)
            status = add_list(kept, runtime, &batch.u.live_blocks[i]);
    }
    return heap_is_over(status) ? TTD_OK : status;
}

void heap_kept_free(struct heap_kept *kept)
{
    map_free(&kept->addresses);
    free(kept->candidates);
    *kept = (struct heap_kept){.count = 0};
}

/* Copies the block, because the replay goes on to the end and changes the table of live blocks. */
enum ttd_status heap_kept_defer(struct heap_kept *kept, const struct heap_block *block)
{
    enum ttd_status status = grow_array((void **)&kept->candidates, &kept->capacity,
                                        kept->count + 1, sizeof *kept->candidates);
    if (status == TTD_OK)
        kept->candidates[kept->count++] = *block;
    return status;
}

/* Whether the same block is live at the end. The list has addresses only, and another block may
 * have had the address before. */
static bool kept_is_live(const struct heap_live *live, const struct heap_block *block)
{
    const struct heap_block *last = heap_live_find(live, block->address, block->heap);
    return last && last->event == block->event;
}

/* The cursor goes to the end only if an address is listed: the way is long, and where stacks decide
 * it is not needed. */
enum ttd_status heap_kept_decide(struct heap_kept *kept, struct heap_cursor *cursor,
                                 struct heap_runtime *runtime, heap_kept_function *add,
                                 void *context, struct ttd_error *error)
{
    enum ttd_status status = TTD_OK;
    bool needs_end = false;
    for (size_t i = 0; i < kept->count && !needs_end; i++)
        needs_end = !heap_kept_has_stack(kept, &kept->candidates[i]);
    if (needs_end)
        status = heap_cursor_seek(cursor, ttd_position_max(), error);
    for (size_t i = 0; i < kept->count && status == TTD_OK; i++) {
        const struct heap_block *block = &kept->candidates[i];
        bool stays = heap_kept_has_stack(kept, block) || kept_is_live(&cursor->replay.live, block);
        status = stays ? heap_groups_add(&runtime->groups, block) : add(context, block);
    }
    return status;
}
