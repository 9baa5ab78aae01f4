/* SPDX-License-Identifier: MIT */
/* A replay of a part of memory has the effects there that a full replay has. */
#include "travel/replay_part.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "heap/heap_live.h"
#include "support/heap/indexed_trace.h"

#define TRACES     400
#define RANGES_MAX 3
#define SEEN_MAX   200
/* The memory that the calls of heap_model use. */
#define MEMORY_BEGIN 0x1000
#define MEMORY_SIZE  0x90

/* An effect, without the numbers that differ between two replays. */
struct seen {
    enum heap_effect_kind kind;
    struct ttd_position position;
    uint64_t event;
    uint64_t address;
    uint64_t size;
    uint64_t block_event;
    uint64_t previous_event;
    bool continues;
};

struct watch {
    struct heap_address_range ranges[RANGES_MAX];
    size_t range_count;
    struct seen seen[SEEN_MAX];
    size_t count;
};

static bool meets(void *context, uint64_t address, uint64_t size)
{
    const struct watch *watch = context;
    for (size_t i = 0; i < watch->range_count; i++) {
        const struct heap_address_range *range = &watch->ranges[i];
        if (address <= range->last && range->first < address + size)
            return true;
    }
    return false;
}

static bool has_some(struct watch *watch, const struct heap_block *block)
{
    return meets(watch, block->address, block->size ? block->size : 1);
}

static enum ttd_status see_effect(void *context, const struct heap_effect *effect)
{
    struct watch *watch = context;
    const struct heap_block *block = effect->block, *previous = effect->previous;
    if (!block || !has_some(watch, block))
        return TTD_OK;
    cr_assert(watch->count < SEEN_MAX);
    struct seen *seen = &watch->seen[watch->count++];
    memset(seen, 0, sizeof *seen);
    seen->kind = effect->kind;
    seen->position = effect->position;
    /* A destruction has no event here. */
    seen->event = effect->kind == HEAP_DISCARDED ? 0 : effect->event;
    seen->address = block->address;
    seen->size = block->size;
    seen->block_event = block->event;
    seen->previous_event = previous && has_some(watch, previous) ? previous->event + 1 : 0;
    seen->continues = effect->continues;
    return TTD_OK;
}

static int compare_seen(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct seen));
}

static struct heap_observer observer_of(struct watch *watch)
{
    return (struct heap_observer){.context = watch,
                                  .effect = see_effect,
                                  .unwanted = HEAP_EFFECT_BIT(HEAP_UNKNOWN_RELEASE) |
                                              HEAP_EFFECT_BIT(HEAP_DESTROYED)};
}

static void replay_all(struct watch *watch, struct indexed_trace *indexed, struct ttd_position to)
{
    struct heap_trace trace = {.reader = indexed->reader};
    struct heap_observer observer = observer_of(watch);
    struct heap_route route = {.to = to, .observer = &observer};
    struct heap_arrival arrival;
    struct ttd_error error;
    cr_assert_eq(heap_replay_to(&arrival, &trace, &route, &error), TTD_OK);
    heap_live_discard_stale(&arrival.cursor.replay.live);
    heap_arrival_free(&arrival);
}

static void replay_part(struct watch *watch, struct indexed_trace *indexed, struct ttd_position to)
{
    struct heap_trace trace = {.reader = indexed->reader};
    struct heap_observer observer = observer_of(watch);
    struct heap_part_route route = {
        .memory = {watch, meets}, .end = UINT64_MAX, .to = to, .observer = &observer};
    struct ttd_error error;
    cr_assert_eq(heap_replay_part(&trace, &route, &error), TTD_OK);
}

static void watch_some(struct watch *watch, struct entropy *entropy)
{
    watch->range_count = 1 + entropy_pick(entropy, RANGES_MAX);
    watch->count = 0;
    for (size_t i = 0; i < watch->range_count; i++) {
        uint64_t first = MEMORY_BEGIN + entropy_pick(entropy, MEMORY_SIZE);
        watch->ranges[i] = (struct heap_address_range){first, first + entropy_pick(entropy, 32)};
    }
}

static size_t compare(struct indexed_trace *indexed)
{
    static struct watch all, part;
    struct ttd_position to = heap_model_at(entropy_pick(&indexed->entropy, HEAP_MODEL_TICKS));
    watch_some(&all, &indexed->entropy);
    part = all;
    replay_all(&all, indexed, to);
    replay_part(&part, indexed, to);
    qsort(all.seen, all.count, sizeof *all.seen, compare_seen);
    qsort(part.seen, part.count, sizeof *part.seen, compare_seen);
    cr_assert_eq(part.count, all.count);
    cr_assert_eq(memcmp(part.seen, all.seen, all.count * sizeof *all.seen), 0);
    return all.count;
}

Test(replay_part, has_the_effects_of_a_full_replay)
{
    static struct indexed_trace indexed;
    size_t effects = 0;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        indexed_trace_open(&indexed, seed);
        effects += compare(&indexed);
        indexed_trace_close(&indexed);
    }
    cr_assert_gt(effects, TRACES);
}
