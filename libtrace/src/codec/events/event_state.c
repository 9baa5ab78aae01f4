/* SPDX-License-Identifier: MIT */
#include "codec/events/events.h"

#include <string.h>

#include "base/memory.h"
#include "codec/api.h"

void ttd_event_state_init(struct ttd_event_state *state, const struct ttd_allocator *allocator)
{
    memset(state, 0, sizeof *state);
    state->allocator = allocator;
}

void ttd_event_state_free(struct ttd_event_state *state)
{
    if (!state->allocator)
        return;
    ttd_release(state->allocator, state->classes);
    ttd_release(state->allocator, state->shapes);
    ttd_release(state->allocator, state->next_shapes);
    ttd_release(state->allocator, state->stored_at);
    ttd_release(state->allocator, state->stored);
    ttd_release(state->allocator, state->freed.items);
    ttd_release(state->allocator, state->allocated.items);
    ttd_release(state->allocator, state->threads);
}

void ttd_event_state_clear(struct ttd_event_state *state)
{
    state->class_count = 0;
    state->shape_count = 0;
    state->stored_count = 0;
    state->shape = 0;
    state->freed.count = 0;
    state->allocated.count = 0;
    state->released = 0;
    state->acquired = 0;
    state->thread_count = 0;
    /* No thread is the current one: the first event names its own. */
    state->thread = UINT32_MAX;
    state->effect = ttd_position_min();
    state->clock = 0;
    state->wall_time = 0;
}

static bool event_state_reserve_addresses(const struct ttd_allocator *allocator,
                                          struct ttd_address_list *list, size_t count)
{
    void *items = list->items;
    if (ttd_grow_array_zeroed(allocator, &items, &list->capacity, count + TTD_ADDRESS_BLOCK + 1,
                              sizeof *list->items))
        return false;
    list->items = items;
    return true;
}

bool ttd_event_state_reserve_addresses(struct ttd_event_state *state, size_t count)
{
    return event_state_reserve_addresses(state->allocator, &state->freed, count) &&
           event_state_reserve_addresses(state->allocator, &state->allocated, count);
}

bool ttd_event_state_reserve_shapes(struct ttd_event_state *state, size_t count)
{
    /* Shapes are numbered from 1: one more entry than there are shapes. */
    if (count < state->shape_capacity)
        return true;
    void *arrays[] = {state->shapes, state->next_shapes, state->stored_at};
    const size_t sizes[] = {sizeof *state->shapes, sizeof *state->next_shapes,
                            sizeof *state->stored_at};
    size_t capacity = state->shape_capacity;
    bool has_room = true;
    for (size_t i = 0; i < 3 && has_room; i++) {
        /* Arrays of one capacity grow alike, so the last capacity holds for all three. */
        capacity = state->shape_capacity;
        has_room = !ttd_grow_array(state->allocator, &arrays[i], &capacity, count + 1, sizes[i]);
    }
    /* Also after a failure: those that have grown may have moved. */
    state->shapes = arrays[0];
    state->next_shapes = arrays[1];
    state->stored_at = arrays[2];
    if (has_room)
        state->shape_capacity = capacity;
    return has_room;
}

static enum ttd_event_general event_general_of(const struct ttd_event_class *class)
{
    unsigned outcome = class->form & TTD_FORM_OUTCOME;
    if (outcome == TTD_OUTCOME_RESULT || class->action == TTD_ACTION_CREATE ||
        class->action == TTD_ACTION_PROTECT)
        return TTD_GENERAL_OTHER;
    if (!(class->form & TTD_FORM_PARAMETERS))
        return TTD_GENERAL_NONE;
    if (class->items && strcmp(class->items, "S") == 0)
        return TTD_GENERAL_SIZE;
    if (class->items && strcmp(class->items, "B") == 0)
        return TTD_GENERAL_BASE;
    if (class->items && strcmp(class->items, "BS") == 0)
        return TTD_GENERAL_BASE_SIZE;
    return TTD_GENERAL_OTHER;
}

static enum ttd_event_fast event_state_fast_shape(const struct ttd_event_class *class)
{
    unsigned values = class->form & (TTD_FORM_SIZE | TTD_FORM_BASE | TTD_FORM_ADDRESS);
    if ((class->form & TTD_FORM_OUTCOME) != TTD_OUTCOME_ONE)
        return TTD_FAST_NONE;
    if (class->action == TTD_ACTION_ALLOC && class->general == TTD_GENERAL_SIZE &&
        values == (TTD_FORM_SIZE | TTD_FORM_ADDRESS))
        return TTD_FAST_ALLOC;
    if (class->action == TTD_ACTION_FREE && class->general == TTD_GENERAL_BASE &&
        values == TTD_FORM_BASE)
        return TTD_FAST_FREE;
    if (class->action == TTD_ACTION_FREE && class->general == TTD_GENERAL_BASE_SIZE &&
        values == (TTD_FORM_BASE | TTD_FORM_SIZE))
        return TTD_FAST_FREE_SIZED;
    return TTD_FAST_NONE;
}

void ttd_event_class_complete(struct ttd_event_class *class)
{
    unsigned outcome = class->form & TTD_FORM_OUTCOME;
    unsigned parameters = class->form & TTD_FORM_PARAMETERS;
    class->releases = (class->form & TTD_FORM_BASE) && outcome != TTD_OUTCOME_FAILED &&
                      (class->action == TTD_ACTION_FREE || outcome != TTD_OUTCOME_NEVER);
    class->items = parameters == TTD_PARAMETERS_BY_API ? ttd_api_template(class->api) : NULL;
    class->stored = parameters == TTD_PARAMETERS_WHOLE ? class->parameter_count : 0;
    if (class->items)
        class->stored = (uint8_t)ttd_template_stored(class->items);
    class->general = (uint8_t)event_general_of(class);
    class->fast = (uint8_t)event_state_fast_shape(class);
    class->tally = (class->form & TTD_FORM_BASE ? TTD_TALLY_BASE : 0) +
                   (class->form & TTD_FORM_ADDRESS ? TTD_TALLY_ADDRESS : 0) +
                   (outcome == TTD_OUTCOME_NEVER ? TTD_TALLY_NEVER : 0);
}

bool ttd_event_state_add_thread(struct ttd_event_state *state, ttd_id id)
{
    void *threads = state->threads;
    if (ttd_grow_array(state->allocator, &threads, &state->thread_capacity, state->thread_count + 1,
                       sizeof *state->threads))
        return false;
    state->threads = threads;
    state->threads[state->thread_count++] =
        (struct ttd_event_thread){id, {state->effect.sequence, 0}};
    return true;
}
