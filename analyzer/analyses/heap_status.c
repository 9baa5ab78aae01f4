/* SPDX-License-Identifier: MIT */
#include "analyses/heap_status.h"

#include <stdlib.h>

#include "base/grow.h"

void heap_status_table_init(struct heap_status_table *all)
{
    *all = (struct heap_status_table){0};
    map_init(&all->by_heap);
    map_init(&all->by_thread);
}

void heap_status_table_free(struct heap_status_table *all)
{
    free(all->items);
    free(all->holds);
    map_free(&all->by_heap);
    map_free(&all->by_thread);
    *all = (struct heap_status_table){0};
}

static struct heap_status *find(const struct heap_status_table *all, ttd_id heap)
{
    uint32_t index = all->count ? map_get(&all->by_heap, heap, 0) : MAP_NONE;
    return index == MAP_NONE ? NULL : &all->items[index];
}

const struct heap_status *heap_status_table_of(const struct heap_status_table *all, ttd_id heap)
{
    return find(all, heap);
}

static enum ttd_status obtain(struct heap_status_table *all, ttd_id heap,
                              struct heap_status **condition)
{
    *condition = find(all, heap);
    if (*condition)
        return TTD_OK;
    enum ttd_status status =
        grow_array((void **)&all->items, &all->capacity, all->count + 1, sizeof *all->items);
    if (status == TTD_OK)
        status = map_set(&all->by_heap, heap, 0, (uint32_t)all->count);
    if (status != TTD_OK)
        return status;
    *condition = &all->items[all->count++];
    **condition = (struct heap_status){.heap = heap,
                                       .destroyed = heap_call_none(),
                                       .read_only = heap_call_none(),
                                       .first_hold = HEAP_NO_HOLD,
                                       .last_hold = HEAP_NO_HOLD};
    return TTD_OK;
}

enum ttd_status heap_status_table_change(struct heap_status_table *all,
                                         const struct ttd_event *event)
{
    struct heap_status *condition;
    enum ttd_status status = obtain(all, event->heap, &condition);
    if (status != TTD_OK)
        return status;
    if (event->action == TTD_ACTION_PROTECT) {
        condition->read_only = event->make_read_only ? heap_call_of_event(event) : heap_call_none();
        return TTD_OK;
    }
    condition->life++;
    condition->first_hold = condition->last_hold = HEAP_NO_HOLD;
    condition->read_only = heap_call_none();
    condition->destroyed =
        event->action == TTD_ACTION_DESTROY ? heap_call_of_event(event) : heap_call_none();
    return TTD_OK;
}

bool heap_hold_is_active(const struct heap_status_table *all, const struct heap_hold *hold)
{
    const struct heap_status *condition = find(all, hold->heap);
    return hold->depth && hold->life == (condition ? condition->life : 0);
}

/* Where the link to what comes after a hold is, and to what comes before one. */
static uint32_t *link_after(struct heap_status_table *all, struct heap_status *condition,
                            uint32_t hold)
{
    return hold == HEAP_NO_HOLD ? &condition->first_hold : &all->holds[hold].after;
}

static uint32_t *link_before(struct heap_status_table *all, struct heap_status *condition,
                             uint32_t hold)
{
    return hold == HEAP_NO_HOLD ? &condition->last_hold : &all->holds[hold].before;
}

static void append(struct heap_status_table *all, struct heap_status *condition, uint32_t index)
{
    all->holds[index].before = condition->last_hold;
    all->holds[index].after = HEAP_NO_HOLD;
    *link_after(all, condition, condition->last_hold) = index;
    condition->last_hold = index;
}

static void take_out(struct heap_status_table *all, struct heap_status *condition, uint32_t index)
{
    const struct heap_hold *hold = &all->holds[index];
    *link_after(all, condition, hold->before) = hold->after;
    *link_before(all, condition, hold->after) = hold->before;
}

/* The thread's hold of the heap, perhaps not active. */
static enum ttd_status obtain_hold(struct heap_status_table *all, const struct ttd_event *event,
                                   uint32_t *index)
{
    *index = map_get(&all->by_thread, event->heap, event->thread);
    if (*index != MAP_NONE)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&all->holds, &all->hold_capacity,
                                        all->hold_count + 1, sizeof *all->holds);
    *index = (uint32_t)all->hold_count;
    if (status == TTD_OK)
        status = map_set(&all->by_thread, event->heap, event->thread, *index);
    if (status == TTD_OK)
        all->holds[all->hold_count++] = (struct heap_hold){.heap = event->heap};
    return status;
}

enum ttd_status heap_status_table_lock(struct heap_status_table *all, const struct ttd_event *event)
{
    struct heap_status *condition;
    uint32_t index;
    enum ttd_status status = obtain(all, event->heap, &condition);
    if (status == TTD_OK)
        status = obtain_hold(all, event, &index);
    if (status != TTD_OK)
        return status;
    struct heap_hold *hold = &all->holds[index];
    if (!heap_hold_is_active(all, hold)) {
        *hold = (struct heap_hold){
            .heap = event->heap, .life = condition->life, .locked = heap_call_of_event(event)};
        append(all, condition, index);
    }
    hold->depth++;
    return TTD_OK;
}

bool heap_status_table_unlock(struct heap_status_table *all, const struct ttd_event *event)
{
    uint32_t index = map_get(&all->by_thread, event->heap, event->thread);
    if (index == MAP_NONE || !heap_hold_is_active(all, &all->holds[index]))
        return false;
    if (--all->holds[index].depth == 0)
        take_out(all, find(all, event->heap), index);
    return true;
}

const struct heap_hold *heap_status_table_held(const struct heap_status_table *all, ttd_id heap)
{
    const struct heap_status *condition = find(all, heap);
    if (!condition || condition->first_hold == HEAP_NO_HOLD)
        return NULL;
    return &all->holds[condition->first_hold];
}
