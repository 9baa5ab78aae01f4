/* SPDX-License-Identifier: MIT */
#include "heap/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define LEAKS_KINDS (HEAP_CURSOR_KINDS | TTD_KIND_BIT(TTD_KIND_LIVE_BLOCKS))

typedef struct leak_finder {
    heap_leaks *leaks;
    const heap_batch_hook *hook;
    /** Loss records were read beforehand; only those that the reader makes up are news. */
    bool has_losses;
    /** Addresses that a runtime list names. */
    hash_map runtime;
    /** Blocks at them that were live at the position asked for. */
    heap_block *candidates;
    size_t candidate_count;
    size_t candidate_capacity;
} leak_finder;

static ttd_status add_runtime_list(leak_finder *finder, const ttd_live_blocks *list)
{
    ttd_status status = TTD_OK;
    if (list->list != TTD_BLOCKS_RUNTIME)
        return TTD_OK;
    finder->leaks->has_runtime = true;
    for (size_t i = 0; i < list->count && status == TTD_OK; i++)
        status = map_set(&finder->runtime, list->blocks[i].address, 0, 1);
    return status;
}

static ttd_status see_batch(void *context, const ttd_batch *batch)
{
    leak_finder *finder = context;
    ttd_status status = TTD_OK;
    if (batch->kind == TTD_KIND_LOSSES && (batch->made_up || !finder->has_losses))
        heap_losses_add(&finder->leaks->losses, batch);
    for (size_t i = 0; batch->kind == TTD_KIND_LIVE_BLOCKS && i < batch->count; i++) {
        if (status == TTD_OK)
            status = add_runtime_list(finder, &batch->u.live_blocks[i]);
    }
    if (status == TTD_OK && finder->hook)
        status = finder->hook->batch(finder->hook->context, batch);
    return status;
}

/*
 * Runtime lists come last in a trace, and losses may be recorded long after they happened: what is
 * asked for an earlier position needs them beforehand, and what is not read through as well.
 */
static ttd_status read_beforehand(leak_finder *finder, ttd_reader *reader, ttd_error *error)
{
    ttd_status status = ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_LIVE_BLOCKS) |
                                                      TTD_KIND_BIT(TTD_KIND_LOSSES));
    while (status == TTD_OK) {
        ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
        if (status != TTD_OK)
            break;
        if (batch.kind == TTD_KIND_LOSSES && !batch.made_up)
            heap_losses_add(&finder->leaks->losses, &batch);
        for (size_t i = 0; batch.kind == TTD_KIND_LIVE_BLOCKS && i < batch.count; i++) {
            if (status == TTD_OK)
                status = add_runtime_list(finder, &batch.u.live_blocks[i]);
        }
    }
    finder->has_losses = true;
    return status == TTD_END || status == TTD_ERROR_TRUNCATED ? TTD_OK : status;
}

static ttd_status collect(leak_finder *finder, const heap_replay *replay)
{
    size_t cursor = 0;
    const heap_block *block;
    while ((block = heap_live_each(&replay->live, &cursor))) {
        ttd_status status;
        if (map_get(&finder->runtime, block->address, 0) == MAP_NONE) {
            status = heap_groups_add(&finder->leaks->groups, block);
        } else {
            status = grow_array((void **)&finder->candidates, &finder->candidate_capacity,
                                finder->candidate_count + 1, sizeof *finder->candidates);
            if (status == TTD_OK)
                finder->candidates[finder->candidate_count++] = *block;
        }
        if (status != TTD_OK)
            return status;
    }
    return TTD_OK;
}

/* A candidate belongs to a runtime if it is the same block that is there at the end. */
static ttd_status judge_candidates(leak_finder *finder, const heap_replay *replay)
{
    ttd_status status = TTD_OK;
    for (size_t i = 0; i < finder->candidate_count && status == TTD_OK; i++) {
        const heap_block *candidate = &finder->candidates[i];
        const heap_block *last = heap_live_find(&replay->live, candidate->address);
        bool kept = last && last->event == candidate->event;
        status =
            heap_groups_add(kept ? &finder->leaks->runtime : &finder->leaks->groups, candidate);
    }
    return status;
}

static ttd_status find(leak_finder *finder, heap_cursor *cursor, ttd_position at, ttd_error *error)
{
    heap_leaks *leaks = finder->leaks;
    ttd_status status = heap_cursor_seek(cursor, at, error);
    if (status != TTD_OK)
        return status;
    leaks->position = cursor->replay.position;
    leaks->counts = cursor->replay.counts;
    leaks->in_flight = cursor->replay.queue.count;
    leaks->reached_end = cursor->at_end && !cursor->count;
    status = collect(finder, &cursor->replay);
    if (status == TTD_OK && finder->candidate_count)
        status = heap_cursor_seek(cursor, ttd_position_max(), error);
    if (status == TTD_OK)
        status = judge_candidates(finder, &cursor->replay);
    leaks->truncated = cursor->truncated;
    leaks->error = cursor->error;
    return status;
}

ttd_status heap_leaks_find(ttd_reader *reader, const heap_keyframes *keyframes, ttd_position at,
                           heap_split split, const heap_batch_hook *hook, heap_leaks *leaks,
                           ttd_error *error)
{
    memset(leaks, 0, sizeof *leaks);
    heap_groups_init(&leaks->groups);
    heap_groups_init(&leaks->runtime);
    leaks->groups.split = split;
    leaks->runtime.split = split;
    leak_finder finder = {.leaks = leaks, .hook = hook};
    map_init(&finder.runtime);
    heap_batch_hook own = {&finder, see_batch};
    heap_cursor cursor = {0};
    ttd_status status = TTD_OK;
    if (keyframes || ttd_position_compare(at, ttd_position_max()) < 0)
        status = read_beforehand(&finder, reader, error);
    if (status == TTD_OK)
        status = heap_cursor_init(&cursor, reader, LEAKS_KINDS, keyframes, NULL, &own);
    if (status == TTD_OK)
        status = find(&finder, &cursor, at, error);
    heap_cursor_free(&cursor);
    map_free(&finder.runtime);
    free(finder.candidates);
    heap_groups_sort(&leaks->groups);
    heap_groups_sort(&leaks->runtime);
    if (status != TTD_OK)
        heap_leaks_free(leaks);
    return status;
}

void heap_leaks_free(heap_leaks *leaks)
{
    heap_groups_free(&leaks->groups);
    heap_groups_free(&leaks->runtime);
}
