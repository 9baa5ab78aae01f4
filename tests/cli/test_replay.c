/* SPDX-License-Identifier: MIT */
/* The replay engine against a model that is too simple to be wrong. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "heap/replay.h"

#define EVENTS_MAX  40
#define ADDRESSES   7
#define HEAPS       3
#define TICKS       90
#define TRACES      6000
#define EFFECTS_MAX (2 * EVENTS_MAX)

static uint64_t seed;

static unsigned pick(unsigned count)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((seed >> 33) % count);
}

static ttd_position at(unsigned tick)
{
    /* Sequences of four steps. */
    return (ttd_position){tick / 4, tick % 4};
}

/* ---- Random traces ---- */

/* An address may have several ordinals in a chunk. */
static uint32_t random_ordinal(uint64_t address)
{
    return address ? (uint32_t)(address - 0x1000) / 16 * 2 + pick(2) : pick(99);
}

static ttd_event random_event(unsigned clock)
{
    static const uint8_t actions[] = {TTD_ACTION_ALLOC,   TTD_ACTION_ALLOC,   TTD_ACTION_ALLOC,
                                      TTD_ACTION_FREE,    TTD_ACTION_FREE,    TTD_ACTION_REALLOC,
                                      TTD_ACTION_REALLOC, TTD_ACTION_REALLOC, TTD_ACTION_DESTROY,
                                      TTD_ACTION_CREATE,  TTD_ACTION_LOCK,    TTD_ACTION_PROTECT};
    ttd_event event = {.action = actions[pick(sizeof actions)]};
    event.time_start = at(clock);
    event.time_end = pick(12) ? at(clock + pick(12)) : ttd_position_invalid();
    event.result = ttd_event_returned(&event) && pick(8);
    event.thread = 1 + pick(3);
    event.heap = 1 + pick(HEAPS);
    event.stack = pick(5);
    bool allocates = event.action == TTD_ACTION_ALLOC || event.action == TTD_ACTION_REALLOC;
    bool is_given = event.action == TTD_ACTION_FREE || event.action == TTD_ACTION_REALLOC;
    if (allocates) {
        event.size = pick(100);
        event.address = pick(10) ? 0x1000 + 16 * pick(ADDRESSES) : 0;
    }
    if (is_given && pick(8))
        event.base_address = 0x1000 + 16 * pick(ADDRESSES);
    if (event.action == TTD_ACTION_REALLOC)
        event.previous_address = event.base_address;
    event.address_ordinal = random_ordinal(event.address);
    event.base_ordinal = random_ordinal(event.base_address);
    return event;
}

static size_t random_trace(ttd_event *events)
{
    size_t count = pick(EVENTS_MAX) + 1;
    for (size_t i = 0; i < count; i++)
        events[i] = random_event(pick(TICKS - 12));
    /* Insertion into the order of effect positions; equal ones stay as they came. */
    for (size_t i = 1; i < count; i++) {
        ttd_event event = events[i];
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

/* ---- The model: a list of effects, sorted, applied to a list of blocks ---- */

typedef struct effect {
    ttd_position position;
    /* Of equal positions, what calls in flight acquire comes first. */
    int is_late;
    size_t event;
    char what;
} effect;

typedef struct model {
    const ttd_event *live[EVENTS_MAX];
    size_t count;
    uint64_t unknown_releases;
    uint64_t overlaps;
} model;

static void model_remove(model *state, size_t index)
{
    state->live[index] = state->live[--state->count];
}

static bool model_release(model *state, uint64_t address)
{
    for (size_t i = 0; i < state->count; i++) {
        if (state->live[i]->address == address) {
            model_remove(state, i);
            return true;
        }
    }
    return false;
}

static size_t effects_of(const ttd_event *event, size_t index, effect *effects)
{
    bool returned = ttd_event_returned(event);
    size_t count = 0;
    if (event->action == TTD_ACTION_ALLOC && event->result && event->address)
        effects[count++] = (effect){event->time_end, 1, index, '+'};
    if (event->action == TTD_ACTION_FREE && event->base_address && (event->result || !returned))
        effects[count++] = (effect){event->time_start, 1, index, '-'};
    if (event->action == TTD_ACTION_DESTROY && (event->result || !returned))
        effects[count++] = (effect){event->time_start, 1, index, 'd'};
    if (event->action == TTD_ACTION_REALLOC && event->result) {
        if (event->base_address)
            effects[count++] = (effect){event->time_start, 1, index, '-'};
        if (event->address)
            effects[count++] = (effect){event->time_end, 0, index, '+'};
    }
    return count;
}

static void model_apply(model *state, const ttd_event *events, const effect *item)
{
    const ttd_event *event = &events[item->event];
    if (item->what == 'd') {
        for (size_t i = state->count; i > 0; i--)
            if (state->live[i - 1]->heap == event->heap)
                model_remove(state, i - 1);
    } else if (item->what == '-') {
        if (!model_release(state, event->base_address))
            state->unknown_releases++;
    } else {
        if (model_release(state, event->address))
            state->overlaps++;
        state->live[state->count++] = event;
    }
}

static bool is_at_start(const effect *item, const ttd_event *events)
{
    const ttd_event *event = &events[item->event];
    return event->action == TTD_ACTION_REALLOC && item->what == '+' &&
           ttd_position_compare(event->time_end, event->time_start) == 0;
}

/*
 * The state at a position: all effects up to it, in order. Of one position: first what was in
 * flight before it, by event; then the events of the position, each with all it does.
 */
static void model_at(model *state, const ttd_event *events, size_t count, ttd_position position)
{
    effect all[EFFECTS_MAX];
    size_t used = 0;
    memset(state, 0, sizeof *state);
    for (size_t i = 0; i < count; i++)
        used += effects_of(&events[i], i, all + used);
    for (unsigned tick = 0; tick < TICKS + 12; tick++) {
        ttd_position now = at(tick);
        if (ttd_position_compare(now, position) > 0)
            return;
        for (int late = 0; late < 2; late++)
            for (size_t i = 0; i < used; i++) {
                bool is_late = all[i].is_late || is_at_start(&all[i], events);
                if (is_late == late && ttd_position_compare(all[i].position, now) == 0)
                    model_apply(state, events, &all[i]);
            }
    }
}

/* ---- Comparison ---- */

static void expect_equal(const model *expected, const heap_replay *replay)
{
    cr_assert_eq(replay->live.count, expected->count);
    cr_assert_eq(replay->counts.unknown_releases, expected->unknown_releases);
    cr_assert_eq(replay->counts.overlaps, expected->overlaps);
    size_t cursor = 0;
    size_t seen = 0;
    const heap_block *block;
    while ((block = heap_live_each(&replay->live, &cursor)))
        seen++;
    cr_assert_eq(seen, expected->count);
    for (size_t i = 0; i < expected->count; i++) {
        const ttd_event *event = expected->live[i];
        block = heap_live_find(&replay->live, event->address);
        cr_assert_not_null(block);
        cr_assert_eq(block->event, event->number);
        cr_assert_eq(block->size, event->size);
        cr_assert_eq(block->stack, event->stack);
        cr_assert_eq(block->heap, event->heap);
        cr_assert_eq(block->thread, event->thread);
        cr_assert_eq(ttd_position_compare(block->allocated, event->time_end), 0);
    }
}

/* Goes to ever later positions, feeding events in batches of random size. */
static void replay_forward(heap_replay *replay, const ttd_event *events, size_t count)
{
    size_t next = 0;
    size_t chunk = 1 + pick(EVENTS_MAX);
    for (unsigned tick = 0; tick < TICKS; tick += 1 + pick(3)) {
        size_t applied = 1;
        while (next < count && applied) {
            size_t batch = 1 + pick(5);
            size_t left = (next / chunk + 1) * chunk - next;
            batch = batch < count - next ? batch : count - next;
            batch = batch < left ? batch : left;
            cr_assert_eq(
                heap_replay_apply(replay, next / chunk, events + next, batch, at(tick), &applied),
                TTD_OK);
            next += applied;
            if (applied < batch)
                break;
        }
        cr_assert_eq(heap_replay_settle(replay, at(tick)), TTD_OK);
        model expected;
        model_at(&expected, events, count, at(tick));
        expect_equal(&expected, replay);
    }
}

Test(replay, agrees_with_model_at_every_position)
{
    ttd_event events[EVENTS_MAX];
    for (seed = 1; seed < TRACES; seed++) {
        uint64_t kept = seed;
        size_t count = random_trace(events);
        heap_replay replay;
        cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);
        replay_forward(&replay, events, count);
        heap_replay_free(&replay);
        seed = kept;
    }
}

/* ---- Observers ---- */

typedef struct watcher {
    /* What is live, as far as effects tell. */
    heap_block live[EVENTS_MAX];
    size_t count;
    size_t acquired;
    size_t gone;
} watcher;

static void watch_removal(watcher *state, uint64_t address)
{
    for (size_t i = 0; i < state->count; i++) {
        if (state->live[i].address == address) {
            state->live[i] = state->live[--state->count];
            return;
        }
    }
    cr_assert_fail("what was not acquired was released");
}

static ttd_status watch(void *context, const heap_effect *seen)
{
    watcher *state = context;
    switch (seen->kind) {
    case HEAP_ACQUIRED:
        if (seen->previous)
            cr_assert_eq(seen->block->user, seen->previous->user);
        else
            seen->block->user = (uint32_t)(seen->event + 1);
        state->live[state->count++] = *seen->block;
        state->acquired++;
        break;
    case HEAP_RELEASED:
    case HEAP_OVERLAPPED:
        watch_removal(state, seen->block->address);
        state->gone++;
        break;
    case HEAP_DESTROYED:
        for (size_t i = state->count; i > 0; i--) {
            if (state->live[i - 1].heap == seen->heap)
                state->live[i - 1] = state->live[--state->count];
        }
        break;
    case HEAP_DISCARDED:
        state->gone++;
        break;
    case HEAP_UNKNOWN_RELEASE:
        cr_assert_null(seen->block);
        break;
    }
    return TTD_OK;
}

Test(replay, observer_sees_every_change)
{
    ttd_event events[EVENTS_MAX];
    for (seed = 1; seed < TRACES; seed++) {
        uint64_t kept = seed;
        size_t count = random_trace(events);
        watcher state = {.count = 0};
        heap_observer observer = {.context = &state, .effect = watch};
        heap_replay replay;
        cr_assert_eq(heap_replay_init(&replay, &observer), TTD_OK);
        replay_forward(&replay, events, count);
        cr_assert_eq(state.count, replay.live.count);
        for (size_t i = 0; i < state.count; i++) {
            const heap_block *block = heap_live_find(&replay.live, state.live[i].address);
            cr_assert_not_null(block);
            cr_assert_eq(block->event, state.live[i].event);
        }
        heap_live_sweep(&replay.live);
        cr_assert_eq(state.acquired, state.gone + state.count);
        heap_replay_free(&replay);
        seed = kept;
    }
}

static ttd_status refuse(void *context, const heap_effect *seen)
{
    (void)seen;
    return --*(int *)context < 0 ? TTD_ERROR_NO_MEMORY : TTD_OK;
}

Test(replay, observer_ends_the_replay)
{
    ttd_event events[4];
    for (unsigned i = 0; i < 4; i++)
        events[i] = (ttd_event){.number = i,
                                .action = TTD_ACTION_ALLOC,
                                .time_start = at(i),
                                .time_end = at(i),
                                .result = 1,
                                .address = 0x10 + i,
                                .address_ordinal = i};
    int allowed = 2;
    heap_observer observer = {.context = &allowed, .effect = refuse};
    heap_replay replay;
    cr_assert_eq(heap_replay_init(&replay, &observer), TTD_OK);
    size_t applied;
    cr_assert_eq(heap_replay_apply(&replay, 1, events, 4, ttd_position_max(), &applied),
                 TTD_ERROR_NO_MEMORY);
    heap_replay_free(&replay);
}

/* ---- The table ---- */

#define MANY 200000

/* Acquires a block; returns whether another was replaced. */
static bool acquire(heap_live *live, uint64_t address, ttd_id heap, uint64_t size,
                    uint64_t *replaced_size)
{
    uint32_t entry;
    heap_acquisition acquisition;
    cr_assert_eq(heap_live_entry(live, address, &entry), TTD_OK);
    cr_assert_eq(heap_live_acquire(live, entry, heap, &acquisition), TTD_OK);
    cr_assert_eq(acquisition.block->address, address);
    *replaced_size = acquisition.block->size;
    acquisition.block->size = size;
    acquisition.block->heap = heap;
    return acquisition.replaced;
}

static bool release(heap_live *live, uint64_t address, uint64_t *size)
{
    uint32_t entry;
    cr_assert_eq(heap_live_entry(live, address, &entry), TTD_OK);
    bool known = heap_live_release(live, entry);
    *size = live->blocks[entry].size;
    return known;
}

Test(live, agrees_with_array)
{
    heap_live live;
    cr_assert_eq(heap_live_init(&live), TTD_OK);
    static uint64_t model_size[MANY];
    static ttd_id model_heap[MANY];
    uint64_t expected = 0;
    seed = 7;
    for (unsigned i = 0; i < 4 * MANY; i++) {
        unsigned slot = pick(MANY);
        uint64_t address = 0x7f0000000000 + (uint64_t)slot * 16;
        if (pick(100000) == 0) {
            ttd_id heap = 1 + pick(HEAPS);
            uint64_t destroyed = 0;
            for (unsigned k = 0; k < MANY; k++) {
                if (model_heap[k] != heap)
                    continue;
                model_heap[k] = 0;
                destroyed++;
            }
            cr_assert_eq(heap_live_destroy(&live, heap), destroyed);
            expected -= destroyed;
        } else if (pick(5) < 3) {
            ttd_id heap = 1 + pick(HEAPS);
            uint64_t old;
            bool replaced = acquire(&live, address, heap, i, &old);
            cr_assert_eq(replaced, model_heap[slot] != 0);
            if (replaced)
                cr_assert_eq(old, model_size[slot]);
            expected += model_heap[slot] == 0;
            model_heap[slot] = heap;
            model_size[slot] = i;
        } else {
            uint64_t old;
            bool known = release(&live, address, &old);
            cr_assert_eq(known, model_heap[slot] != 0);
            if (known)
                cr_assert_eq(old, model_size[slot]);
            expected -= known;
            model_heap[slot] = 0;
        }
        if (heap_live_is_littered(&live))
            heap_live_sweep(&live);
        cr_assert_eq(live.count, expected);
    }
    heap_live_free(&live);
}

/* Destroying small heaps again and again costs nothing for the blocks of others. */
Test(live, destruction_is_cheap, .timeout = 20)
{
    heap_live live;
    uint64_t old;
    cr_assert_eq(heap_live_init(&live), TTD_OK);
    for (uint64_t i = 1; i <= 1000000; i++)
        cr_assert_not(acquire(&live, i * 32, 1, i, &old));
    for (uint64_t i = 1; i <= 1000000; i++) {
        cr_assert_not(acquire(&live, UINT64_C(0x10000000000) + i * 32, 2, i, &old));
        cr_assert_eq(heap_live_destroy(&live, 2), 1);
        if (heap_live_is_littered(&live))
            heap_live_sweep(&live);
    }
    cr_assert_eq(live.count, 1000000);
    cr_assert_lt(live.slot_capacity, 8000000);
    heap_live_free(&live);
}
