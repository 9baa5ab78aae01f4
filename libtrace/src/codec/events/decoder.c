/* SPDX-License-Identifier: MIT */
#include "codec/events/decoder.h"

#include <string.h>

#include "base/memory.h"
#include "base/cursor.h"
#include "codec/api.h"
#include "codec/columns.h"

/* The tables at the head of a chunk of events: classes and shapes. */

/** The fewest bytes of a class. */
#define CLASS_SIZE_MIN 6

/** Validates a class. Returns a static description of the first violation, or NULL. */
static const char *decoder_check_class(const struct ttd_event_class *class)
{
    unsigned outcome = class->form & TTD_FORM_OUTCOME;
    bool allocates = class->action == TTD_ACTION_ALLOC || class->action == TTD_ACTION_REALLOC;
    bool releases = class->action == TTD_ACTION_FREE || class->action == TTD_ACTION_REALLOC;
    if (class->action < TTD_ACTION_ALLOC || class->action > TTD_ACTION_DESTROY)
        return "action of an event";
    if (class->form & ~TTD_FORM_MASK)
        return "form of an event";
    if ((class->form & TTD_FORM_ADDRESS) &&
        (!allocates || outcome == TTD_OUTCOME_FAILED || outcome == TTD_OUTCOME_NEVER))
        return "address of an event";
    if ((class->form & TTD_FORM_BASE) && !releases)
        return "base address of an event";
    if ((class->form & TTD_FORM_SIZE) ? !allocates && !releases : allocates)
        return "size of an event";
    const char *items = ttd_api_template(class->api);
    switch (class->form & TTD_FORM_PARAMETERS) {
    case TTD_PARAMETERS_NONE:
        return class->parameter_count == 0 ? NULL : "parameters of an event";
    case TTD_PARAMETERS_BY_API:
        return items && strlen(items) == class->parameter_count ? NULL : "parameters of an event";
    case TTD_PARAMETERS_WHOLE:
        return class->parameter_count <= TTD_PARAMETERS_MAX ? NULL : "parameters of an event";
    default:
        return "form of an event";
    }
}

static struct ttd_event decoder_prototype_of(const struct ttd_event_class *class)
{
    return (struct ttd_event){.flags = class->flags,
                              .result = (class->form & TTD_FORM_OUTCOME) == TTD_OUTCOME_ONE,
                              .parameter_count = class->parameter_count,
                              .heap = class->heap,
                              .action = class->action,
                              .api = class->api};
}

/** Makes room for classes and their prototypes. False without memory. */
static bool decoder_reserve_classes(struct ttd_events_decoder *decoder, uint32_t count)
{
    struct ttd_event_state *state = &decoder->state;
    void *array = state->classes;
    if (ttd_grow_array(state->allocator, &array, &state->class_capacity, count,
                       sizeof *state->classes))
        return false;
    state->classes = array;
    array = decoder->prototypes;
    if (ttd_grow_array(state->allocator, &array, &decoder->prototype_capacity, count,
                       sizeof *decoder->prototypes))
        return false;
    decoder->prototypes = array;
    return true;
}

enum ttd_status ttd_events_read_classes(struct ttd_events_decoder *decoder, uint32_t count)
{
    struct ttd_event_state *state = &decoder->state;
    struct ttd_cursor *cursor = &decoder->columns[TTD_COLUMN_CLASSES];
    if (count > ttd_cursor_left(cursor) / CLASS_SIZE_MIN || count > TTD_RECORDS_MAX) {
        ttd_events_decoder_fail(decoder, "number of classes");
        return TTD_ERROR_CORRUPT;
    }
    if (!decoder_reserve_classes(decoder, count))
        return TTD_ERROR_NO_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        struct ttd_event_class *class = &state->classes[i];
        class->action = ttd_cursor_get8(cursor);
        class->api = ttd_cursor_get8(cursor);
        class->form = ttd_cursor_get8(cursor);
        class->parameter_count = ttd_cursor_get8(cursor);
        class->heap = ttd_cursor_varint32(cursor);
        class->flags = ttd_cursor_varint(cursor);
        const char *violation = decoder_check_class(class);
        if (violation)
            ttd_events_decoder_fail(decoder, violation);
        else
            ttd_event_class_complete(class);
        decoder->prototypes[i] = decoder_prototype_of(class);
    }
    state->class_count = count;
    return TTD_OK;
}

/** Reads the shapes; there is room for them. False if there is a wrong one. */
static bool decoder_read_shapes(struct ttd_events_decoder *decoder, uint32_t count)
{
    struct ttd_event_state *state = &decoder->state;
    struct ttd_cursor classes = decoder->columns[TTD_COLUMN_SHAPE_CLASSES];
    struct ttd_cursor stacks = decoder->columns[TTD_COLUMN_SHAPE_STACKS];
    uint64_t stack = TTD_NONE;
    bool is_valid = true;
    ttd_event_state_set_shape(state, 0, 0, TTD_NONE);
    for (uint32_t i = 1; i <= count && is_valid; i++) {
        uint64_t class_index = ttd_varint_fast(&classes);
        stack += ttd_unzigzag(ttd_varint_fast(&stacks));
        is_valid = class_index < state->class_count && stack <= UINT32_MAX;
        if (is_valid) {
            ttd_event_state_set_shape(state, i, (uint32_t)class_index, (ttd_id)stack);
            state->stored_count += state->classes[class_index].stored;
        }
    }
    decoder->columns[TTD_COLUMN_SHAPE_CLASSES] = classes;
    decoder->columns[TTD_COLUMN_SHAPE_STACKS] = stacks;
    return is_valid;
}

enum ttd_status ttd_events_read_shapes(struct ttd_events_decoder *decoder, uint32_t count)
{
    struct ttd_event_state *state = &decoder->state;
    if (count > ttd_cursor_left(&decoder->columns[TTD_COLUMN_SHAPE_CLASSES]) ||
        count > TTD_RECORDS_MAX) {
        ttd_events_decoder_fail(decoder, "number of shapes");
        return TTD_ERROR_CORRUPT;
    }
    if (!ttd_event_state_reserve_shapes(state, count))
        return TTD_ERROR_NO_MEMORY;
    if (!decoder_read_shapes(decoder, count)) {
        ttd_events_decoder_fail(decoder, "shape of an event");
        return TTD_ERROR_CORRUPT;
    }
    state->shape_count = count;
    void *array = state->stored;
    /* One more, so that there is an array to point into when nothing is stored. */
    if (ttd_grow_array(state->allocator, &array, &state->stored_capacity, state->stored_count + 1,
                       sizeof *state->stored))
        return TTD_ERROR_NO_MEMORY;
    state->stored = array;
    if (state->stored_count != 0)
        memset(state->stored, 0, state->stored_count * sizeof *state->stored);
    return TTD_OK;
}

/* The general path: parameters, and optional fields. Few events need it, so that the loops over
 * all events stay short. */

static void decoder_decode_parameters(struct ttd_events_decoder *decoder, struct ttd_event *event,
                                      const struct ttd_event_class *class,
                                      const struct ttd_event_shape *shape, uint64_t *parameters)
{
    struct ttd_event_state *state = &decoder->state;
    uint64_t *stored = state->stored + state->stored_at[shape - state->shapes];
    for (unsigned i = 0; i < class->stored; i++)
        stored[i] =
            ttd_swap_predicted(ttd_cursor_varint(&decoder->columns[TTD_COLUMN_EXTRA]), stored[i]);
    if (!class->items)
        memcpy(parameters, stored, class->stored * sizeof *stored);
    else if (!ttd_template_apply(class->items, event, stored, parameters))
        ttd_events_decoder_fail(decoder, "parameters of an event");
}

/** Reads the optional fields: flags, result, reserve and commit size (EXTRA). */
static void decoder_decode_extra(struct ttd_events_decoder *decoder, struct ttd_event *event,
                                 const struct ttd_event_class *class,
                                 const struct ttd_event_shape *shape, uint64_t *parameters)
{
    struct ttd_cursor *extra = &decoder->columns[TTD_COLUMN_EXTRA];
    if ((class->form & TTD_FORM_OUTCOME) == TTD_OUTCOME_RESULT) {
        event->result = ttd_cursor_varint(extra);
        if (event->result < TTD_OUTCOME_RESULT)
            ttd_events_decoder_fail(decoder, "result of an event");
    }
    if (class->action == TTD_ACTION_CREATE) {
        event->reserve_size = ttd_cursor_varint(extra);
        event->commit_size = ttd_cursor_varint(extra);
    } else if (class->action == TTD_ACTION_PROTECT) {
        event->make_read_only = ttd_cursor_varint(extra);
    }
    if (event->parameters)
        decoder_decode_parameters(decoder, event, class, shape, parameters);
}

void ttd_events_decode_general(struct ttd_events_decoder *decoder, size_t index)
{
    const struct ttd_event_class *class = decoder->classes[index];
    struct ttd_event *event = &decoder->batch->events[index];
    if (class->action == TTD_ACTION_REALLOC)
        event->previous_address = event->base_address;
    if (class->general == TTD_GENERAL_OTHER) {
        uint64_t *parameters = decoder->batch->more_parameters[index];
        if (class->form & TTD_FORM_PARAMETERS)
            event->parameters = parameters;
        decoder_decode_extra(decoder, event, class, decoder->shapes[index], parameters);
    } else if (class->general == TTD_GENERAL_SIZE) {
        event->parameters = &event->size;
    } else if (class->general == TTD_GENERAL_BASE) {
        event->parameters = &event->base_address;
    } else if (class->general == TTD_GENERAL_BASE_SIZE) {
        uint64_t *parameters = decoder->batch->parameters[index];
        event->parameters = parameters;
        parameters[0] = event->base_address;
        parameters[1] = event->size;
    }
}

void ttd_events_decoder_init(struct ttd_events_decoder *decoder,
                             const struct ttd_allocator *allocator, size_t batches)
{
    memset(decoder, 0, sizeof *decoder);
    decoder->buffer_count = decoder->buffers_kept = batches;
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

static bool decoder_reserve_list(const struct ttd_allocator *allocator,
                                 struct ttd_ordinal_list *list, size_t count)
{
    void *items = list->items;
    list->count = 0;
    if (ttd_grow_array_zeroed(allocator, &items, &list->capacity, count + TTD_ORDINAL_BLOCK + 1,
                              sizeof *list->items))
        return false;
    list->items = items;
    return true;
}

/** Empties the lists and makes room for the columns' maximum. False without memory. */
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
    return decoder_reserve_list(allocator, &addresses->freed, events) &&
           decoder_reserve_list(allocator, &addresses->allocated, events);
}

static bool decoder_reserve_buffers(struct ttd_events_decoder *decoder)
{
    const struct ttd_allocator *allocator = decoder->state.allocator;
    if (!decoder->buffers)
        decoder->buffers = allocator->resize(allocator->context, NULL,
                                             decoder->buffer_count * sizeof *decoder->buffers);
    return decoder->buffers;
}

/** Clears a buffer when it is used first: a short trace needs few of them. */
static struct ttd_event_buffer *decoder_next_buffer(struct ttd_events_decoder *decoder)
{
    struct ttd_event_buffer *buffer = &decoder->buffers[decoder->buffer_next];
    if (decoder->buffer_next == decoder->buffers_cleared) {
        memset(buffer, 0, sizeof *buffer);
        decoder->buffers_cleared++;
    }
    return buffer;
}

bool ttd_events_decoder_has_failed(struct ttd_events_decoder *decoder)
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
static enum ttd_status decoder_read_tables(struct ttd_events_decoder *decoder, uint32_t classes,
                                           uint32_t shapes)
{
    enum ttd_status status = ttd_events_read_classes(decoder, classes);
    if (status == TTD_OK && !ttd_events_decoder_has_failed(decoder))
        status = ttd_events_read_shapes(decoder, shapes);
    if (status != TTD_OK)
        return status;
    ttd_cursor_finish(&decoder->columns[TTD_COLUMN_CLASSES]);
    ttd_cursor_finish(&decoder->columns[TTD_COLUMN_SHAPE_CLASSES]);
    ttd_cursor_finish(&decoder->columns[TTD_COLUMN_SHAPE_STACKS]);
    /* Each event has one byte there, so the loops over events need not look for its end. */
    if (ttd_cursor_left(&decoder->columns[TTD_COLUMN_SHAPES_FIRST]) != decoder->left)
        ttd_events_decoder_fail(decoder, "number of events");
    return ttd_events_decoder_has_failed(decoder) ? TTD_ERROR_CORRUPT : TTD_OK;
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
    enum ttd_status status = decoder_read_tables(decoder, classes, shapes);
    if (status != TTD_OK)
        return status;
    if (!decoder_reserve_addresses(decoder, header->record_count) ||
        !decoder_reserve_buffers(decoder))
        return TTD_ERROR_NO_MEMORY;
    decoder->exception = ttd_events_next_gap(decoder, TTD_COLUMN_TIME_GAPS, decoder->number);
    decoder->clock_change = ttd_events_next_gap(decoder, TTD_COLUMN_CLOCK, decoder->number);
    return TTD_OK;
}

void ttd_events_decoder_finish(struct ttd_events_decoder *decoder)
{
    for (size_t i = 0; i < TTD_COLUMN_COUNT; i++)
        ttd_cursor_finish(&decoder->columns[i]);
    /* A gap without its entry was read already. */
    if (decoder->exception != TTD_NO_EVENT || decoder->clock_change != TTD_NO_EVENT)
        ttd_events_decoder_fail(decoder, "entry beyond the last event");
    /* Seeks rely on the header: its range must match the events. */
    if (ttd_position_compare(decoder->state.effect, decoder->last) != 0)
        ttd_events_decoder_fail(decoder, "last position of a chunk");
}

enum ttd_status ttd_events_decoder_next(struct ttd_events_decoder *decoder, size_t *count)
{
    if (decoder->left == 0)
        return TTD_END;
    uint32_t n = decoder->left < TTD_EVENT_BATCH ? decoder->left : TTD_EVENT_BATCH;
    decoder->batch = decoder_next_buffer(decoder);
    ttd_events_decode_batch(decoder, n);
    if (decoder->no_memory)
        return TTD_ERROR_NO_MEMORY;
    if (ttd_events_decoder_has_failed(decoder))
        return TTD_ERROR_CORRUPT;
    decoder->left -= n;
    if (decoder->first_batch &&
        ttd_position_compare(ttd_event_position(&decoder->batch->events[0]), decoder->first) != 0)
        ttd_events_decoder_fail(decoder, "first position of a chunk");
    decoder->first_batch = false;
    if (decoder->left == 0)
        ttd_events_decoder_finish(decoder);
    if (ttd_events_decoder_has_failed(decoder))
        return TTD_ERROR_CORRUPT;
    /* Only now: a batch that is damaged takes the place of none but the oldest. */
    decoder->buffer_next = (decoder->buffer_next + 1) % decoder->buffers_kept;
    *count = n;
    return TTD_OK;
}
