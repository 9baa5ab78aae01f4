/* SPDX-License-Identifier: MIT */
#include "heap/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

typedef struct leak_finder {
    heap_leaks *leaks;
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
    if (list->last)
        finder->leaks->runtime_told = HEAP_RUNTIME_TOLD;
    else if (finder->leaks->runtime_told == HEAP_RUNTIME_UNKNOWN)
        finder->leaks->runtime_told = HEAP_RUNTIME_CUT_SHORT;
    for (size_t i = 0; i < list->count && status == TTD_OK; i++)
        status = map_set(&finder->runtime, list->blocks[i].address, 0, 1);
    return status;
}

/* They come last in a trace, and are read from header to header. */
static ttd_status read_runtime_lists(leak_finder *finder, ttd_reader *reader, ttd_error *error)
{
    ttd_status status = ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_LIVE_BLOCKS));
    while (status == TTD_OK) {
        ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
        for (size_t i = 0;
             status == TTD_OK && batch.kind == TTD_KIND_LIVE_BLOCKS && i < batch.count; i++)
            status = add_runtime_list(finder, &batch.u.live_blocks[i]);
    }
    return heap_is_over(status) ? TTD_OK : status;
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

static ttd_status find(leak_finder *finder, heap_cursor *cursor, ttd_error *error)
{
    ttd_status status = collect(finder, &cursor->replay);
    if (status == TTD_OK && finder->candidate_count)
        status = heap_cursor_seek(cursor, ttd_position_max(), error);
    return status == TTD_OK ? judge_candidates(finder, &cursor->replay) : status;
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
    leak_finder finder = {.leaks = leaks};
    map_init(&finder.runtime);
    heap_pass pass = {.hook = NULL};
    ttd_status status = read_runtime_lists(&finder, reader, error);
    if (status == TTD_OK)
        status = heap_pass_run(&pass, reader, keyframes, at, NULL, hook, error);
    leaks->outcome = heap_pass_outcome(&pass);
    if (status == TTD_OK)
        status = find(&finder, &pass.cursor, error);
    heap_pass_free(&pass);
    map_free(&finder.runtime);
    free(finder.candidates);
    if (status == TTD_OK)
        status = heap_groups_sort(&leaks->groups);
    if (status == TTD_OK)
        status = heap_groups_sort(&leaks->runtime);
    if (status != TTD_OK)
        heap_leaks_free(leaks);
    return status;
}

void heap_leaks_free(heap_leaks *leaks)
{
    heap_groups_free(&leaks->groups);
    heap_groups_free(&leaks->runtime);
}
