/* SPDX-License-Identifier: MIT */
#include "travel/index.h"

#include <stdlib.h>

#include "base/grow.h"
#include "heap/heap_live.h"

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
        /* One code writes an index and checks one, so that both agree on its contents. */
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

static enum ttd_status summary_write_sorted(struct heap_block_lister *lister,
                                            struct ttd_position position, struct selection *chosen)
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
        status = summary_write_sorted(lister, position, &chosen);
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
        status = summary_write_sorted(lister, position, &chosen);
    }
    selection_free(&chosen);
    return status;
}

/* Distance of the prefetch of records, in blocks. */
#define AHEAD 12

void heap_summary_close(struct heap_summary *summary, struct heap_replay *replay)
{
    heap_replay_observe_blocks(replay, NULL);
    if (summary->is_open)
        heap_tables_free(&summary->sums);
    free(summary->acquired);
    heap_block_copies_free(&summary->ending);
    free(summary->blocks);
    free(summary->ends);
    heap_block_copies_free(&summary->ended);
    heap_block_copies_free(&summary->born);
    *summary = (struct heap_summary){.is_open = false};
}

/* ---- Sums of live blocks ---- */

static enum ttd_status summary_reserve_blocks(struct heap_summary *summary, size_t count)
{
    return grow_array((void **)&summary->blocks, &summary->block_capacity, count,
                      sizeof *summary->blocks);
}

static enum ttd_status summary_reserve(struct heap_summary *summary, uint32_t record)
{
    size_t groups = summary->sums.by[HEAP_BY_STACK].count;
    enum ttd_status status = summary_reserve_blocks(summary, (size_t)record + 1);
    if (status == TTD_OK)
        status = grow_array((void **)&summary->ends, &summary->end_capacity, groups,
                            sizeof *summary->ends);
    while (status == TTD_OK && summary->end_count < groups)
        summary->ends[summary->end_count++] = (struct heap_ends){HEAP_NO_RECORD, HEAP_NO_RECORD};
    return status;
}

/* Adds a block that was allocated after all others: it becomes the last one of its group, so no
 * search is needed to keep the list in order. */
static enum ttd_status summary_add_newest(struct heap_summary *summary,
                                          const struct heap_block *block, uint32_t record)
{
    enum ttd_status status = heap_tables_add(&summary->sums, block);
    if (status == TTD_OK)
        status = summary_reserve(summary, record);
    if (status != TTD_OK)
        return status;
    uint32_t group = summary->sums.by[HEAP_BY_STACK].latest;
    struct heap_ends *ends = &summary->ends[group];
    summary->blocks[record] = (struct heap_summed){block->allocated, group, .earlier = ends->last,
                                                   .later = HEAP_NO_RECORD};
    if (ends->last == HEAP_NO_RECORD)
        ends->first = record;
    else
        summary->blocks[ends->last].later = record;
    ends->last = record;
    return TTD_OK;
}

/* Removes a released block from the list of its group. */
static void summary_unlink_block(struct heap_summary *summary, uint32_t record)
{
    const struct heap_summed *block = &summary->blocks[record];
    struct heap_ends *ends = &summary->ends[block->group];
    if (block->earlier == HEAP_NO_RECORD)
        ends->first = block->later;
    else
        summary->blocks[block->earlier].later = block->later;
    if (block->later == HEAP_NO_RECORD)
        ends->last = block->earlier;
    else
        summary->blocks[block->later].earlier = block->earlier;
}

static int summary_compare(const void *a, const void *b)
{
    const struct heap_block *const *x = a;
    const struct heap_block *const *y = b;
    return ttd_position_compare((*x)->allocated, (*y)->allocated);
}

/* Adds all live blocks in order of allocation; summary_add_newest() relies on it. The table of live
 * blocks has them in no order. */
static enum ttd_status summary_add_sorted(struct heap_summary *summary,
                                          const struct heap_live *live,
                                          const struct heap_block **blocks)
{
    size_t cursor = 0;
    size_t count = 0;
    enum ttd_status status = TTD_OK;
    while ((blocks[count] = heap_live_each(live, &cursor)))
        count++;
    qsort(blocks, count, sizeof *blocks, summary_compare);
    for (size_t i = 0; i < count && status == TTD_OK; i++)
        status = summary_add_newest(summary, blocks[i], (uint32_t)(blocks[i] - live->blocks));
    return status;
}

static enum ttd_status summary_add_live(struct heap_summary *summary, const struct heap_live *live)
{
    const struct heap_block **blocks = malloc(((size_t)live->count + 1) * sizeof *blocks);
    enum ttd_status status =
        blocks ? summary_reserve_blocks(summary, live->block_count) : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK)
        status = summary_add_sorted(summary, live, blocks);
    free(blocks);
    return status;
}

static enum ttd_status summary_add_born(struct heap_summary *summary)
{
    const struct heap_block_copies *born = &summary->born;
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < born->count && status == TTD_OK; i++) {
        if (i + AHEAD < born->count && born->records[i + AHEAD] < summary->block_capacity)
            __builtin_prefetch(&summary->blocks[born->records[i + AHEAD]], 1);
        status = summary_add_newest(summary, &born->blocks[i], born->records[i]);
    }
    return status;
}

/* Fetches what summary_unlink_block() will need: first the block, then those before and after it.
 */
static inline __attribute__((always_inline)) void
summary_prefetch(const struct heap_summary *summary, size_t index)
{
    const struct heap_block_copies *ended = &summary->ended;
    const struct heap_summed *blocks = summary->blocks;
    if (index + AHEAD < ended->count)
        __builtin_prefetch(&blocks[ended->records[index + AHEAD]]);
    if (index + AHEAD / 2 >= ended->count)
        return;
    const struct heap_summed *block = &blocks[ended->records[index + AHEAD / 2]];
    if (block->earlier != HEAP_NO_RECORD)
        __builtin_prefetch(&blocks[block->earlier]);
    if (block->later != HEAP_NO_RECORD)
        __builtin_prefetch(&blocks[block->later]);
}

static void summary_subtract_ended(struct heap_summary *summary)
{
    const struct heap_block_copies *ended = &summary->ended;
    for (size_t i = 0; i < ended->count; i++) {
        summary_prefetch(summary, i);
        for (size_t j = 0; j < HEAP_TABLES; j++)
            heap_groups_subtract(&summary->sums.by[j], &ended->blocks[i]);
        summary_unlink_block(summary, ended->records[i]);
    }
}

/* Sets the first and last allocation of each group. heap_groups_subtract() cannot: the second block
 * of a group becomes the first when the first is released, and only the lists know it. */
static void summary_find_positions(struct heap_summary *summary)
{
    struct heap_groups *groups = &summary->sums.by[HEAP_BY_STACK];
    for (size_t i = 0; i < groups->count; i++) {
        const struct heap_ends *ends = &summary->ends[i];
        if (ends->first == HEAP_NO_RECORD)
            continue;
        groups->items[i].first = summary->blocks[ends->first].allocated;
        groups->items[i].last = summary->blocks[ends->last].allocated;
    }
}

/* ---- Writing ---- */

static uint64_t summary_count_sums(struct heap_tables *sums)
{
    uint64_t count = 0;
    for (size_t i = 0; i < HEAP_TABLES; i++) {
        const struct heap_groups *groups = &sums->by[i];
        for (size_t j = 0; j < groups->count; j++)
            count += groups->items[j].blocks != 0;
    }
    return count;
}

static enum ttd_status summary_write_sums(struct heap_tables *sums,
                                          struct heap_block_lister *lister)
{
    struct ttd_writer *writer = lister->writer;
    enum ttd_status status = TTD_OK;
    if (lister->check)
        return heap_index_check_sums(lister->check, sums);
    for (size_t i = 0; i < HEAP_TABLES; i++) {
        const struct heap_groups *groups = &sums->by[i];
        for (size_t j = 0; j < groups->count && status == TTD_OK; j++) {
            if (!groups->items[j].blocks)
                continue;
            struct ttd_sum record = heap_sum_of_group(i, &groups->items[j]);
            status = ttd_writer_sum(writer, &record);
        }
    }
    /* A summary is read by itself, so the next record must not share a chunk with these sums. */
    return status == TTD_OK ? ttd_writer_flush(writer) : status;
}

static enum ttd_status summary_write(struct heap_summary *summary, struct heap_block_lister *lister)
{
    struct heap_keyframe *keyframe = &summary->last_range;
    keyframe->blocks = summary->ended.count;
    keyframe->sums = summary_count_sums(&summary->sums);
    struct ttd_state state = heap_state_of_keyframe(keyframe);
    enum ttd_status status = heap_list_state(lister, &state);
    if (status == TTD_OK)
        status = summary_write_sums(&summary->sums, lister);
    if (status != TTD_OK || !keyframe->blocks)
        return status;
    return heap_list_blocks(lister, keyframe->position, summary->ended.blocks,
                            summary->ended.count);
}

enum ttd_status heap_summary_write(struct heap_summary *summary, struct heap_block_lister *lister)
{
    summary_subtract_ended(summary);
    summary_find_positions(summary);
    enum ttd_status status = summary_write(summary, lister);
    return status == TTD_OK ? summary_add_born(summary) : status;
}

/* ---- Observing ---- */

static enum ttd_status observe_acquired(void *context, const struct heap_block *block,
                                        uint32_t record)
{
    struct heap_summary *summary = context;
    if (summary->acquired_count == summary->acquired_capacity) {
        enum ttd_status status =
            grow_array((void **)&summary->acquired, &summary->acquired_capacity,
                       summary->acquired_count + 1, sizeof *summary->acquired);
        if (status != TTD_OK)
            return status;
    }
    summary->acquired[summary->acquired_count++] = (struct heap_born){block->event, record};
    return TTD_OK;
}

static enum ttd_status observe_ended(void *context, const struct heap_block *block, uint32_t record)
{
    struct heap_summary *summary = context;
    bool is_older = block->event < summary->begin.next;
    return is_older ? heap_block_copies_add(&summary->ending, block, record) : TTD_OK;
}

/* ---- Begin and end ---- */

enum ttd_status heap_summary_begin(struct heap_summary *summary, struct heap_replay *replay)
{
    enum ttd_status status = TTD_OK;
    if (!summary->is_open) {
        heap_tables_init(&summary->sums);
        summary->is_open = true;
        status = summary_add_live(summary, &replay->live);
    }
    summary->begin = (struct heap_keyframe){.is_summary = true,
                                            .position = replay->position,
                                            .counts = replay->counts,
                                            .next = replay->next};
    summary->ending.count = 0;
    summary->acquired_count = 0;
    struct heap_block_observer observer = {summary, observe_acquired, observe_ended};
    heap_replay_observe_blocks(replay, &observer);
    return status;
}

/* Whether sums and changes are complete: no sum has saturated, and no heap was destroyed. The
 * blocks of a destroyed heap end without a change of their own. */
static bool summary_is_complete(const struct heap_summary *summary,
                                const struct heap_replay *replay)
{
    uint64_t before = summary->begin.counts.actions[TTD_ACTION_DESTROY];
    return summary->sums.by[HEAP_BY_STACK].bytes < UINT64_MAX &&
           replay->counts.actions[TTD_ACTION_DESTROY] == before;
}

/* Copies the blocks that were acquired in the summary's range and are still live. The record of a
 * block that was released may serve another block by now, hence the comparison of events. */
static enum ttd_status summary_copy_born(struct heap_summary *summary,
                                         const struct heap_replay *replay)
{
    const struct heap_live *live = &replay->live;
    enum ttd_status status = TTD_OK;
    summary->born.count = 0;
    for (size_t i = 0; i < summary->acquired_count && status == TTD_OK; i++) {
        const struct heap_born *born = &summary->acquired[i];
        if (i + AHEAD < summary->acquired_count)
            __builtin_prefetch(&live->blocks[born[AHEAD].record]);
        const struct heap_block *block = &live->blocks[born->record];
        if (block->event == born->event && heap_live_has(live, block))
            status = heap_block_copies_add(&summary->born, block, born->record);
    }
    return status;
}

enum ttd_status heap_summary_end(struct heap_summary *summary, struct heap_replay *replay,
                                 struct ttd_position end, bool *has_ended)
{
    *has_ended = summary->is_open && summary_is_complete(summary, replay);
    if (!*has_ended) {
        heap_summary_close(summary, replay);
        return TTD_OK;
    }
    summary->last_range = summary->begin;
    summary->last_range.end = end;
    /* The arrays change places, so that the next range can be observed while another thread writes
     * this one. */
    struct heap_block_copies ended = summary->ending;
    summary->ending = summary->ended;
    summary->ended = ended;
    return summary_copy_born(summary, replay);
}
