/* SPDX-License-Identifier: MIT */
/* The tables at the head of a chunk of events: classes and shapes. */
#include "codec/events/decoder.h"

#include <string.h>

#include "base/memory.h"
#include "base/varint_fast.h"
#include "codec/api.h"

/** The fewest bytes of a class. */
#define CLASS_SIZE_MIN 6

/** Validates a class. Returns a static description of the first violation, or NULL. */
static const char *check_class(const struct ttd_event_class *class)
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

static struct ttd_event prototype_of(const struct ttd_event_class *class)
{
    return (struct ttd_event){.flags = class->flags,
                              .result = (class->form & TTD_FORM_OUTCOME) == TTD_OUTCOME_ONE,
                              .parameter_count = class->parameter_count,
                              .heap = class->heap,
                              .action = class->action,
                              .api = class->api};
}

/** Makes room for classes and their prototypes. False without memory. */
static bool reserve_classes(struct ttd_events_decoder *decoder, uint32_t count)
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
    if (!reserve_classes(decoder, count))
        return TTD_ERROR_NO_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        struct ttd_event_class *class = &state->classes[i];
        class->action = ttd_cursor_get8(cursor);
        class->api = ttd_cursor_get8(cursor);
        class->form = ttd_cursor_get8(cursor);
        class->parameter_count = ttd_cursor_get8(cursor);
        class->heap = ttd_cursor_varint32(cursor);
        class->flags = ttd_cursor_varint(cursor);
        const char *violation = check_class(class);
        if (violation)
            ttd_events_decoder_fail(decoder, violation);
        else
            ttd_event_class_complete(class);
        decoder->prototypes[i] = prototype_of(class);
    }
    state->class_count = count;
    return TTD_OK;
}

/** Reads the shapes, for which there is room. False if there is a wrong one. */
static bool read_shapes(struct ttd_events_decoder *decoder, uint32_t count)
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
    if (!read_shapes(decoder, count)) {
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
