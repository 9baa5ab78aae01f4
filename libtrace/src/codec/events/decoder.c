/* SPDX-License-Identifier: MIT */
#include "codec/events/decoder.h"

#include <string.h>

#include "base/memory.h"
#include "codec/columns.h"

void ttd_events_decoder_init(struct ttd_events_decoder *decoder,
                             const struct ttd_allocator *allocator, size_t batches)
{
    memset(decoder, 0, sizeof *decoder);
    decoder->buffer_count = batches;
    ttd_event_state_init(&decoder->state, allocator);
    ttd_map_init(&decoder->threads, allocator);
}

void ttd_events_decoder_free(struct ttd_events_decoder *decoder)
{
    const struct ttd_allocator *allocator = decoder->state.allocator;
    if (!allocator)
        return;
    ttd_release(allocator, decoder->buffers);
    ttd_release(allocator, decoder->prototypes);
    ttd_release(allocator, decoder->addresses.spelled);
    ttd_release(allocator, decoder->addresses.freed.items);
    ttd_release(allocator, decoder->addresses.allocated.items);
    ttd_map_free(&decoder->threads);
    ttd_event_state_free(&decoder->state);
}

static bool reserve_list(const struct ttd_allocator *allocator, struct ttd_ordinal_list *list,
                         size_t count)
{
    void *items = list->items;
    list->count = 0;
    if (ttd_grow_array_zeroed(allocator, &items, &list->capacity, count + TTD_ORDINAL_BLOCK + 1,
                              sizeof *list->items))
        return false;
    list->items = items;
    return true;
}

/** Empties the lists and makes room for what the columns can hold. False without memory. */
static bool decoder_reserve_addresses(struct ttd_events_decoder *decoder, size_t events)
{
    struct ttd_event_addresses *addresses = &decoder->addresses;
    const struct ttd_allocator *allocator = decoder->state.allocator;
    size_t spelled = ttd_cursor_left(&decoder->columns[TTD_COLUMN_RELEASED_EXPLICIT]) +
                     ttd_cursor_left(&decoder->columns[TTD_COLUMN_ACQUIRED_EXPLICIT]);
    void *array = addresses->spelled;
    addresses->count = 0;
    /* More: reading past the end of a column gives addresses, too, before it is noticed. */
    if (ttd_grow_array(allocator, &array, &addresses->capacity, spelled + TTD_EVENT_ADDRESSES,
                       sizeof *addresses->spelled))
        return false;
    addresses->spelled = array;
    return reserve_list(allocator, &addresses->freed, events) &&
           reserve_list(allocator, &addresses->allocated, events);
}

static bool reserve_buffers(struct ttd_events_decoder *decoder)
{
    if (!decoder->buffers)
        decoder->buffers = ttd_allocate_zeroed(decoder->state.allocator,
                                               decoder->buffer_count * sizeof *decoder->buffers);
    return decoder->buffers;
}

/** Moves the first error of a column to the decoder; true if there is one. */
static bool column_errors(struct ttd_events_decoder *decoder)
{
    for (size_t i = 0; i < TTD_COLUMN_COUNT && !decoder->error; i++)
        decoder->error = decoder->columns[i].error;
    return decoder->error != NULL;
}

uint64_t ttd_events_next_gap(struct ttd_events_decoder *decoder, enum ttd_column column,
                             uint64_t number)
{
    struct ttd_cursor *cursor = &decoder->columns[column];
    if (cursor->next == cursor->end)
        return TTD_NO_EVENT;
    uint64_t gap = ttd_cursor_varint_max(cursor, TTD_RECORDS_MAX);
    return gap < TTD_NO_EVENT - number ? number + gap : TTD_NO_EVENT - 1;
}

/** Reads the tables at the head of the chunk. */
static enum ttd_status read_tables(struct ttd_events_decoder *decoder, uint32_t classes,
                                   uint32_t shapes)
{
    enum ttd_status status = ttd_events_read_classes(decoder, classes);
    if (status == TTD_OK && !column_errors(decoder))
        status = ttd_events_read_shapes(decoder, shapes);
    if (status != TTD_OK)
        return status;
    ttd_cursor_finish(&decoder->columns[TTD_COLUMN_CLASSES]);
    ttd_cursor_finish(&decoder->columns[TTD_COLUMN_SHAPE_CLASSES]);
    ttd_cursor_finish(&decoder->columns[TTD_COLUMN_SHAPE_STACKS]);
    /* Each event has one byte there, so the loops over events need not look for its end. */
    if (ttd_cursor_left(&decoder->columns[TTD_COLUMN_SHAPES_FIRST]) != decoder->left)
        ttd_events_decoder_fail(decoder, "number of events");
    return column_errors(decoder) ? TTD_ERROR_CORRUPT : TTD_OK;
}

enum ttd_status ttd_events_decoder_begin(struct ttd_events_decoder *decoder,
                                         const struct ttd_header *header, struct ttd_cursor payload,
                                         uint64_t time_unit)
{
    /* A chunk is decoded without any other: nothing of the chunk before is left. */
    struct ttd_event_state *state = &decoder->state;
    ttd_event_state_clear(state);
    ttd_map_clear(&decoder->threads);
    state->time_unit = time_unit;
    decoder->number = header->first_record;
    decoder->left = header->record_count;
    decoder->first_batch = true;
    decoder->no_memory = false;
    decoder->first = header->first_position;
    decoder->last = header->last_position;
    uint32_t classes = ttd_cursor_get32(&payload);
    uint32_t shapes = ttd_cursor_get32(&payload);
    ttd_split_columns(&payload, decoder->columns, TTD_COLUMN_COUNT);
    decoder->error = payload.error;
    if (decoder->error)
        return TTD_ERROR_CORRUPT;
    enum ttd_status status = read_tables(decoder, classes, shapes);
    if (status != TTD_OK)
        return status;
    if (!decoder_reserve_addresses(decoder, header->record_count) || !reserve_buffers(decoder))
        return TTD_ERROR_NO_MEMORY;
    decoder->exception = ttd_events_next_gap(decoder, TTD_COLUMN_TIME_GAPS, decoder->number);
    decoder->clock_change = ttd_events_next_gap(decoder, TTD_COLUMN_CLOCK, decoder->number);
    return TTD_OK;
}

/** Checks that nothing is left over after the last event. */
static void decoder_finish(struct ttd_events_decoder *decoder)
{
    for (size_t i = 0; i < TTD_COLUMN_COUNT; i++)
        ttd_cursor_finish(&decoder->columns[i]);
    /* A gap without its entry was read already. */
    if (decoder->exception != TTD_NO_EVENT || decoder->clock_change != TTD_NO_EVENT)
        ttd_events_decoder_fail(decoder, "entry beyond the last event");
    /* The header is what seeks rely on: its range must be that of the events. */
    if (ttd_position_compare(decoder->state.effect, decoder->last) != 0)
        ttd_events_decoder_fail(decoder, "last position of a chunk");
}

enum ttd_status ttd_events_decoder_next(struct ttd_events_decoder *decoder, size_t *count)
{
    if (decoder->left == 0)
        return TTD_END;
    uint32_t n = decoder->left < TTD_EVENT_BATCH ? decoder->left : TTD_EVENT_BATCH;
    decoder->batch = &decoder->buffers[decoder->buffer_next];
    ttd_events_decode_batch(decoder, n);
    if (decoder->no_memory)
        return TTD_ERROR_NO_MEMORY;
    if (column_errors(decoder))
        return TTD_ERROR_CORRUPT;
    decoder->left -= n;
    if (decoder->first_batch &&
        ttd_position_compare(ttd_event_position(&decoder->batch->events[0]), decoder->first) != 0)
        ttd_events_decoder_fail(decoder, "first position of a chunk");
    decoder->first_batch = false;
    if (decoder->left == 0)
        decoder_finish(decoder);
    if (column_errors(decoder))
        return TTD_ERROR_CORRUPT;
    /* Only now: a batch that is damaged takes the place of none but the oldest. */
    decoder->buffer_next = (decoder->buffer_next + 1) % decoder->buffer_count;
    *count = n;
    return TTD_OK;
}
