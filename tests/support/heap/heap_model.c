/* SPDX-License-Identifier: MIT */
#include "support/heap/heap_model.h"

#include <criterion/criterion.h>

#define EFFECTS_MAX (2 * HEAP_MODEL_EVENTS_MAX)

struct ttd_position heap_model_at(unsigned tick)
{
    /* Sequences of four steps. */
    return (struct ttd_position){tick / 4, tick % 4};
}

void heap_model_learn(struct heap_parents *parents)
{
    static const struct ttd_heap_parent records[] = {{.heap = 2, .parent = 1},
                                                     {.heap = 3, .parent = 2}};
    struct ttd_batch batch = {.kind = TTD_KIND_HEAP_PARENTS, .count = 2, .u.heap_parents = records};
    cr_assert_eq(heap_parents_add(parents, &batch), TTD_OK);
}

ttd_id heap_model_parent(ttd_id heap)
{
    return heap == 2 || heap == 3 ? heap - 1 : TTD_NONE;
}

/* The model: a list of effects, applied in order to a list of blocks. */

enum change { RELEASE, ACQUIRE, DESTROY };

struct effect {
    struct ttd_position position;
    /* At equal positions, acquisitions of calls in flight come first. */
    bool is_late;
    const struct ttd_event *event;
    enum change change;
};

static void remove_block(struct heap_model *state, size_t index)
{
    state->live[index] = state->live[--state->count];
}

/* Ends the block at the address that is of the heap. If there is none, ends the newest block there
 * of an unknown heap; if the heap itself is unknown, the newest of any. */
static bool release(struct heap_model *state, uint64_t address, ttd_id heap)
{
    size_t best = state->count;
    bool is_best_exact = false;
    for (size_t i = 0; i < state->count; i++) {
        const struct ttd_event *block = state->live[i];
        bool is_exact = block->heap == heap;
        if (block->address != address || (!is_exact && heap != TTD_NONE && block->heap != TTD_NONE))
            continue;
        if (best == state->count || is_exact ||
            (!is_best_exact && block->number > state->live[best]->number))
            best = i;
        is_best_exact = is_best_exact || is_exact;
    }
    if (best == state->count)
        return false;
    remove_block(state, best);
    return true;
}

static struct effect effect_at(struct ttd_position position, enum change change,
                               const struct ttd_event *event)
{
    return (struct effect){.position = position, .is_late = true, .event = event, .change = change};
}

static size_t list_effects(const struct ttd_event *event, struct effect *effects)
{
    bool is_done = event->result || !ttd_event_returned(event);
    size_t count = 0;
    if (event->action == TTD_ACTION_ALLOC && event->result && event->address)
        effects[count++] = effect_at(event->time_end, ACQUIRE, event);
    if (event->action == TTD_ACTION_FREE && event->base_address && is_done)
        effects[count++] = effect_at(event->time_start, RELEASE, event);
    if (event->action == TTD_ACTION_DESTROY && is_done)
        effects[count++] = effect_at(event->time_start, DESTROY, event);
    if (event->action == TTD_ACTION_REALLOC && event->result) {
        if (event->base_address)
            effects[count++] = effect_at(event->time_start, RELEASE, event);
        if (event->address) {
            effects[count] = effect_at(event->time_end, ACQUIRE, event);
            effects[count++].is_late =
                ttd_position_compare(event->time_end, event->time_start) == 0;
        }
    }
    return count;
}

static void apply(struct heap_model *state, const struct effect *effect)
{
    const struct ttd_event *event = effect->event;
    state->position = effect->position;
    switch (effect->change) {
    case DESTROY:
        for (size_t i = state->count; i > 0; i--)
            if (state->live[i - 1]->heap == event->heap)
                remove_block(state, i - 1);
        break;
    case RELEASE:
        if (!release(state, event->base_address, event->heap))
            state->counts.unknown_releases++;
        break;
    case ACQUIRE:
        if (release(state, event->address, event->heap))
            state->counts.overlaps++;
        state->live[state->count++] = event;
        break;
    }
}

/* Counts what calls do, whether it has an effect on blocks or not. */
static void count_call(struct heap_model *state, const struct ttd_event *event,
                       struct ttd_position now)
{
    if (ttd_position_compare(ttd_event_position(event), now) == 0) {
        state->counts.events++;
        state->counts.actions[event->action]++;
        state->counts.unfinished += !ttd_event_returned(event);
        state->counts.failed += ttd_event_returned(event) && !event->result;
    }
    state->in_flight += event->action == TTD_ACTION_REALLOC && event->result && event->address &&
                        ttd_position_compare(event->time_start, now) <= 0 &&
                        ttd_position_compare(event->time_end, now) > 0;
}

/*
 * The order at one position: first the effects of calls in flight before it, by event; then the
 * events of the position, each with all its effects.
 */
void heap_model_run(struct heap_model states[HEAP_MODEL_TICKS], const struct ttd_event *events,
                    size_t count)
{
    struct effect all[EFFECTS_MAX];
    size_t used = 0;
    struct heap_model state = {.count = 0};
    for (size_t i = 0; i < count; i++)
        used += list_effects(&events[i], all + used);
    for (unsigned tick = 0; tick < HEAP_MODEL_TICKS; tick++) {
        struct ttd_position now = heap_model_at(tick);
        state.in_flight = 0;
        for (size_t i = 0; i < count; i++)
            count_call(&state, &events[i], now);
        for (int late = 0; late < 2; late++)
            for (size_t i = 0; i < used; i++)
                if (all[i].is_late == late && ttd_position_compare(all[i].position, now) == 0)
                    apply(&state, &all[i]);
        states[tick] = state;
    }
}

/* ---- Comparison ---- */

static void expect_counts(const struct heap_counts *expected, const struct heap_counts *found)
{
    cr_assert_eq(found->events, expected->events);
    cr_assert_eq(found->failed, expected->failed);
    cr_assert_eq(found->unfinished, expected->unfinished);
    cr_assert_eq(found->unknown_releases, expected->unknown_releases);
    cr_assert_eq(found->overlaps, expected->overlaps);
    for (size_t i = 0; i <= TTD_ACTION_DESTROY; i++)
        cr_assert_eq(found->actions[i], expected->actions[i]);
}

static void expect_block(const struct ttd_event *event, const struct heap_block *block)
{
    cr_assert_not_null(block);
    cr_assert_eq(block->event, event->number);
    cr_assert_eq(block->size, event->size);
    cr_assert_eq(block->stack, event->stack);
    cr_assert_eq(block->heap, event->heap);
    cr_assert_eq(block->thread, event->thread);
    cr_assert_eq(block->api, event->api);
    cr_assert_eq(ttd_position_compare(block->allocated, event->time_end), 0);
}

void heap_model_expect_progress(const struct heap_model *expected, const struct heap_replay *replay)
{
    expect_counts(&expected->counts, &replay->counts);
    cr_assert_eq(ttd_position_compare(replay->position, expected->position), 0);
    cr_assert_eq(replay->queue.count, expected->in_flight);
}

struct heap_sum heap_model_bytes(const struct heap_model *state)
{
    struct heap_sum bytes = {0};
    for (size_t i = 0; i < state->count; i++) {
        uint64_t size = heap_model_parent(state->live[i]->heap) ? 0 : state->live[i]->size;
        bytes.low += size;
        bytes.high += bytes.low < size;
    }
    return bytes;
}

size_t heap_model_outer_count(const struct heap_model *state)
{
    size_t count = 0;
    for (size_t i = 0; i < state->count; i++)
        count += heap_model_parent(state->live[i]->heap) == TTD_NONE;
    return count;
}

const struct heap_model *heap_model_peak(const struct heap_model *states, unsigned count)
{
    const struct heap_model *peak = &states[0];
    for (unsigned i = 1; i < count; i++)
        if (heap_sum_is_less(heap_model_bytes(peak), heap_model_bytes(&states[i])))
            peak = &states[i];
    return peak;
}

void heap_model_expect(const struct heap_model *expected, const struct heap_replay *replay)
{
    struct heap_sum bytes = heap_model_bytes(expected);
    heap_model_expect_progress(expected, replay);
    cr_assert_eq(replay->live.count, expected->count);
    cr_assert_eq(replay->live.outer_count, heap_model_outer_count(expected));
    cr_assert_eq(replay->live.bytes.high, bytes.high);
    cr_assert_eq(replay->live.bytes.low, bytes.low);
    size_t cursor = 0;
    size_t seen = 0;
    while (heap_live_each(&replay->live, &cursor))
        seen++;
    cr_assert_eq(seen, expected->count);
    for (size_t i = 0; i < expected->count; i++)
        expect_block(expected->live[i], heap_live_find(&replay->live, expected->live[i]->address,
                                                       expected->live[i]->heap));
}
