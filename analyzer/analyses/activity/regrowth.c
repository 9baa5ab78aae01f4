/* SPDX-License-Identifier: MIT */
#include "analyses/activity/regrowth.h"

#include <stdlib.h>

#include "analyses/activity/growth.h"
#include "base/grow.h"

/* An allocation; none if its size is 0. */
struct allocation {
    uint64_t event;
    uint64_t size;
    ttd_id stack;
    ttd_id heap;
    bool is_wanted;
    /* Number among the thread's calls. */
    uint64_t call;
};

/* The last calls of a thread, by their number modulo REGROWTH_CALLS. */
struct regrowth_recent {
    uint64_t calls;
    struct allocation last[REGROWTH_CALLS];
};

void regrowth_init(struct regrowth_finder *finder, struct heap_move_table *regrown,
                   enum heap_split split, const struct heap_islands *islands)
{
    *finder = (struct regrowth_finder){.regrown = regrown, .split = split, .islands = islands};
    map_init(&finder->threads);
}

void regrowth_free(struct regrowth_finder *finder)
{
    map_free(&finder->threads);
    free(finder->recent);
    *finder = (struct regrowth_finder){.count = 0};
}

static enum ttd_status find_recent(struct regrowth_finder *finder, ttd_id thread,
                                   struct regrowth_recent **recent)
{
    uint32_t index = map_get(&finder->threads, thread, 0);
    if (index == MAP_NONE) {
        enum ttd_status status = grow_array((void **)&finder->recent, &finder->capacity,
                                            finder->count + 1, sizeof *finder->recent);
        if (status == TTD_OK)
            status = map_set(&finder->threads, thread, 0, (uint32_t)finder->count);
        if (status != TTD_OK)
            return status;
        index = (uint32_t)finder->count++;
        finder->recent[index] = (struct regrowth_recent){.calls = 0};
    }
    *recent = &finder->recent[index];
    return TTD_OK;
}

static void see_allocation(const struct regrowth_finder *finder, struct regrowth_recent *recent,
                           const struct heap_block *block)
{
    struct allocation *record = &recent->last[recent->calls % REGROWTH_CALLS];
    /* Every call takes a slot, also one that can be no successor: otherwise "soon" would mean
     * longer for threads that reallocate a lot. */
    bool is_new = block->action == TTD_ACTION_ALLOC && block->stack != TTD_NONE;
    *record = (struct allocation){.size = 0};
    if (is_new)
        *record = (struct allocation){.event = block->event,
                                      .size = block->size,
                                      .stack = block->stack,
                                      .heap = block->heap,
                                      .is_wanted = heap_islands_want_block(finder->islands, block),
                                      .call = recent->calls};
}

/* The allocation that a released block's contents were copied to, or NULL. */
static struct allocation *find_successor(struct regrowth_recent *recent,
                                         const struct heap_block *old)
{
    struct allocation *successor = NULL;
    for (size_t i = 0; i < REGROWTH_CALLS; i++) {
        struct allocation *record = &recent->last[i];
        if (record->size > old->size && record->stack == old->stack && record->heap == old->heap &&
            record->event > old->event && (!successor || record->call > successor->call))
            successor = record;
    }
    return successor;
}

/* A block that is released is nobody's successor any more. */
static void forget(struct regrowth_recent *recent, uint64_t event)
{
    for (size_t i = 0; i < REGROWTH_CALLS; i++) {
        if (recent->last[i].event == event)
            recent->last[i] = (struct allocation){.size = 0};
    }
}

static enum ttd_status see_release(struct regrowth_finder *finder, struct regrowth_recent *recent,
                                   const struct heap_block *old)
{
    recent->last[recent->calls % REGROWTH_CALLS] = (struct allocation){.size = 0};
    struct allocation *successor = NULL;
    if (old->action == TTD_ACTION_ALLOC && old->stack != TTD_NONE)
        successor = find_successor(recent, old);
    if (!successor)
        return TTD_OK;
    uint64_t size = successor->size;
    /* A block succeeds one other block only; size 0 is smaller than every release. */
    successor->size = 0;
    if (!successor->is_wanted)
        return TTD_OK;
    struct heap_move_group *group;
    enum ttd_status status =
        heap_move_table_find(finder->regrown, heap_key_of_block(finder->split, old), &group);
    if (status != TTD_OK)
        return status;
    struct heap_move_counts *sums[] = {&group->counts, &finder->regrown->total};
    for (size_t i = 0; i < 2; i++) {
        sums[i]->reallocs++;
        sums[i]->moved++;
        sums[i]->bytes_copied = heap_add(sums[i]->bytes_copied, old->size);
    }
    heap_growth_add(group, old->size, size);
    return TTD_OK;
}

enum ttd_status regrowth_see(struct regrowth_finder *finder, const struct heap_effect *effect)
{
    struct regrowth_recent *recent;
    if (effect->kind != HEAP_ACQUIRED && effect->kind != HEAP_RELEASED)
        return TTD_OK;
    enum ttd_status status = find_recent(finder, effect->thread, &recent);
    if (status != TTD_OK)
        return status;
    if (effect->kind == HEAP_RELEASED)
        forget(recent, effect->block->event);
    if (effect->kind == HEAP_ACQUIRED)
        see_allocation(finder, recent, effect->block);
    else if (effect->action == TTD_ACTION_FREE)
        status = see_release(finder, recent, effect->block);
    /* A reallocation is one call, which ends when it has acquired. */
    recent->calls += effect->kind == HEAP_ACQUIRED || effect->action == TTD_ACTION_FREE;
    return status;
}
