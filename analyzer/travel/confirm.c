/* SPDX-License-Identifier: MIT */
#include "travel/confirm.h"

#include <stdlib.h>

#define KINDS TTD_KIND_BIT(TTD_KIND_EVENTS)

static int compare_events(const void *a, const void *b)
{
    const struct heap_block *const *x = a;
    const struct heap_block *const *y = b;
    return ((*x)->event > (*y)->event) - ((*x)->event < (*y)->event);
}

static bool confirm_is_acquired(const struct ttd_event *event, const struct heap_block *block)
{
    bool acquires = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
    return acquires && event->result && event->number == block->event &&
           event->address == block->address && event->size == block->size &&
           ttd_position_compare(event->time_end, block->allocated) == 0 &&
           event->stack == block->stack && event->thread == block->thread &&
           event->heap == block->heap && event->api == block->api;
}

static bool has_event(const struct ttd_batch *batch, uint64_t number)
{
    return batch->kind == TTD_KIND_EVENTS && batch->count && batch->u.events[0].number <= number &&
           number - batch->u.events[0].number < batch->count;
}

/* Whether an event comes later in the chunk of a batch. */
static bool is_ahead(const struct ttd_batch *batch, uint64_t number)
{
    uint64_t end = batch->chunk.first_record + batch->chunk.record_count;
    return batch->kind == TTD_KIND_EVENTS && batch->count && batch->u.events[0].number < number &&
           number < end;
}

/* Makes `batch`, which is the one that was read last or empty, the one with the event. */
static enum ttd_status confirm_go_to(struct ttd_reader *reader, uint64_t number,
                                     struct ttd_batch *batch, struct ttd_error *error)
{
    enum ttd_status status = TTD_OK;
    if (!has_event(batch, number) && !is_ahead(batch, number)) {
        batch->count = 0;
        status = ttd_reader_rewind(reader, KINDS);
        if (status == TTD_OK)
            status = ttd_reader_seek_event(reader, number, error);
        if (status == TTD_OK)
            status = ttd_reader_next(reader, batch, error);
    }
    while (status == TTD_OK && is_ahead(batch, number) && !has_event(batch, number))
        status = ttd_reader_next(reader, batch, error);
    if (status == TTD_OK)
        return has_event(batch, number) ? TTD_OK : TTD_ERROR_CORRUPT;
    return status == TTD_ERROR_IO || status == TTD_ERROR_NO_MEMORY ? status : TTD_ERROR_CORRUPT;
}

/* Finds the event that acquired a block; CORRUPT if it did not. Valid until the next batch. */
static enum ttd_status confirm_find_event(struct ttd_reader *reader, const struct heap_block *block,
                                          struct ttd_batch *batch, const struct ttd_event **event,
                                          struct ttd_error *error)
{
    enum ttd_status status = confirm_go_to(reader, block->event, batch, error);
    if (status != TTD_OK)
        return status;
    *event = &batch->u.events[block->event - batch->u.events[0].number];
    return confirm_is_acquired(*event, block) ? TTD_OK : TTD_ERROR_CORRUPT;
}

enum ttd_status heap_confirm_and_complete(struct ttd_reader *reader, struct heap_block *block,
                                          uint64_t *previous_address, enum heap_move *move,
                                          struct ttd_error *error)
{
    struct ttd_batch batch = {.count = 0};
    const struct ttd_event *event;
    enum ttd_status status = confirm_find_event(reader, block, &batch, &event, error);
    if (status != TTD_OK)
        return status;
    block->action = event->action;
    *previous_address = event->action == TTD_ACTION_REALLOC ? event->base_address : 0;
    *move = heap_move_of(event->api, event->flags, *previous_address, event->address);
    return TTD_OK;
}

enum ttd_status heap_confirm_blocks(struct ttd_reader *reader, const struct heap_block *blocks,
                                    size_t count, struct ttd_error *error)
{
    /* In the order of their events, so that each chunk is decoded once. */
    const struct heap_block **sorted = malloc((count + 1) * sizeof *sorted);
    if (!sorted)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &blocks[i];
    qsort(sorted, count, sizeof *sorted, compare_events);
    struct ttd_batch batch = {.count = 0};
    enum ttd_status status = TTD_OK;
    const struct ttd_event *event;
    for (size_t i = 0; i < count && status == TTD_OK; i++)
        status = confirm_find_event(reader, sorted[i], &batch, &event, error);
    free(sorted);
    return status;
}
