/* SPDX-License-Identifier: MIT */
/* The replay engine against a model that is too simple to be wrong. */
#include <criterion/criterion.h>

#include "heap/replay.h"
#include "support/heap_model.h"

#define TRACES 6000

/* The first of the states with the largest number of bytes. */
static const struct heap_model *find_peak(const struct heap_model *states, unsigned count)
{
    const struct heap_model *peak = &states[0];
    for (unsigned i = 1; i < count; i++)
        if (heap_sum_is_less(heap_model_bytes(peak), heap_model_bytes(&states[i])))
            peak = &states[i];
    return peak;
}

static void expect_peak(const struct heap_model *expected, const struct heap_peak *peak)
{
    struct heap_sum bytes = heap_model_bytes(expected);
    cr_assert_eq(peak->bytes.high, bytes.high);
    cr_assert_eq(peak->bytes.low, bytes.low);
    if (!bytes.high && !bytes.low)
        return;
    cr_assert_eq(ttd_position_compare(peak->position, expected->position), 0);
    cr_assert_eq(peak->blocks, expected->count);
}

/* Goes to ever later positions, feeding events in batches of random size. */
static void replay_forward(struct heap_replay *replay, const struct ttd_event *events, size_t count)
{
    static struct heap_model states[HEAP_MODEL_TICKS];
    size_t next = 0;
    heap_model_run(states, events, count);
    size_t chunk = 1 + heap_model_pick(HEAP_MODEL_EVENTS_MAX);
    for (unsigned tick = 0; tick < HEAP_MODEL_TICKS; tick += 1 + heap_model_pick(3)) {
        size_t applied = 1;
        while (next < count && applied) {
            size_t batch = 1 + heap_model_pick(5);
            size_t left = (next / chunk + 1) * chunk - next;
            batch = batch < count - next ? batch : count - next;
            batch = batch < left ? batch : left;
            struct ttd_batch given = heap_model_batch(next / chunk, events + next, batch);
            cr_assert_eq(heap_replay_apply(replay, &given, heap_model_at(tick), &applied), TTD_OK);
            next += applied;
            if (applied < batch)
                break;
        }
        cr_assert_eq(heap_replay_settle(replay, heap_model_at(tick)), TTD_OK);
        heap_model_expect(&states[tick], replay);
        struct heap_peak peak = heap_replay_peak(replay);
        expect_peak(find_peak(states, tick + 1), &peak);
    }
}

/* Sizes that are nonsense: their sums exceed 64 bits. */
static void enlarge(struct ttd_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++)
        events[i].size <<= 57;
}

Test(replay, agrees_with_model_at_every_position)
{
    struct ttd_event events[HEAP_MODEL_EVENTS_MAX];
    for (heap_model_seed = 1; heap_model_seed < TRACES; heap_model_seed++) {
        uint64_t kept = heap_model_seed;
        size_t count = heap_model_events(events);
        struct heap_replay replay;
        if (kept % 4 == 0)
            enlarge(events, count);
        cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);
        replay_forward(&replay, events, count);
        heap_replay_free(&replay);
        heap_model_seed = kept;
    }
}

/* ---- What was live at the peak ---- */

static bool is_live(const struct heap_model *state, const struct heap_block *block)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->live[i]->number == block->event && state->live[i]->address == block->address)
            return true;
    return false;
}

static void expect_kept(const struct heap_model *expected, const struct heap_replay *replay)
{
    const struct heap_block_copies *ended = &replay->ended_since_peak;
    size_t cursor = 0;
    size_t found = ended->count;
    const struct heap_block *block;
    expect_peak(expected, &replay->peak);
    for (size_t i = 0; i < ended->count; i++)
        cr_assert(is_live(expected, &ended->blocks[i]));
    if (!replay->peak.bytes.low)
        return;
    while ((block = heap_live_each(&replay->live, &cursor))) {
        if (ttd_position_compare(block->allocated, replay->peak.position) > 0)
            continue;
        cr_assert(is_live(expected, block));
        found++;
    }
    cr_assert_eq(found, expected->count);
}

Test(replay, keeps_what_was_live_at_the_peak)
{
    static struct heap_model states[HEAP_MODEL_TICKS];
    struct ttd_event events[HEAP_MODEL_EVENTS_MAX];
    for (heap_model_seed = 1; heap_model_seed < TRACES; heap_model_seed++) {
        uint64_t kept = heap_model_seed;
        size_t count = heap_model_events(events);
        heap_model_run(states, events, count);
        struct ttd_batch batch = heap_model_batch(1, events, count);
        struct heap_replay replay;
        size_t applied;
        cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);
        heap_replay_keep_peak(&replay);
        cr_assert_eq(heap_replay_apply(&replay, &batch, ttd_position_max(), &applied), TTD_OK);
        cr_assert_eq(heap_replay_settle(&replay, ttd_position_max()), TTD_OK);
        cr_assert_eq(heap_replay_end_peak(&replay), TTD_OK);
        expect_kept(find_peak(states, HEAP_MODEL_TICKS), &replay);
        heap_replay_free(&replay);
        heap_model_seed = kept;
    }
}

static struct ttd_event call_at(unsigned tick, enum ttd_action action, uint64_t address,
                                uint64_t size)
{
    bool allocates = action == TTD_ACTION_ALLOC;
    return (struct ttd_event){.action = (uint8_t)action,
                              .time_start = heap_model_at(tick),
                              .time_end = heap_model_at(tick),
                              .result = 1,
                              .address = allocates ? address : 0,
                              .base_address = allocates ? 0 : address,
                              .size = size};
}

/* A block that came and went at the first position was never live at one. */
Test(replay, nothing_is_kept_of_no_peak)
{
    const uint64_t address = 0x10;
    struct ttd_event events[] = {call_at(0, TTD_ACTION_ALLOC, address, 100),
                                 call_at(0, TTD_ACTION_FREE, address, 0),
                                 call_at(2, TTD_ACTION_ALLOC, address, 0)};
    struct ttd_batch batch = {.kind = TTD_KIND_EVENTS,
                              .count = 3,
                              .u.events = events,
                              .addresses = &address,
                              .address_count = 1};
    struct heap_replay replay;
    size_t applied;
    cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);
    heap_replay_keep_peak(&replay);
    cr_assert_eq(heap_replay_apply(&replay, &batch, ttd_position_max(), &applied), TTD_OK);
    cr_assert_eq(heap_replay_end_peak(&replay), TTD_OK);
    cr_assert_eq(replay.peak.bytes.low, 0);
    cr_assert_eq(replay.ended_since_peak.count, 0);
    heap_replay_free(&replay);
}

/* ---- Addresses of a chunk ---- */

/* Numbers of chunks may be wrong; then their ordinals are still their own. */
Test(replay, chunks_are_told_apart_by_place)
{
    const uint64_t addresses[] = {0x10, 0x20};
    struct heap_replay replay;
    size_t applied;
    cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);
    for (unsigned i = 0; i < 2; i++) {
        struct ttd_event event = call_at(i, TTD_ACTION_ALLOC, addresses[i], 8);
        struct ttd_batch batch = {.kind = TTD_KIND_EVENTS,
                                  .count = 1,
                                  .chunk = {.number = UINT64_MAX, .offset = 64 * (i + 1)},
                                  .u.events = &event,
                                  .addresses = &addresses[i],
                                  .address_count = 1};
        cr_assert_eq(heap_replay_apply(&replay, &batch, ttd_position_max(), &applied), TTD_OK);
    }
    cr_assert_eq(replay.counts.overlaps, 0);
    cr_assert_not_null(heap_live_find(&replay.live, addresses[0]));
    cr_assert_not_null(heap_live_find(&replay.live, addresses[1]));
    heap_replay_free(&replay);
}

#define CHUNK_BLOCKS 10000
#define CHUNK_MORE   200

/* A chunk that goes on while most of what it spelled out is freed, and more is spelled out: what
 * was found of its addresses is good to its end. */
Test(replay, addresses_are_good_to_the_end_of_their_chunk)
{
    static struct ttd_event events[CHUNK_BLOCKS];
    static uint64_t addresses[CHUNK_BLOCKS + CHUNK_MORE];
    const unsigned freed = CHUNK_BLOCKS - CHUNK_BLOCKS / 6;
    struct heap_replay replay;
    size_t applied;
    struct ttd_batch batch = {.kind = TTD_KIND_EVENTS,
                              .chunk.offset = 7,
                              .u.events = events,
                              .addresses = addresses,
                              .address_count = CHUNK_BLOCKS};
    for (uint32_t i = 0; i < CHUNK_BLOCKS + CHUNK_MORE; i++)
        addresses[i] = 0x1000 + 16 * (uint64_t)i;
    cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);
    for (uint32_t i = 0; i < CHUNK_BLOCKS; i++) {
        events[i] = call_at(i, TTD_ACTION_ALLOC, addresses[i], 8);
        events[i].address_ordinal = i;
    }
    batch.count = CHUNK_BLOCKS;
    cr_assert_eq(heap_replay_apply(&replay, &batch, ttd_position_max(), &applied), TTD_OK);
    for (uint32_t i = 0; i < freed; i++) {
        events[i] = call_at(CHUNK_BLOCKS + i, TTD_ACTION_FREE, addresses[i], 0);
        events[i].base_ordinal = i;
    }
    batch.count = freed;
    cr_assert_eq(heap_replay_apply(&replay, &batch, ttd_position_max(), &applied), TTD_OK);
    cr_assert(heap_live_is_littered(&replay.live));
    /* Half of the addresses are new, and half of these were added before; then come old ones. */
    for (uint32_t i = 0; i < 2 * CHUNK_MORE; i++) {
        uint32_t ordinal = i < CHUNK_MORE ? CHUNK_BLOCKS + i : freed - 1 - (i - CHUNK_MORE);
        events[i] = call_at(2 * CHUNK_BLOCKS + i, TTD_ACTION_ALLOC, addresses[ordinal], 8);
        events[i].address_ordinal = ordinal;
    }
    batch.first_ordinal = CHUNK_BLOCKS - 1;
    batch.addresses = addresses + CHUNK_BLOCKS - 1;
    batch.address_count = 1 + CHUNK_MORE;
    batch.count = 2 * CHUNK_MORE;
    cr_assert_eq(heap_replay_apply(&replay, &batch, ttd_position_max(), &applied), TTD_OK);
    cr_assert_eq(replay.live.count, CHUNK_BLOCKS - freed + 2 * CHUNK_MORE);
    for (uint32_t i = 0; i < 2 * CHUNK_MORE; i++)
        cr_assert_not_null(heap_live_find(&replay.live, events[i].address));
    heap_replay_free(&replay);
}

/* ---- Observers ---- */

struct watcher {
    /* What is live, as far as effects tell. */
    struct heap_block live[HEAP_MODEL_EVENTS_MAX];
    size_t count;
    size_t acquired;
    size_t gone;
};

static void watch_removal(struct watcher *state, uint64_t address)
{
    for (size_t i = 0; i < state->count; i++) {
        if (state->live[i].address == address) {
            state->live[i] = state->live[--state->count];
            return;
        }
    }
    cr_assert_fail("what was not acquired was released");
}

static enum ttd_status watch(void *context, const struct heap_effect *seen)
{
    struct watcher *state = context;
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
    struct ttd_event events[HEAP_MODEL_EVENTS_MAX];
    for (heap_model_seed = 1; heap_model_seed < TRACES; heap_model_seed++) {
        uint64_t kept = heap_model_seed;
        size_t count = heap_model_events(events);
        struct watcher state = {.count = 0};
        struct heap_observer observer = {.context = &state, .effect = watch};
        struct heap_replay replay;
        cr_assert_eq(heap_replay_init(&replay, &observer), TTD_OK);
        replay_forward(&replay, events, count);
        cr_assert_eq(state.count, replay.live.count);
        for (size_t i = 0; i < state.count; i++) {
            const struct heap_block *block = heap_live_find(&replay.live, state.live[i].address);
            cr_assert_not_null(block);
            cr_assert_eq(block->event, state.live[i].event);
        }
        heap_live_sweep(&replay.live);
        cr_assert_eq(state.acquired, state.gone + state.count);
        heap_replay_free(&replay);
        heap_model_seed = kept;
    }
}

#define EFFECT_KINDS  (HEAP_UNKNOWN_RELEASE + 1)
#define EFFECTS_MAX   (4 * HEAP_MODEL_EVENTS_MAX)
#define MASKED_TRACES 200

/* What was told of, in order. */
struct listener {
    struct heap_effect effects[EFFECTS_MAX];
    size_t count;
};

static enum ttd_status listen(void *context, const struct heap_effect *seen)
{
    struct listener *to = context;
    cr_assert_lt(to->count, EFFECTS_MAX);
    to->effects[to->count++] = *seen;
    return TTD_OK;
}

static void hear(struct listener *to, const struct ttd_event *events, size_t count,
                 unsigned unwanted)
{
    struct heap_observer observer = {.context = to, .effect = listen, .unwanted = unwanted};
    struct ttd_batch batch = heap_model_batch(1, events, count);
    struct heap_replay replay;
    size_t applied;
    to->count = 0;
    cr_assert_eq(heap_replay_init(&replay, &observer), TTD_OK);
    cr_assert_eq(heap_replay_apply(&replay, &batch, ttd_position_max(), &applied), TTD_OK);
    cr_assert_eq(heap_replay_settle(&replay, ttd_position_max()), TTD_OK);
    heap_live_sweep(&replay.live);
    heap_replay_free(&replay);
}

/* Of all effects those that are wanted, and nothing else. */
static void expect_wanted(const struct listener *all, const struct listener *some,
                          unsigned unwanted)
{
    size_t next = 0;
    for (size_t i = 0; i < all->count; i++) {
        const struct heap_effect *effect = &all->effects[i];
        if (unwanted & HEAP_EFFECT_BIT(effect->kind))
            continue;
        cr_assert_lt(next, some->count);
        cr_assert_eq(some->effects[next].kind, effect->kind);
        cr_assert_eq(some->effects[next].event, effect->event);
        cr_assert_eq(some->effects[next].address, effect->address);
        cr_assert_eq(ttd_position_compare(some->effects[next].position, effect->position), 0);
        next++;
    }
    cr_assert_eq(next, some->count);
}

/* A block of a heap that was destroyed ended when some heap was. */
static void expect_destruction(const struct listener *all, const struct heap_effect *discarded)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->effects[i].kind == HEAP_DESTROYED &&
            ttd_position_compare(all->effects[i].position, discarded->position) == 0)
            return;
    cr_assert_fail("discarded when nothing was destroyed");
}

Test(replay, observer_hears_what_it_wants)
{
    static struct listener all;
    static struct listener some;
    struct ttd_event events[HEAP_MODEL_EVENTS_MAX];
    size_t discarded = 0;
    for (heap_model_seed = 1; heap_model_seed < MASKED_TRACES; heap_model_seed++) {
        uint64_t kept = heap_model_seed;
        size_t count = heap_model_events(events);
        hear(&all, events, count, 0);
        for (unsigned unwanted = 0; unwanted < HEAP_EFFECT_BIT(EFFECT_KINDS); unwanted++) {
            hear(&some, events, count, unwanted);
            expect_wanted(&all, &some, unwanted);
        }
        for (size_t i = 0; i < all.count; i++) {
            if (all.effects[i].kind != HEAP_DISCARDED)
                continue;
            expect_destruction(&all, &all.effects[i]);
            discarded++;
        }
        heap_model_seed = kept;
    }
    cr_assert_gt(discarded, MASKED_TRACES / 4);
}

static enum ttd_status refuse(void *context, const struct heap_effect *seen)
{
    (void)seen;
    return --*(int *)context < 0 ? TTD_ERROR_NO_MEMORY : TTD_OK;
}

Test(replay, observer_ends_the_replay)
{
    struct ttd_event events[4];
    const uint64_t addresses[4] = {0x10, 0x11, 0x12, 0x13};
    for (unsigned i = 0; i < 4; i++)
        events[i] = (struct ttd_event){.number = i,
                                       .action = TTD_ACTION_ALLOC,
                                       .time_start = heap_model_at(i),
                                       .time_end = heap_model_at(i),
                                       .result = 1,
                                       .address = addresses[i],
                                       .address_ordinal = i};
    int allowed = 2;
    struct heap_observer observer = {.context = &allowed, .effect = refuse};
    struct heap_replay replay;
    cr_assert_eq(heap_replay_init(&replay, &observer), TTD_OK);
    struct ttd_batch batch = {.kind = TTD_KIND_EVENTS,
                              .count = 4,
                              .u.events = events,
                              .addresses = addresses,
                              .address_count = 4};
    size_t applied;
    cr_assert_eq(heap_replay_apply(&replay, &batch, ttd_position_max(), &applied),
                 TTD_ERROR_NO_MEMORY);
    heap_replay_free(&replay);
}

Test(replay, batches_must_not_be_missing)
{
    const uint64_t address = 0x10;
    struct ttd_event event = {
        .action = TTD_ACTION_FREE, .base_address = address, .base_ordinal = 3};
    struct ttd_batch batch = {.kind = TTD_KIND_EVENTS,
                              .count = 1,
                              .u.events = &event,
                              .addresses = &address,
                              .address_count = 1,
                              .first_ordinal = 3};
    struct heap_replay replay;
    cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);
    size_t applied;
    cr_assert_eq(heap_replay_apply(&replay, &batch, ttd_position_max(), &applied),
                 TTD_ERROR_ARGUMENT);
    heap_replay_free(&replay);
}

/* ---- The table ---- */

#define MANY 200000

/* Acquires a block; returns whether another was replaced. */
static bool acquire(struct heap_live *live, uint64_t address, ttd_id heap, uint64_t size,
                    uint64_t *replaced_size)
{
    uint32_t entry;
    struct heap_acquisition acquisition;
    cr_assert_eq(heap_live_entry(live, address, heap_live_hash(live, address), &entry), TTD_OK);
    cr_assert_eq(heap_live_acquire(live, entry, heap, size, &acquisition), TTD_OK);
    cr_assert_eq(acquisition.block->address, address);
    *replaced_size = acquisition.block->size;
    acquisition.block->size = size;
    acquisition.block->heap = heap;
    return acquisition.replaced;
}

static bool release(struct heap_live *live, uint64_t address, uint64_t *size)
{
    uint32_t entry;
    cr_assert_eq(heap_live_entry(live, address, heap_live_hash(live, address), &entry), TTD_OK);
    bool known = heap_live_release(live, entry);
    *size = live->blocks[entry].size;
    return known;
}

Test(live, agrees_with_array)
{
    struct heap_live live;
    cr_assert_eq(heap_live_init(&live), TTD_OK);
    static uint64_t model_size[MANY];
    static ttd_id model_heap[MANY];
    uint64_t expected = 0;
    heap_model_seed = 7;
    for (unsigned i = 0; i < 4 * MANY; i++) {
        unsigned slot = heap_model_pick(MANY);
        uint64_t address = 0x7f0000000000 + (uint64_t)slot * 16;
        if (heap_model_pick(100000) == 0) {
            ttd_id heap = 1 + heap_model_pick(HEAP_MODEL_HEAPS);
            uint64_t destroyed = 0;
            for (unsigned k = 0; k < MANY; k++) {
                if (model_heap[k] != heap)
                    continue;
                model_heap[k] = 0;
                destroyed++;
            }
            cr_assert_eq(heap_live_destroy(&live, heap, ttd_position_min()), destroyed);
            expected -= destroyed;
        } else if (heap_model_pick(5) < 3) {
            ttd_id heap = 1 + heap_model_pick(HEAP_MODEL_HEAPS);
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
    struct heap_live live;
    uint64_t old;
    cr_assert_eq(heap_live_init(&live), TTD_OK);
    for (uint64_t i = 1; i <= 1000000; i++)
        cr_assert_not(acquire(&live, i * 32, 1, i, &old));
    for (uint64_t i = 1; i <= 1000000; i++) {
        cr_assert_not(acquire(&live, UINT64_C(0x10000000000) + i * 32, 2, i, &old));
        cr_assert_eq(heap_live_destroy(&live, 2, ttd_position_min()), 1);
        if (heap_live_is_littered(&live))
            heap_live_sweep(&live);
    }
    cr_assert_eq(live.count, 1000000);
    cr_assert_lt(live.slot_capacity, 8000000);
    heap_live_free(&live);
}

/* Nor does it leave anything behind where an address is used again and again. */
Test(live, destruction_leaves_nothing)
{
    struct heap_live live;
    uint64_t old;
    cr_assert_eq(heap_live_init(&live), TTD_OK);
    for (uint64_t i = 1; i <= 1000000; i++) {
        cr_assert_not(acquire(&live, 32, 1, i, &old));
        cr_assert_eq(heap_live_destroy(&live, 1, ttd_position_min()), 1);
        if (heap_live_is_littered(&live))
            heap_live_sweep(&live);
    }
    cr_assert_lt(live.life_capacity, 10000);
    heap_live_free(&live);
}

/* Long after a peak new addresses cost no more than before it, and the table does not grow. */
Test(live, peak_is_over, .timeout = 20)
{
    struct heap_live live;
    uint64_t old;
    unsigned sweeps = 0;
    cr_assert_eq(heap_live_init(&live), TTD_OK);
    for (uint64_t i = 1; i <= 500000; i++)
        cr_assert_not(acquire(&live, i * 32, 1, i, &old));
    for (uint64_t i = 1; i <= 500000; i++)
        cr_assert(release(&live, i * 32, &old));
    size_t capacity = live.slot_capacity;
    for (uint64_t i = 1; i <= 2000000; i++) {
        uint64_t address = UINT64_C(0x10000000000) + i * 32;
        cr_assert_not(acquire(&live, address, 1, i, &old));
        cr_assert(release(&live, address, &old));
        if (!heap_live_is_littered(&live))
            continue;
        heap_live_sweep(&live);
        sweeps++;
    }
    cr_assert_lt(sweeps, 40);
    cr_assert_eq(live.slot_capacity, capacity);
    heap_live_free(&live);
}
