/* SPDX-License-Identifier: MIT */
#include "analyses/heap_status.h"

#include <stdlib.h>

#include "base/grow.h"

void heap_status_table_init(struct heap_status_table *statuses)
{
    *statuses = (struct heap_status_table){0};
    map_init(&statuses->by_heap);
    map_init(&statuses->by_thread);
}

void heap_status_table_free(struct heap_status_table *statuses)
{
    free(statuses->items);
    free(statuses->holds);
    map_free(&statuses->by_heap);
    map_free(&statuses->by_thread);
    *statuses = (struct heap_status_table){0};
}

static struct heap_status *find(const struct heap_status_table *statuses, ttd_id heap)
{
    uint32_t index = statuses->count ? map_get(&statuses->by_heap, heap, 0) : MAP_NONE;
    return index == MAP_NONE ? NULL : &statuses->items[index];
}

const struct heap_status *heap_status_table_of(const struct heap_status_table *statuses,
                                               ttd_id heap)
{
    return find(statuses, heap);
}

static enum ttd_status obtain(struct heap_status_table *statuses, ttd_id heap,
                              struct heap_status **condition)
{
    *condition = find(statuses, heap);
    if (*condition)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&statuses->items, &statuses->capacity,
                                        statuses->count + 1, sizeof *statuses->items);
    if (status == TTD_OK)
        status = map_set(&statuses->by_heap, heap, 0, (uint32_t)statuses->count);
    if (status != TTD_OK)
        return status;
    *condition = &statuses->items[statuses->count++];
    **condition = (struct heap_status){.heap = heap,
                                       .destroyed = heap_call_none(),
                                       .read_only = heap_call_none(),
                                       .first_hold = HEAP_NO_HOLD,
                                       .last_hold = HEAP_NO_HOLD};
    return TTD_OK;
}

enum ttd_status heap_status_table_change(struct heap_status_table *statuses,
                                         const struct ttd_event *event)
{
    struct heap_status *condition;
    enum ttd_status status = obtain(statuses, event->heap, &condition);
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

bool heap_hold_is_active(const struct heap_status_table *statuses, const struct heap_hold *hold)
{
    const struct heap_status *condition = find(statuses, hold->heap);
    return hold->depth && hold->life == (condition ? condition->life : 0);
}

/* Where the link to what comes after a hold is, and to what comes before one. */
static uint32_t *link_after(struct heap_status_table *statuses, struct heap_status *condition,
                            uint32_t hold)
{
    return hold == HEAP_NO_HOLD ? &condition->first_hold : &statuses->holds[hold].after;
}

static uint32_t *link_before(struct heap_status_table *statuses, struct heap_status *condition,
                             uint32_t hold)
{
    return hold == HEAP_NO_HOLD ? &condition->last_hold : &statuses->holds[hold].before;
}

static void append(struct heap_status_table *statuses, struct heap_status *condition,
                   uint32_t index)
{
    statuses->holds[index].before = condition->last_hold;
    statuses->holds[index].after = HEAP_NO_HOLD;
    *link_after(statuses, condition, condition->last_hold) = index;
    condition->last_hold = index;
}

static void take_out(struct heap_status_table *statuses, struct heap_status *condition,
                     uint32_t index)
{
    const struct heap_hold *hold = &statuses->holds[index];
    *link_after(statuses, condition, hold->before) = hold->after;
    *link_before(statuses, condition, hold->after) = hold->before;
}

/* The thread's hold of the heap, perhaps not active. */
static enum ttd_status obtain_hold(struct heap_status_table *statuses,
                                   const struct ttd_event *event, uint32_t *index)
{
    *index = map_get(&statuses->by_thread, event->heap, event->thread);
    if (*index != MAP_NONE)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&statuses->holds, &statuses->hold_capacity,
                                        statuses->hold_count + 1, sizeof *statuses->holds);
    *index = (uint32_t)statuses->hold_count;
    if (status == TTD_OK)
        status = map_set(&statuses->by_thread, event->heap, event->thread, *index);
    if (status == TTD_OK)
        statuses->holds[statuses->hold_count++] = (struct heap_hold){.heap = event->heap};
    return status;
}

enum ttd_status heap_status_table_lock(struct heap_status_table *statuses,
                                       const struct ttd_event *event)
{
    struct heap_status *condition;
    uint32_t index;
    enum ttd_status status = obtain(statuses, event->heap, &condition);
    if (status == TTD_OK)
        status = obtain_hold(statuses, event, &index);
    if (status != TTD_OK)
        return status;
    struct heap_hold *hold = &statuses->holds[index];
    if (!heap_hold_is_active(statuses, hold)) {
        *hold = (struct heap_hold){
            .heap = event->heap, .life = condition->life, .locked = heap_call_of_event(event)};
        append(statuses, condition, index);
    }
    hold->depth++;
    return TTD_OK;
}

bool heap_status_table_unlock(struct heap_status_table *statuses, const struct ttd_event *event)
{
    uint32_t index = map_get(&statuses->by_thread, event->heap, event->thread);
    if (index == MAP_NONE || !heap_hold_is_active(statuses, &statuses->holds[index]))
        return false;
    if (--statuses->holds[index].depth == 0)
        take_out(statuses, find(statuses, event->heap), index);
    return true;
}

const struct heap_hold *heap_status_table_held(const struct heap_status_table *statuses,
                                               ttd_id heap)
{
    const struct heap_status *condition = find(statuses, heap);
    if (!condition || condition->first_hold == HEAP_NO_HOLD)
        return NULL;
    return &statuses->holds[condition->first_hold];
}
