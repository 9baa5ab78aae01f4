/* SPDX-License-Identifier: MIT */
/* Effects that the observer of a replay is told of. */
#include <criterion/criterion.h>

#include "heap/replay.h"
#include "support/heap/heap_model.h"

#define TRACES        6000
#define MASKED_TRACES 200
#define EFFECT_KINDS  (HEAP_UNKNOWN_RELEASE + 1)
#define EFFECTS_MAX   (4 * HEAP_MODEL_EVENTS_MAX)

static void begin(struct heap_replay *replay, const struct heap_observer *observer)
{
    cr_assert_eq(heap_replay_init(replay, observer), TTD_OK);
}

/* ---- Blocks, as the effects tell of them ---- */

struct watcher {
    struct heap_block live[HEAP_MODEL_EVENTS_MAX];
    size_t count;
    size_t acquired;
    size_t gone;
};

static void remove_live(struct watcher *watcher, const struct heap_block *block)
{
    for (size_t i = 0; i < watcher->count; i++) {
        if (watcher->live[i].address == block->address && watcher->live[i].event == block->event) {
            watcher->live[i] = watcher->live[--watcher->count];
            watcher->gone++;
            return;
        }
    }
    cr_assert_fail("a block was released that was not acquired");
}

static void remove_heap(struct watcher *watcher, ttd_id heap)
{
    for (size_t i = watcher->count; i > 0; i--)
        if (watcher->live[i - 1].heap == heap)
            watcher->live[i - 1] = watcher->live[--watcher->count];
}

static void add_live(struct watcher *watcher, const struct heap_effect *effect)
{
    if (effect->previous)
        cr_assert_eq(effect->block->user, effect->previous->user);
    else
        effect->block->user = (uint32_t)(effect->event + 1);
    watcher->live[watcher->count++] = *effect->block;
    watcher->acquired++;
}

static enum ttd_status watch(void *context, const struct heap_effect *effect)
{
    struct watcher *watcher = context;
    switch (effect->kind) {
    case HEAP_ACQUIRED:
        add_live(watcher, effect);
        break;
    case HEAP_RELEASED:
    case HEAP_OVERLAPPED:
        remove_live(watcher, effect->block);
        break;
    case HEAP_DESTROYED:
        remove_heap(watcher, effect->heap);
        break;
    case HEAP_DISCARDED:
        watcher->gone++;
        break;
    case HEAP_UNKNOWN_RELEASE:
        cr_assert_null(effect->block);
        break;
    }
    return TTD_OK;
}

/* Stops at each tick, as somebody does who looks at every position. */
static void replay_tick_by_tick(struct heap_replay *replay, const struct ttd_event *events,
                                size_t count)
{
    size_t next = 0;
    for (unsigned tick = 0; tick < HEAP_MODEL_TICKS; tick++) {
        struct ttd_batch batch = heap_model_batch(1, events + next, count - next);
        size_t applied = 0;
        if (batch.count)
            cr_assert_eq(heap_replay_apply(replay, &batch, heap_model_at(tick), &applied), TTD_OK);
        cr_assert_eq(heap_replay_settle(replay, heap_model_at(tick)), TTD_OK);
        next += applied;
    }
    cr_assert_eq(next, count);
}

static void expect_live(const struct watcher *watcher, const struct heap_live *live)
{
    cr_assert_eq(watcher->count, live->count);
    for (size_t i = 0; i < watcher->count; i++) {
        const struct heap_block *block =
            heap_live_find(live, watcher->live[i].address, watcher->live[i].heap);
        cr_assert_not_null(block);
        cr_assert_eq(block->event, watcher->live[i].event);
    }
}

Test(replay_tell, tells_of_every_block_that_comes_or_goes)
{
    for (uint64_t seed = 1; seed < TRACES; seed++) {
        struct entropy entropy = entropy_of_seed(seed);
        struct ttd_event events[HEAP_MODEL_EVENTS_MAX];
        size_t count = heap_model_events(&entropy, events);
        struct watcher watcher = {.count = 0};
        struct heap_replay replay;
        begin(&replay, &(struct heap_observer){.context = &watcher, .effect = watch});

        replay_tick_by_tick(&replay, events, count);

        expect_live(&watcher, &replay.live);
        heap_live_sweep(&replay.live);
        cr_assert_eq(watcher.acquired, watcher.gone + watcher.count);
        heap_replay_free(&replay);
    }
}

/* The records keep their numbers, which the replay of a chunk goes by. */
Test(replay_tell, tells_of_stale_blocks_on_the_way)
{
    for (uint64_t seed = 1; seed < TRACES; seed++) {
        struct entropy entropy = entropy_of_seed(seed);
        struct ttd_event events[HEAP_MODEL_EVENTS_MAX];
        size_t count = heap_model_events(&entropy, events);
        struct ttd_batch batch = heap_model_batch(1, events, count);
        struct watcher watcher = {.count = 0};
        struct heap_replay replay;
        begin(&replay, &(struct heap_observer){.context = &watcher, .effect = watch});
        for (unsigned tick = 0; tick < HEAP_MODEL_TICKS; tick++) {
            size_t applied = 0;
            cr_assert_eq(heap_replay_apply(&replay, &batch, heap_model_at(tick), &applied), TTD_OK);
            batch.u.events += applied;
            batch.count -= applied;
            heap_live_discard_stale(&replay.live);
            cr_assert_eq(watcher.acquired, watcher.gone + watcher.count);
        }
        cr_assert_eq(heap_replay_settle(&replay, ttd_position_max()), TTD_OK);
        expect_live(&watcher, &replay.live);
        heap_replay_free(&replay);
    }
}

/* ---- Effects, in order ---- */

struct listener {
    struct heap_effect effects[EFFECTS_MAX];
    size_t count;
};

static enum ttd_status listen(void *context, const struct heap_effect *effect)
{
    struct listener *listener = context;
    cr_assert_lt(listener->count, EFFECTS_MAX);
    listener->effects[listener->count++] = *effect;
    return TTD_OK;
}

static void record_effects(struct listener *listener, const struct ttd_event *events, size_t count,
                           unsigned unwanted)
{
    struct ttd_batch batch = heap_model_batch(1, events, count);
    struct heap_replay replay;
    size_t applied;
    listener->count = 0;
    begin(&replay,
          &(struct heap_observer){.context = listener, .effect = listen, .unwanted = unwanted});
    cr_assert_eq(heap_replay_apply(&replay, &batch, ttd_position_max(), &applied), TTD_OK);
    cr_assert_eq(heap_replay_settle(&replay, ttd_position_max()), TTD_OK);
    heap_live_sweep(&replay.live);
    heap_replay_free(&replay);
}

/* Checks that a listener gets those of all effects that it wants, and nothing else. */
static void expect_wanted(const struct listener *all, const struct listener *some,
                          unsigned unwanted)
{
    size_t next = 0;
    for (size_t i = 0; i < all->count; i++) {
        const struct heap_effect *expected = &all->effects[i];
        if (unwanted & HEAP_EFFECT_BIT(expected->kind))
            continue;
        cr_assert_lt(next, some->count);
        const struct heap_effect *effect = &some->effects[next++];
        cr_assert_eq(effect->kind, expected->kind);
        cr_assert_eq(effect->event, expected->event);
        cr_assert_eq(effect->address, expected->address);
        cr_assert_eq(ttd_position_compare(effect->position, expected->position), 0);
    }
    cr_assert_eq(next, some->count);
}

Test(replay_tell, leaves_out_unwanted_kinds_and_nothing_else)
{
    static struct listener all;
    static struct listener some;
    for (uint64_t seed = 1; seed < MASKED_TRACES; seed++) {
        struct entropy entropy = entropy_of_seed(seed);
        struct ttd_event events[HEAP_MODEL_EVENTS_MAX];
        size_t count = heap_model_events(&entropy, events);
        record_effects(&all, events, count, 0);
        for (unsigned unwanted = 0; unwanted < HEAP_EFFECT_BIT(EFFECT_KINDS); unwanted++) {
            record_effects(&some, events, count, unwanted);
            expect_wanted(&all, &some, unwanted);
        }
    }
}

/* ---- Blocks that survive ---- */

/* The blocks that are live at the end, and the effects that are told when this is known. */
struct foreseen {
    uint64_t survivors[HEAP_MODEL_EVENTS_MAX];
    size_t count;
    struct listener told;
};

static bool survives(void *context, const struct heap_block *block)
{
    const struct foreseen *foreseen = context;
    for (size_t i = 0; i < foreseen->count; i++)
        if (foreseen->survivors[i] == block->event)
            return true;
    return false;
}

static enum ttd_status listen_foreseen(void *context, const struct heap_effect *effect)
{
    struct foreseen *foreseen = context;
    return listen(&foreseen->told, effect);
}

static void find_survivors(struct foreseen *foreseen, const struct ttd_event *events, size_t count)
{
    struct ttd_batch batch = heap_model_batch(1, events, count);
    struct heap_replay replay;
    size_t applied, cursor = 0;
    const struct heap_block *block;
    begin(&replay, NULL);
    cr_assert_eq(heap_replay_apply(&replay, &batch, ttd_position_max(), &applied), TTD_OK);
    cr_assert_eq(heap_replay_settle(&replay, ttd_position_max()), TTD_OK);
    foreseen->count = 0;
    while ((block = heap_live_each(&replay.live, &cursor)))
        foreseen->survivors[foreseen->count++] = block->event;
    heap_replay_free(&replay);
}

/* Replays with the survivors known. None of them is in the table then. */
static void replay_foreseen(struct foreseen *foreseen, const struct ttd_event *events, size_t count)
{
    struct ttd_batch batch = heap_model_batch(1, events, count);
    struct heap_replay replay;
    size_t applied;
    foreseen->told.count = 0;
    begin(&replay, &(struct heap_observer){
                       .context = foreseen, .effect = listen_foreseen, .survives = survives});
    cr_assert_eq(heap_replay_apply(&replay, &batch, ttd_position_max(), &applied), TTD_OK);
    cr_assert_eq(heap_replay_settle(&replay, ttd_position_max()), TTD_OK);
    cr_assert_eq(replay.live.count, 0);
    heap_live_sweep(&replay.live);
    heap_replay_free(&replay);
}

/* Whether the acquisition of a survivor may be left out: it ends no other block, and continues
 * none. */
static bool is_plain(const struct listener *all, size_t i)
{
    const struct heap_effect *effect = &all->effects[i];
    bool has_ended = i > 0 && all->effects[i - 1].kind == HEAP_OVERLAPPED &&
                     all->effects[i - 1].event == effect->event;
    return effect->kind == HEAP_ACQUIRED && effect->action == TTD_ACTION_ALLOC && !has_ended;
}

/* Removes the effects of blocks of destroyed heaps. Returns how many there were. */
static size_t remove_discarded(struct listener *listener)
{
    size_t kept = 0, count = listener->count;
    for (size_t i = 0; i < count; i++)
        if (listener->effects[i].kind != HEAP_DISCARDED)
            listener->effects[kept++] = listener->effects[i];
    listener->count = kept;
    return count - kept;
}

/* Checks that all is told but acquisitions of survivors. Returns how many were left out. Blocks of
 * destroyed heaps are told of in no particular order, when their records are needed. */
static size_t expect_all_but_survivors(struct listener *all, struct foreseen *foreseen)
{
    struct listener *told = &foreseen->told;
    size_t next = 0, left_out = 0;
    cr_assert_eq(remove_discarded(all), remove_discarded(told));
    for (size_t i = 0; i < all->count; i++) {
        const struct heap_effect *expected = &all->effects[i];
        struct heap_block block = {.event = expected->event};
        bool is_next = next < told->count && told->effects[next].kind == expected->kind &&
                       told->effects[next].event == expected->event &&
                       told->effects[next].address == expected->address;
        next += is_next;
        left_out += !is_next;
        cr_assert(is_next || (is_plain(all, i) && survives(foreseen, &block)));
    }
    cr_assert_eq(next, told->count);
    return left_out;
}

Test(replay_tell, leaves_out_acquisitions_of_blocks_that_survive_and_nothing_else)
{
    static struct listener all;
    static struct foreseen foreseen;
    size_t left_out = 0;
    for (uint64_t seed = 1; seed < TRACES; seed++) {
        struct entropy entropy = entropy_of_seed(seed);
        struct ttd_event events[HEAP_MODEL_EVENTS_MAX];
        size_t count = heap_model_events(&entropy, events);
        record_effects(&all, events, count, 0);
        find_survivors(&foreseen, events, count);
        replay_foreseen(&foreseen, events, count);
        left_out += expect_all_but_survivors(&all, &foreseen);
    }
    cr_assert_gt(left_out, TRACES / 10);
}

static bool is_destroyed_at(const struct listener *listener, struct ttd_position position)
{
    for (size_t i = 0; i < listener->count; i++)
        if (listener->effects[i].kind == HEAP_DESTROYED &&
            ttd_position_compare(listener->effects[i].position, position) == 0)
            return true;
    return false;
}

Test(replay_tell, discards_blocks_at_the_position_of_a_destruction)
{
    static struct listener all;
    size_t discarded = 0;
    for (uint64_t seed = 1; seed < MASKED_TRACES; seed++) {
        struct entropy entropy = entropy_of_seed(seed);
        struct ttd_event events[HEAP_MODEL_EVENTS_MAX];
        size_t count = heap_model_events(&entropy, events);
        record_effects(&all, events, count, 0);
        for (size_t i = 0; i < all.count; i++) {
            if (all.effects[i].kind != HEAP_DISCARDED)
                continue;
            cr_assert(is_destroyed_at(&all, all.effects[i].position));
            discarded++;
        }
    }
    cr_assert_gt(discarded, MASKED_TRACES / 4, "the traces destroy heaps that have blocks");
}

/* ---- Statuses ---- */

static enum ttd_status refuse_after(void *context, const struct heap_effect *effect)
{
    int *allowed = context;
    (void)effect;
    return --*allowed < 0 ? TTD_ERROR_NO_MEMORY : TTD_OK;
}

Test(replay_tell, ends_the_replay_with_the_status_of_the_observer)
{
    const uint64_t addresses[4] = {0x10, 0x11, 0x12, 0x13};
    struct ttd_event events[4];
    for (unsigned i = 0; i < 4; i++) {
        events[i] = heap_model_call(i, TTD_ACTION_ALLOC, addresses[i], 8);
        events[i].address_ordinal = i;
    }
    struct ttd_batch batch = heap_model_calls(events, 4, addresses, 4);
    int allowed = 2;
    size_t applied;
    struct heap_replay replay;
    begin(&replay, &(struct heap_observer){.context = &allowed, .effect = refuse_after});

    enum ttd_status status = heap_replay_apply(&replay, &batch, ttd_position_max(), &applied);

    cr_assert_eq(status, TTD_ERROR_NO_MEMORY);
    cr_assert_eq(allowed, -1, "it is not called again");
    heap_replay_free(&replay);
}
