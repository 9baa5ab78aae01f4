/* SPDX-License-Identifier: MIT */
#include "heap/summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* Blocks whose records are fetched before they are needed. */
#define AHEAD 12

void heap_summary_close(heap_summary *summary)
{
    if (summary->is_open)
        heap_tables_free(&summary->sums);
    free(summary->blocks);
    heap_copies_free(&summary->ended);
    heap_copies_free(&summary->born);
    *summary = (heap_summary){.is_open = false};
}

/* ---- Sums of what is live ---- */

static ttd_status add(heap_summary *summary, const heap_block *block, uint32_t record)
{
    ttd_status status = grow_array((void **)&summary->blocks, &summary->block_capacity,
                                   (size_t)record + 1, sizeof *summary->blocks);
    if (status == TTD_OK)
        status = heap_tables_add(&summary->sums, block);
    if (status != TTD_OK)
        return status;
    for (; summary->block_count <= record; summary->block_count++)
        summary->blocks[summary->block_count] = (heap_summed){.is_live = false};
    summary->blocks[record] =
        (heap_summed){block->allocated, summary->sums.by[HEAP_BY_STACK].latest, true};
    return TTD_OK;
}

static ttd_status add_all(heap_summary *summary, const heap_live *live)
{
    size_t cursor = 0;
    const heap_block *block;
    ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(live, &cursor)))
        status = add(summary, block, (uint32_t)(block - live->blocks));
    return status;
}

static ttd_status add_born(heap_summary *summary)
{
    const heap_copies *born = &summary->born;
    ttd_status status = TTD_OK;
    for (size_t i = 0; i < born->count && status == TTD_OK; i++)
        status = add(summary, &born->blocks[i], born->records[i]);
    return status;
}

static void subtract_ended(heap_summary *summary)
{
    const heap_copies *ended = &summary->ended;
    for (size_t i = 0; i < ended->count; i++) {
        for (size_t j = 0; j < HEAP_TABLES; j++)
            heap_groups_subtract(&summary->sums.by[j], &ended->blocks[i]);
        summary->blocks[ended->records[i]].is_live = false;
    }
}

/* Finds first and last positions that are unknown since a block ended. */
static ttd_status find_positions(heap_summary *summary)
{
    heap_groups *groups = &summary->sums.by[HEAP_BY_STACK];
    bool *is_unknown = malloc(groups->count * sizeof *is_unknown + 1);
    if (!is_unknown)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < groups->count; i++)
        is_unknown[i] = heap_group_is_unknown(&groups->items[i]);
    for (size_t i = 0; i < summary->block_count; i++) {
        const heap_summed *block = &summary->blocks[i];
        if (is_unknown[block->place] && block->is_live)
            heap_group_widen(&groups->items[block->place], block->allocated);
    }
    free(is_unknown);
    return TTD_OK;
}

/* ---- Writing ---- */

static ttd_status write_record(const heap_keyframe *keyframe, ttd_writer *writer)
{
    char text[HEAP_RECORD_MAX];
    ttd_metadata record = {.key = {HEAP_SUMMARY_KEY, strlen(HEAP_SUMMARY_KEY)},
                           .value = {text, heap_keyframe_print(keyframe, text)}};
    return ttd_writer_metadata(writer, &record);
}

static uint64_t count_sums(heap_tables *sums)
{
    uint64_t count = 0;
    for (size_t i = 0; i < HEAP_TABLES; i++) {
        const heap_groups *groups = &sums->by[i];
        for (size_t j = 0; j < groups->count; j++)
            count += groups->items[j].blocks != 0;
    }
    return count;
}

static ttd_status write_sums(heap_tables *sums, ttd_position position, ttd_writer *writer)
{
    char text[HEAP_RECORD_MAX];
    ttd_user_event record = {.position = position, .data = (const uint8_t *)text};
    ttd_status status = TTD_OK;
    memcpy(record.client, HEAP_SUMS_CLIENT, sizeof record.client);
    for (size_t i = 0; i < HEAP_TABLES; i++) {
        const heap_groups *groups = &sums->by[i];
        for (size_t j = 0; j < groups->count && status == TTD_OK; j++) {
            if (!groups->items[j].blocks)
                continue;
            record.size = heap_sums_print(i, &groups->items[j], text);
            status = ttd_writer_user_event(writer, &record);
        }
    }
    /* Those of the next summary begin a chunk. */
    return status == TTD_OK ? ttd_writer_flush(writer) : status;
}

static ttd_status write(heap_summary *summary, heap_lister *lister)
{
    heap_keyframe *keyframe = &summary->done;
    keyframe->blocks = summary->ended.count;
    keyframe->sums = count_sums(&summary->sums);
    ttd_status status = write_record(keyframe, lister->writer);
    if (status == TTD_OK)
        status = write_sums(&summary->sums, keyframe->position, lister->writer);
    if (status != TTD_OK || !keyframe->blocks)
        return status;
    return heap_list_blocks(lister, keyframe->position, summary->ended.blocks,
                            summary->ended.count);
}

ttd_status heap_summary_write(heap_summary *summary, heap_lister *lister)
{
    subtract_ended(summary);
    ttd_status status = find_positions(summary);
    if (status == TTD_OK)
        status = write(summary, lister);
    return status == TTD_OK ? add_born(summary) : status;
}

/* ---- Begin and end ---- */

ttd_status heap_summary_begin(heap_summary *summary, heap_replay *replay)
{
    ttd_status status = TTD_OK;
    if (!summary->is_open) {
        heap_tables_init(&summary->sums);
        summary->is_open = true;
        status = add_all(summary, &replay->live);
    }
    summary->begin = (heap_keyframe){.is_summary = true,
                                     .position = replay->position,
                                     .counts = replay->counts,
                                     .next = replay->next};
    heap_replay_keep_changes(replay);
    return status;
}

/* Whether what is known of the beginning and of changes is all there is to know. */
static bool is_complete(const heap_summary *summary, const heap_replay *replay)
{
    uint64_t before = summary->begin.counts.actions[TTD_ACTION_DESTROY];
    return summary->sums.by[HEAP_BY_STACK].bytes < UINT64_MAX &&
           replay->counts.actions[TTD_ACTION_DESTROY] == before;
}

/* Those blocks acquired since that are still live. */
static ttd_status copy_born(heap_summary *summary, const heap_replay *replay)
{
    const heap_changes *changes = &replay->changes;
    const heap_live *live = &replay->live;
    ttd_status status = TTD_OK;
    summary->born.count = 0;
    for (size_t i = 0; i < changes->born_count && status == TTD_OK; i++) {
        const heap_born *born = &changes->born[i];
        if (i + AHEAD < changes->born_count)
            __builtin_prefetch(&live->blocks[born[AHEAD].record]);
        const heap_block *block = &live->blocks[born->record];
        if (block->event == born->event && heap_live_has(live, block))
            status = heap_copies_add(&summary->born, block, born->record);
    }
    return status;
}

ttd_status heap_summary_end(heap_summary *summary, heap_replay *replay, ttd_position end,
                            bool *has_ended)
{
    *has_ended = summary->is_open && is_complete(summary, replay);
    if (!*has_ended) {
        heap_summary_close(summary);
        return TTD_OK;
    }
    summary->done = summary->begin;
    summary->done.end = end;
    heap_copies ended = replay->changes.ended;
    replay->changes.ended = summary->ended;
    summary->ended = ended;
    return copy_born(summary, replay);
}
