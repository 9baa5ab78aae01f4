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
}

enum ttd_status births_find_thread(struct births *births, ttd_id thread)
{
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
    return TTD_OK;
}

/* Takes an element that a block which has ended has left, if there is one. */
static enum ttd_status obtain(struct births *births, uint32_t *user)
{
    if (births->unused) {
        *user = births->unused;
        births->unused = births->births[*user - 1].site;
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
    enum ttd_status status = births_calls_of(births, block->thread, &calls);
    if (status == TTD_OK)
        status = obtain(births, &block->user);
    if (status == TTD_OK)
        births->births[block->user - 1] =
            (struct birth){.wall_time = births->wall_time,
                           .thread_call = effect->previous_address ? 0 : *calls,
                           .site = site};
    return status;
}
