/* SPDX-License-Identifier: MIT */
#include "travel/islands.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static bool islands_passes(const struct heap_island_filter *filter, const uint8_t client[16],
                           uint64_t activity)
{
    return (!filter->has_client || memcmp(client, filter->client, sizeof filter->client) == 0) &&
           (!filter->has_activity || activity == filter->activity);
}

static bool passes_nobody(const struct heap_island_filter *filter)
{
    static const uint8_t nobody[16];
    return islands_passes(filter, nobody, 0);
}

static enum ttd_status islands_add_mark(struct heap_islands *islands, const struct heap_mark *mark)
{
    bool begins = mark->kind == HEAP_MARK_STARTED;
    if ((!begins && mark->kind != HEAP_MARK_STOPPED) || !mark->event->thread)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&islands->items, &islands->capacity,
                                        islands->count + 1, sizeof *islands->items);
    if (status != TTD_OK)
        return status;
    islands->items[islands->count++] = (struct heap_island){
        .thread = mark->event->thread,
        .begin = mark->event->position,
        .is_wanted = begins ? islands_passes(&islands->filter, mark->client, mark->activity)
                            : passes_nobody(&islands->filter)};
    return TTD_OK;
}

static int islands_compare(const void *a, const void *b)
{
    const struct heap_island *x = a;
    const struct heap_island *y = b;
    return x->thread != y->thread ? (x->thread > y->thread) - (x->thread < y->thread)
                                  : ttd_position_compare(x->begin, y->begin);
}

enum ttd_status heap_islands_read(const struct heap_trace *trace,
                                  const struct heap_island_filter *filter,
                                  struct heap_islands *islands, struct ttd_error *error)
{
    *islands = (struct heap_islands){.filter = *filter};
    enum ttd_status status = ttd_reader_rewind(trace->reader, TTD_KIND_BIT(TTD_KIND_USER_EVENTS));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, error);
        for (size_t i = 0;
             status == TTD_OK && batch.kind == TTD_KIND_USER_EVENTS && i < batch.count; i++) {
            struct heap_mark mark = heap_mark_of(&batch.u.user_events[i]);
            status = islands_add_mark(islands, &mark);
        }
    }
    if (islands->count)
        qsort(islands->items, islands->count, sizeof *islands->items, islands_compare);
    if (heap_is_over(status))
        return TTD_OK;
    heap_islands_free(islands);
    return status;
}

void heap_islands_free(struct heap_islands *islands)
{
    free(islands->items);
    *islands = (struct heap_islands){.items = NULL};
}

bool heap_islands_want(const struct heap_islands *islands, ttd_id thread,
                       struct ttd_position position)
{
    struct heap_island key = {.thread = thread, .begin = position};
    size_t first = 0, count = islands->count;
    while (count) {
        size_t half = count / 2;
        bool is_before = islands_compare(&islands->items[first + half], &key) <= 0;
        first += is_before ? half + 1 : 0;
        count = is_before ? count - half - 1 : half;
    }
    const struct heap_island *island = first ? &islands->items[first - 1] : NULL;
    return island && island->thread == thread ? island->is_wanted : passes_nobody(&islands->filter);
}

bool heap_islands_have_any(const struct heap_islands *islands)
{
    for (size_t i = 0; i < islands->count; i++)
        if (islands->items[i].is_wanted)
            return true;
    return passes_nobody(&islands->filter);
}
