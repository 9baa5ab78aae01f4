/* SPDX-License-Identifier: MIT */
/* Classes and shapes (spec, "Shapes"). */
#include "codec/events/encoder.h"

#include <string.h>

#include "base/memory.h"
#include "codec/api.h"

/** Adds how the parameters are stored. */
static void add_parameters(struct ttd_event_class *class, const struct ttd_event *event)
{
    class->parameter_count = (uint8_t)event->parameter_count;
    if (ttd_event_fits_template(event))
        class->form |= TTD_PARAMETERS_BY_API;
    else
        class->form |= TTD_PARAMETERS_WHOLE;
}

static inline bool same_class(const struct ttd_event_class *a, const struct ttd_event_class *b)
{
    return a->key == b->key && a->form == b->form && a->flags == b->flags;
}

static bool add_class(struct ttd_events_encoder *encoder, const struct ttd_event_class *class,
                      uint64_t key)
{
    struct ttd_event_state *state = &encoder->state;
    void *classes = state->classes;
    if (ttd_grow_array(state->allocator, &classes, &state->class_capacity, state->class_count + 1,
                       sizeof *state->classes))
        return false;
    state->classes = classes;
    if (!ttd_map_add(&encoder->class_map, key, (uint32_t)state->class_count))
        return false;
    state->classes[state->class_count] = *class;
    ttd_event_class_complete(&state->classes[state->class_count++]);
    ttd_events_put8(encoder, TTD_COLUMN_CLASSES, class->action);
    ttd_events_put8(encoder, TTD_COLUMN_CLASSES, class->api);
    ttd_events_put8(encoder, TTD_COLUMN_CLASSES, class->form);
    ttd_events_put8(encoder, TTD_COLUMN_CLASSES, class->parameter_count);
    ttd_events_put(encoder, TTD_COLUMN_CLASSES, class->heap);
    ttd_events_put(encoder, TTD_COLUMN_CLASSES, class->flags);
    return true;
}

static bool find_class(struct ttd_events_encoder *encoder, const struct ttd_event_class *class,
                       uint32_t *index)
{
    /* Mostly the class that this API had the last time: no look-up then. */
    *index = encoder->last_class[class->api];
    if (*index < encoder->state.class_count && same_class(class, &encoder->state.classes[*index]))
        return true;
    /* Different classes may have one key: the next keys are tried until one is free or equal. */
    uint64_t key = ttd_map_hash(class->flags) + class->form + class->key;
    while (ttd_map_find(&encoder->class_map, key, index)) {
        if (same_class(class, &encoder->state.classes[*index]))
            return true;
        key++;
    }
    *index = (uint32_t)encoder->state.class_count;
    return add_class(encoder, class, key);
}

/** Makes room for shapes up to number `count` and their stored parameters. */
static bool grow_shapes(struct ttd_event_state *state, size_t count, size_t stored)
{
    void *array = state->stored;
    if (!ttd_event_state_reserve_shapes(state, count) ||
        ttd_grow_array(state->allocator, &array, &state->stored_capacity,
                       state->stored_count + stored + 1, sizeof *state->stored))
        return false;
    state->stored = array;
    return true;
}

static bool add_shape(struct ttd_events_encoder *encoder, uint32_t class_index, ttd_id stack)
{
    struct ttd_event_state *state = &encoder->state;
    size_t stored = state->classes[class_index].stored;
    if (!grow_shapes(state, state->shape_count + 1, stored) ||
        !ttd_map_add(&encoder->shape_map, (uint64_t)class_index << 32 | stack,
                     (uint32_t)state->shape_count + 1))
        return false;
    ttd_id last = state->shape_count ? state->shapes[state->shape_count].stack : TTD_NONE;
    ttd_events_put(encoder, TTD_COLUMN_SHAPE_CLASSES, class_index);
    ttd_events_put(encoder, TTD_COLUMN_SHAPE_STACKS, ttd_zigzag((uint64_t)stack - last));
    ttd_event_state_set_shape(state, ++state->shape_count, class_index, stack);
    if (stored != 0)
        memset(state->stored + state->stored_count, 0, stored * sizeof *state->stored);
    state->stored_count += stored;
    return true;
}

void ttd_events_put_symbol(struct ttd_events_encoder *encoder, uint32_t symbol)
{
    if (symbol < TTD_SHAPE_ONE_BYTE) {
        ttd_events_put8(encoder, TTD_COLUMN_SHAPES_FIRST, symbol);
    } else if (symbol < TTD_SHAPE_TWO_BYTES) {
        symbol -= TTD_SHAPE_ONE_BYTE;
        ttd_events_put8(encoder, TTD_COLUMN_SHAPES_FIRST, TTD_SHAPE_ONE_BYTE + (symbol >> 8));
        ttd_events_put8(encoder, TTD_COLUMN_SHAPES_MORE, symbol & 0xFF);
    } else {
        symbol -= TTD_SHAPE_TWO_BYTES;
        ttd_events_put8(encoder, TTD_COLUMN_SHAPES_FIRST, TTD_SHAPE_ESCAPE);
        ttd_events_put8(encoder, TTD_COLUMN_SHAPES_MORE, symbol & 0xFF);
        ttd_events_put8(encoder, TTD_COLUMN_SHAPES_MORE, symbol >> 8);
    }
}

bool ttd_events_encode_shape(struct ttd_events_encoder *encoder, const struct ttd_event *event,
                             unsigned form, uint64_t key, uint32_t *shape)
{
    struct ttd_event_state *state = &encoder->state;
    /* The first event has no shape before it: number 0, of no class, stands for that. */
    if (encoder->count == 0) {
        if (!grow_shapes(state, 0, 0))
            return false;
        ttd_event_state_set_shape(state, 0, 0, TTD_NONE);
    }
    struct ttd_event_class class = {.action = event->action,
                                    .api = event->api,
                                    .form = (uint8_t)form,
                                    .heap = event->heap,
                                    .flags = event->flags,
                                    .key = key};
    if (event->parameters)
        add_parameters(&class, event);
    uint32_t index;
    if (!find_class(encoder, &class, &index))
        return false;
    encoder->last_class[class.api] = index;
    if (!ttd_map_find(&encoder->shape_map, (uint64_t)index << 32 | event->stack, shape)) {
        if (!add_shape(encoder, index, event->stack))
            return false;
        *shape = (uint32_t)state->shape_count;
    }
    /* 0 says that the same shape follows as the last time: a loop is then a run of zeros. */
    ttd_events_put_symbol(encoder, *shape == state->next_shapes[state->shape] ? 0 : *shape);
    return true;
}
