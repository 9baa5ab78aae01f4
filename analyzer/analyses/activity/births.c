/* SPDX-License-Identifier: MIT */
#include "analyses/activity/births.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/table.h"

#define FIRST_CAPACITY 1024

void births_init(struct births *births)
{
    *births = (struct births){.thread_count = 0};
    map_init(&births->by_thread);
}

void births_free(struct births *births)
{
    free(births->thread_calls);
    map_free(&births->by_thread);
    table_free(births->births, births->capacity * sizeof *births->births);
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

/* Makes room for the birth of a record. */
static enum ttd_status births_make_room(struct births *births, uint32_t record)
{
    size_t capacity = births->capacity ? births->capacity : FIRST_CAPACITY;
    while (capacity <= record)
        capacity = table_next(capacity, sizeof *births->births);
    if (capacity == births->capacity)
        return TTD_OK;
    struct birth *grown = table_resize(births->births, births->capacity * sizeof *births->births,
                                       capacity * sizeof *births->births);
    if (!grown)
        return TTD_ERROR_NO_MEMORY;
    births->births = grown;
    births->capacity = capacity;
    return TTD_OK;
}

enum ttd_status births_put(struct births *births, uint32_t record, const struct birth *birth)
{
    enum ttd_status status = births_make_room(births, record);
    if (status == TTD_OK)
        births->births[record] = *birth;
    return status;
}

enum ttd_status births_add(struct births *births, const struct heap_effect *effect, uint32_t site)
{
    uint64_t *calls;
    enum ttd_status status = births_calls_of(births, effect->thread, &calls);
    if (status != TTD_OK)
        return status;
    return births_put(births, effect->record,
                      &(struct birth){.wall_time = effect->wall_time,
                                      .thread_call = effect->previous_address ? 0 : *calls,
                                      .site = site});
}
