/* SPDX-License-Identifier: MIT */
#include "analyses/reachability/earlier.h"

#include <stdlib.h>

#include "travel/replay_to.h"

struct earlier_search {
    struct heap_earlier *words;
    size_t count;
};

static int compare_earlier(const void *left, const void *right)
{
    const struct heap_earlier *a = left;
    const struct heap_earlier *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static enum ttd_status see_end(void *context, const struct heap_effect *effect)
{
    const struct earlier_search *search = context;
    const struct heap_block *block = effect->block;
    size_t low = 0, high = search->count;
    if (!block || effect->kind == HEAP_ACQUIRED)
        return TTD_OK;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (search->words[middle].address < block->address)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < search->count &&
           heap_block_covers(block, search->words[low].address, search->words[low].address);
         low++)
        search->words[low].owner =
            (struct heap_owner){.block = *block,
                                .released = heap_call_of_effect(effect),
                                .overlapped = effect->kind == HEAP_OVERLAPPED};
    return TTD_OK;
}

enum ttd_status heap_earlier_find(const struct heap_trace *trace, struct ttd_position until,
                                  struct heap_earlier *words, size_t count, struct ttd_error *error)
{
    struct earlier_search search = {words, count};
    struct heap_observer observer = {.context = &search,
                                     .effect = see_end,
                                     .unwanted = HEAP_EFFECT_BIT(HEAP_ACQUIRED) |
                                                 HEAP_EFFECT_BIT(HEAP_DESTROYED) |
                                                 HEAP_EFFECT_BIT(HEAP_UNKNOWN_RELEASE)};
    struct heap_route route = {.to = until, .observer = &observer};
    struct heap_arrival arrival;
    if (!count)
        return TTD_OK;
    qsort(words, count, sizeof *words, compare_earlier);
    for (size_t i = 0; i < count; i++)
        words[i].owner = (struct heap_owner){.released = heap_call_none()};
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    /* Blocks of destroyed heaps are told of now. */
    if (status == TTD_OK)
        heap_live_discard_stale(&arrival.cursor.replay.live);
    heap_arrival_free(&arrival);
    return status;
}
