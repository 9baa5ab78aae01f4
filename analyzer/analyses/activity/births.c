/* SPDX-License-Identifier: MIT */
#include "analyses/activity/births.h"

#include <stdlib.h>

#include "base/grow.h"

void births_init(struct births *births)
{
    *births = (struct births){.count = 0};
    map_init(&births->by_thread);
}

void births_free(struct births *births)
{
    free(births->thread_calls);
    map_free(&births->by_thread);
    free(births->births);
    free(births->unused);
}

static enum ttd_status thread_calls_of(struct births *births, ttd_id thread, uint64_t **calls)
{
    if (births->thread_count && thread == births->last_thread) {
        *calls = &births->thread_calls[births->last_index];
        return TTD_OK;
    }
    uint32_t index = map_get(&births->by_thread, thread, 0);
    if (index == MAP_NONE) {
        index = (uint32_t)births->thread_count;
        enum ttd_status status =
            grow_array((void **)&births->thread_calls, &births->thread_capacity,
                       births->thread_count + 1, sizeof *births->thread_calls);
        if (status == TTD_OK)
            status = map_set(&births->by_thread, thread, 0, index);
        if (status != TTD_OK)
            return status;
        births->thread_calls[births->thread_count++] = 0;
    }
    births->last_thread = thread;
    births->last_index = index;
    *calls = &births->thread_calls[index];
    return TTD_OK;
}

enum ttd_status births_see_call(struct births *births, const struct ttd_event *event)
{
    uint64_t *calls;
    if (event->wall_time > births->wall_time)
        births->wall_time = event->wall_time;
    enum ttd_status status = thread_calls_of(births, event->thread, &calls);
    if (status == TTD_OK)
        ++*calls;
    return status;
}

/* Takes an element that a block which has ended has left, if there is one. */
static enum ttd_status obtain(struct births *births, uint32_t *user)
{
    if (births->unused_count) {
        *user = births->unused[--births->unused_count];
        return TTD_OK;
    }
    enum ttd_status status = grow_array((void **)&births->births, &births->capacity,
                                        births->count + 1, sizeof *births->births);
    if (status == TTD_OK)
        *user = (uint32_t)++births->count;
    return status;
}

enum ttd_status births_add(struct births *births, const struct heap_effect *effect, uint32_t site)
{
    struct heap_block *block = effect->block;
    uint64_t *calls;
    enum ttd_status status = thread_calls_of(births, block->thread, &calls);
    if (status == TTD_OK)
        status = obtain(births, &block->user);
    if (status == TTD_OK)
        births->births[block->user - 1] =
            (struct birth){.wall_time = births->wall_time,
                           .thread_call = effect->previous_address ? 0 : *calls,
                           .site = site};
    return status;
}

enum ttd_status births_remove(struct births *births, const struct heap_block *block)
{
    enum ttd_status status = grow_array((void **)&births->unused, &births->unused_capacity,
                                        births->unused_count + 1, sizeof *births->unused);
    if (status == TTD_OK)
        births->unused[births->unused_count++] = block->user;
    return status;
}

enum ttd_status births_calls_since(struct births *births, const struct heap_block *block,
                                   uint64_t *calls)
{
    uint64_t allocation = births->births[block->user - 1].thread_call;
    uint64_t *thread_calls;
    *calls = UINT64_MAX;
    if (!allocation)
        return TTD_OK;
    enum ttd_status status = thread_calls_of(births, block->thread, &thread_calls);
    if (status == TTD_OK)
        *calls = *thread_calls - allocation - 1;
    return status;
}
