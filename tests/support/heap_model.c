/* SPDX-License-Identifier: MIT */
#include "support/heap_model.h"

#include <criterion/criterion.h>

#define ADDRESSES    7
#define DURATION_MAX 12
#define EFFECTS_MAX  (2 * HEAP_MODEL_EVENTS_MAX)

uint64_t heap_model_seed;

unsigned heap_model_pick(unsigned count)
{
    heap_model_seed =
        heap_model_seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((heap_model_seed >> 33) % count);
}

struct ttd_position heap_model_at(unsigned tick)
{
    /* Sequences of four steps. */
    return (struct ttd_position){tick / 4, tick % 4};
}

/* ---- Random traces ---- */

/* An address may have several ordinals in a chunk. */
#define ORDINALS (2 * ADDRESSES)

static uint64_t nth_address(unsigned n)
{
    return 0x1000 + 16 * n;
}

static uint32_t random_ordinal(uint64_t address)
{
    return address ? (uint32_t)(address - 0x1000) / 16 * 2 + heap_model_pick(2)
                   : heap_model_pick(99);
}

struct ttd_batch heap_model_batch(uint64_t chunk, const struct ttd_event *events, size_t count)
{
    static uint64_t addresses[ORDINALS];
    for (unsigned i = 0; i < ORDINALS; i++)
        addresses[i] = nth_address(i / 2);
    return (struct ttd_batch){.kind = TTD_KIND_EVENTS,
                              .count = count,
                              .chunk.offset = chunk,
                              .u.events = events,
                              .addresses = addresses,
                              .address_count = ORDINALS};
}

static struct ttd_event random_event(unsigned clock)
{
    static const uint8_t actions[] = {TTD_ACTION_ALLOC,   TTD_ACTION_ALLOC,   TTD_ACTION_ALLOC,
                                      TTD_ACTION_FREE,    TTD_ACTION_FREE,    TTD_ACTION_REALLOC,
                                      TTD_ACTION_REALLOC, TTD_ACTION_REALLOC, TTD_ACTION_DESTROY,
                                      TTD_ACTION_CREATE,  TTD_ACTION_LOCK,    TTD_ACTION_UNLOCK,
                                      TTD_ACTION_PROTECT};
    struct ttd_event event = {.action = actions[heap_model_pick(sizeof actions)]};
    event.time_start = heap_model_at(clock);
    event.time_end = heap_model_pick(12) ? heap_model_at(clock + heap_model_pick(DURATION_MAX))
                                         : ttd_position_invalid();
    event.result = ttd_event_returned(&event) && heap_model_pick(8);
    event.thread = 1 + heap_model_pick(HEAP_MODEL_THREADS);
    event.heap = 1 + heap_model_pick(HEAP_MODEL_HEAPS);
    event.stack = heap_model_pick(HEAP_MODEL_STACKS + 1);
    bool allocates = event.action == TTD_ACTION_ALLOC || event.action == TTD_ACTION_REALLOC;
    bool is_given = event.action == TTD_ACTION_FREE || event.action == TTD_ACTION_REALLOC;
    if (allocates) {
        event.size = heap_model_pick(100);
        event.address = heap_model_pick(10) ? nth_address(heap_model_pick(ADDRESSES)) : 0;
    }
    if (is_given && heap_model_pick(8))
        event.base_address = nth_address(heap_model_pick(ADDRESSES));
    if (event.action == TTD_ACTION_REALLOC)
        event.previous_address = event.base_address;
    event.address_ordinal = random_ordinal(event.address);
    event.base_ordinal = random_ordinal(event.base_address);
    return event;
}

size_t heap_model_events(struct ttd_event events[HEAP_MODEL_EVENTS_MAX])
{
    size_t count = heap_model_pick(HEAP_MODEL_EVENTS_MAX) + 1;
    for (size_t i = 0; i < count; i++)
        events[i] = random_event(heap_model_pick(HEAP_MODEL_TICKS - 2 * DURATION_MAX));
    /* Insertion into the order of effect positions; equal ones stay as they came. */
    for (size_t i = 1; i < count; i++) {
        struct ttd_event event = events[i];
        size_t k = i;
        for (; k > 0 && ttd_position_compare(ttd_event_position(&event),
                                             ttd_event_position(&events[k - 1])) < 0;
             k--)
            events[k] = events[k - 1];
        events[k] = event;
    }
    for (size_t i = 0; i < count; i++)
        events[i].number = i;
    return count;
}

/* ---- The model: a list of effects, applied in order to a list of blocks ---- */

struct effect {
    struct ttd_position position;
    /* Of equal positions, what calls in flight acquire comes first. */
    bool is_late;
    const struct ttd_event *event;
    char what;
};

static void remove_block(struct heap_model *state, size_t index)
{
    state->live[index] = state->live[--state->count];
}

static bool release(struct heap_model *state, uint64_t address)
{
    for (size_t i = 0; i < state->count; i++) {
        if (state->live[i]->address == address) {
            remove_block(state, i);
            return true;
        }
    }
    return false;
}

static size_t list_effects(const struct ttd_event *event, struct effect *effects)
{
    bool returned = ttd_event_returned(event);
    size_t count = 0;
    if (event->action == TTD_ACTION_ALLOC && event->result && event->address)
        effects[count++] = (struct effect){event->time_end, true, event, '+'};
    if (event->action == TTD_ACTION_FREE && event->base_address && (event->result || !returned))
        effects[count++] = (struct effect){event->time_start, true, event, '-'};
    if (event->action == TTD_ACTION_DESTROY && (event->result || !returned))
        effects[count++] = (struct effect){event->time_start, true, event, 'd'};
    if (event->action == TTD_ACTION_REALLOC && event->result) {
        bool at_once = ttd_position_compare(event->time_end, event->time_start) == 0;
        if (event->base_address)
            effects[count++] = (struct effect){event->time_start, true, event, '-'};
        if (event->address)
            effects[count++] = (struct effect){event->time_end, at_once, event, '+'};
    }
    return count;
}

static void apply(struct heap_model *state, const struct effect *item)
{
    const struct ttd_event *event = item->event;
    state->position = item->position;
    if (item->what == 'd') {
        for (size_t i = state->count; i > 0; i--)
            if (state->live[i - 1]->heap == event->heap)
                remove_block(state, i - 1);
    } else if (item->what == '-') {
        if (!release(state, event->base_address))
            state->counts.unknown_releases++;
    } else {
        if (release(state, event->address))
            state->counts.overlaps++;
        state->live[state->count++] = event;
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
 * Of one position: first what was in flight before it, by event; then the events of the position,
 * each with all it does.
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
    __extension__ unsigned __int128 bytes = 0;
    for (size_t i = 0; i < state->count; i++)
        bytes += state->live[i]->size;
    return (struct heap_sum){(uint64_t)(bytes >> 64), (uint64_t)bytes};
}

void heap_model_expect(const struct heap_model *expected, const struct heap_replay *replay)
{
    struct heap_sum bytes = heap_model_bytes(expected);
    heap_model_expect_progress(expected, replay);
    cr_assert_eq(replay->live.count, expected->count);
    cr_assert_eq(replay->live.bytes.high, bytes.high);
    cr_assert_eq(replay->live.bytes.low, bytes.low);
    size_t cursor = 0;
    size_t seen = 0;
    while (heap_live_each(&replay->live, &cursor))
        seen++;
    cr_assert_eq(seen, expected->count);
    for (size_t i = 0; i < expected->count; i++)
        expect_block(expected->live[i], heap_live_find(&replay->live, expected->live[i]->address));
}
