/* SPDX-License-Identifier: MIT */
#include "heap/diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* How often a heap was destroyed: in all, and before the range. */
typedef struct destructions {
    uint32_t all;
    uint32_t before;
} destructions;

/* `user` of a block: whether it was allocated inside, and how often its heap had been destroyed. */
#define INSIDE       1u
#define USER_LIFE(n) ((uint32_t)(n) << 1)

typedef struct diff_finder {
    heap_diff *diff;
    ttd_position from;
    destructions *heaps;
    size_t heap_count;
    size_t heap_capacity;
    hash_map by_heap;
} diff_finder;

static bool is_inside(const diff_finder *finder, ttd_position position)
{
    return ttd_position_compare(position, finder->from) >= 0;
}

static destructions destructions_of(const diff_finder *finder, ttd_id heap)
{
    uint32_t index = finder->heap_count ? map_get(&finder->by_heap, heap, 0) : MAP_NONE;
    return index == MAP_NONE ? (destructions){0, 0} : finder->heaps[index];
}

static ttd_status destroy(diff_finder *finder, const heap_effect *effect)
{
    uint32_t index = map_get(&finder->by_heap, effect->heap, 0);
    if (index == MAP_NONE) {
        index = (uint32_t)finder->heap_count;
        ttd_status status = grow_array((void **)&finder->heaps, &finder->heap_capacity,
                                       finder->heap_count + 1, sizeof *finder->heaps);
        if (status == TTD_OK)
            status = map_set(&finder->by_heap, effect->heap, 0, index);
        if (status != TTD_OK)
            return status;
        finder->heaps[finder->heap_count++] = (destructions){0, 0};
    }
    finder->heaps[index].all++;
    finder->heaps[index].before += !is_inside(finder, effect->position);
    return TTD_OK;
}

static ttd_status add(diff_finder *finder, const heap_block *block, bool is_freed)
{
    heap_quadrant quadrant = is_freed ? HEAP_AOFI : HEAP_AOFO;
    if (block->user & INSIDE)
        quadrant = is_freed ? HEAP_AIFI : HEAP_AIFO;
    return heap_groups_add(&finder->diff->quadrants[quadrant], block);
}

/*
 * A block of a heap that was destroyed, now or some time ago: the destruction that ended it is the
 * first one after its allocation.
 */
static ttd_status discard(diff_finder *finder, const heap_effect *effect)
{
    const heap_block *block = effect->block;
    destructions seen = destructions_of(finder, block->heap);
    bool is_under_way = block->user >> 1 == USER_LIFE(seen.all) >> 1;
    bool was_before =
        block->user >> 1 < seen.before || (is_under_way && !is_inside(finder, effect->position));
    return was_before ? TTD_OK : add(finder, block, true);
}

static ttd_status see_effect(void *context, const heap_effect *effect)
{
    diff_finder *finder = context;
    switch (effect->kind) {
    case HEAP_ACQUIRED:
        effect->block->user = USER_LIFE(destructions_of(finder, effect->block->heap).all) |
                              (is_inside(finder, effect->position) ? INSIDE : 0);
        return TTD_OK;
    case HEAP_RELEASED:
    case HEAP_OVERLAPPED:
        return is_inside(finder, effect->position) ? add(finder, effect->block, true) : TTD_OK;
    case HEAP_DESTROYED:
        return destroy(finder, effect);
    case HEAP_DISCARDED:
        return discard(finder, effect);
    case HEAP_UNKNOWN_RELEASE:
        break;
    }
    return TTD_OK;
}

static ttd_status finish(diff_finder *finder, heap_live *live)
{
    size_t cursor = 0;
    const heap_block *block;
    ttd_status status = TTD_OK;
    heap_live_sweep(live);
    while (status == TTD_OK && (block = heap_live_each(live, &cursor)))
        status = add(finder, block, false);
    return status;
}

ttd_status heap_diff_find(ttd_reader *reader, const heap_keyframes *keyframes, ttd_position from,
                          ttd_position last, heap_split split, const heap_batch_hook *hook,
                          heap_diff *diff, ttd_error *error)
{
    memset(diff, 0, sizeof *diff);
    for (size_t i = 0; i < HEAP_QUADRANTS; i++)
        heap_groups_init(&diff->quadrants[i]);
    for (size_t i = 0; i < HEAP_QUADRANTS; i++)
        diff->quadrants[i].split = split;
    diff_finder finder = {.diff = diff, .from = from};
    map_init(&finder.by_heap);
    heap_observer observer = {.context = &finder, .effect = see_effect};
    heap_pass pass;
    ttd_status status =
        heap_pass_run_range(&pass, reader, keyframes, from, last, &observer, hook, error);
    if (status == TTD_OK)
        status = finish(&finder, &pass.cursor.replay.live);
    if (status == TTD_OK)
        status = pass.cursor.replay.observer_status;
    heap_pass_end(&pass, &diff->outcome);
    for (size_t i = 0; i < HEAP_QUADRANTS; i++)
        heap_groups_sort(&diff->quadrants[i]);
    free(finder.heaps);
    map_free(&finder.by_heap);
    if (status != TTD_OK)
        heap_diff_free(diff);
    return status;
}

void heap_diff_free(heap_diff *diff)
{
    for (size_t i = 0; i < HEAP_QUADRANTS; i++)
        heap_groups_free(&diff->quadrants[i]);
}

const char *heap_quadrant_name(heap_quadrant quadrant)
{
    static const char *const names[HEAP_QUADRANTS] = {"aifi", "aifo", "aofi", "aofo"};
    return names[quadrant];
}
