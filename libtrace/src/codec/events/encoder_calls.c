/* SPDX-License-Identifier: MIT */
/* Usual calls, run by run: most events of a recording. */
#include "codec/events/encoder.h"

/** Returns the form of a call's event, which returned. */
static inline enum ttd_event_fast calls_fast_shape(const struct ttd_call *call)
{
    if (call->address == 0)
        return TTD_FAST_NONE;
    if (call->action == TTD_ACTION_ALLOC && call->parameter_count == 1)
        return TTD_FAST_ALLOC;
    if (call->action != TTD_ACTION_FREE)
        return TTD_FAST_NONE;
    if (call->parameter_count == 1 && call->size == 0)
        return TTD_FAST_FREE;
    return call->parameter_count == 2 && call->size != 0 ? TTD_FAST_FREE_SIZED : TTD_FAST_NONE;
}

/** Whether the events of a class are such calls on a heap. */
static inline bool is_class_of(const struct ttd_event_class *class, const struct ttd_call *call,
                               enum ttd_event_fast fast, ttd_id heap)
{
    return ((class->heap ^ heap) | (uint32_t)(class->fast ^ fast) |
            (uint32_t)(class->api ^ call->api)) == 0 &&
           class->flags == 0;
}

/** Returns the shape of a call, if the chunk has it; else 0. */
static uint32_t find_shape(const struct ttd_events_encoder *encoder, const struct ttd_call *call,
                           enum ttd_event_fast fast, ttd_id heap)
{
    const struct ttd_event_state *state = &encoder->state;
    uint32_t index = encoder->last_class[call->api], number;
    if (index >= state->class_count || !is_class_of(&state->classes[index], call, fast, heap) ||
        !ttd_map_find(&encoder->shape_map, (uint64_t)index << 32 | call->stack, &number))
        return 0;
    return number;
}

/** Appends the symbol of a call's shape. False, and nothing has changed, if the chunk lacks it. */
static inline bool calls_put_shape(struct ttd_events_encoder *encoder, const struct ttd_call *call,
                                   enum ttd_event_fast fast, ttd_id heap)
{
    struct ttd_event_state *state = &encoder->state;
    uint32_t number = state->next_shapes[state->shape];
    const struct ttd_event_shape *shape = &state->shapes[number];
    if (number != 0 && shape->stack == call->stack &&
        is_class_of(&state->classes[shape->class_index], call, fast, heap)) {
        ttd_events_put8(encoder, TTD_COLUMN_SHAPES_FIRST, 0);
    } else {
        number = find_shape(encoder, call, fast, heap);
        if (number == 0)
            return false;
        ttd_events_put_symbol(encoder, number);
        state->next_shapes[state->shape] = number;
    }
    state->shape = number;
    return true;
}

static inline void calls_put_values(struct ttd_events_encoder *encoder, const struct ttd_call *call,
                                    enum ttd_event_fast fast)
{
    struct ttd_event_shape *shape = &encoder->state.shapes[encoder->state.shape];
    if (fast != TTD_FAST_FREE)
        ttd_events_encode_size(encoder, call->size, shape);
    if (fast == TTD_FAST_ALLOC)
        ttd_events_encode_address(encoder, call->address);
    else
        ttd_events_encode_base(encoder, call->address, true);
}

size_t ttd_events_encoder_add_calls(struct ttd_events_encoder *encoder,
                                    const struct ttd_calls *calls, size_t first)
{
    struct ttd_event_state *state = &encoder->state;
    size_t remaining = calls->count - first, added_count = 0;
    if (encoder->count == 0 || calls->wall_time != state->wall_time)
        return 0;
    struct ttd_event_thread *thread = &state->threads[state->thread];
    struct ttd_position start = calls->start;
    start.steps += 2 * first;
    if (!ttd_events_follow(start, (struct ttd_position){start.sequence, start.steps + 1},
                           calls->thread, thread) ||
        2 * remaining > UINT64_MAX - start.steps)
        return 0;
    if (remaining > encoder->room)
        remaining = encoder->room;
    for (; added_count < remaining; added_count++) {
        const struct ttd_call *call = &calls->calls[first + added_count];
        enum ttd_event_fast fast = calls_fast_shape(call);
        if (fast == TTD_FAST_NONE || !calls_put_shape(encoder, call, fast, calls->heap))
            break;
        calls_put_values(encoder, call, fast);
    }
    if (added_count == 0)
        return 0;
    encoder->room -= (uint32_t)added_count;
    encoder->count += (uint32_t)added_count;
    encoder->since_exception += (uint32_t)added_count;
    encoder->since_clock += (uint32_t)added_count;
    thread->end = (struct ttd_position){start.sequence, start.steps + 2 * added_count - 1};
    state->effect = thread->end;
    state->effect.steps -= calls->calls[first + added_count - 1].action == TTD_ACTION_FREE;
    return added_count;
}

/** Whether a returned event has what it tells as its parameters, and nothing else. */
static inline bool is_usual(const struct ttd_event *event)
{
    uint64_t others =
        event->previous_address | event->reserve_size | event->commit_size | event->make_read_only;
    if (!event->parameters || (others | event->flags | (event->result ^ 1)) != 0)
        return false;
    const uint64_t *p = event->parameters;
    if (event->action == TTD_ACTION_ALLOC)
        return event->parameter_count == 1 && (event->base_address | (p[0] ^ event->size)) == 0;
    return event->action == TTD_ACTION_FREE &&
           (event->address | (p[0] ^ event->base_address)) == 0 &&
           (event->parameter_count == 1 || (event->parameter_count == 2 && p[1] == event->size));
}

bool ttd_events_encoder_add_usual(struct ttd_events_encoder *encoder, const struct ttd_event *event)
{
    if (!is_usual(event) || event->time_end.sequence != event->time_start.sequence ||
        event->time_end.steps - event->time_start.steps != 1)
        return false;
    struct ttd_call call = {.address = event->address | event->base_address,
                            .size = event->size,
                            .stack = event->stack,
                            .action = event->action,
                            .api = event->api,
                            .parameter_count = (uint8_t)event->parameter_count};
    struct ttd_calls calls = {.calls = &call,
                              .count = 1,
                              .thread = event->thread,
                              .heap = event->heap,
                              .wall_time = event->wall_time,
                              .start = event->time_start};
    return ttd_events_encoder_add_calls(encoder, &calls, 0) == 1;
}
