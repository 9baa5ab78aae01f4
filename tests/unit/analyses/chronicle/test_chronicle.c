/* SPDX-License-Identifier: MIT */
/* A chronicle has at each moment the blocks that a model has, and sums between moments are
 * differences of the model's. */
#include <criterion/criterion.h>

#include "analyses/chronicle/chronicle.h"
#include "support/heap/indexed_trace.h"

#define TRACES 400

/* Pairs of moments that are drawn from each trace. */
#define RANGES 12

/* More keys than any series here has. */
#define KEYS_MAX 80

static struct indexed_trace indexed;
static struct chronicle chronicle;

static void open(uint64_t seed)
{
    struct heap_trace trace = {.reader = NULL};
    struct ttd_error error;
    indexed_trace_open(&indexed, seed);
    trace.reader = indexed.reader;
    /* The number of events is a guess: too few, none, or too many. */
    uint64_t guess = entropy_pick(&indexed.entropy, 3) * indexed.count / 2;
    cr_assert_eq(chronicle_make(&chronicle, &trace, guess, &error), TTD_OK);
    cr_assert_eq(chronicle_sort(&chronicle), TTD_OK);
}

static void close(void)
{
    chronicle_free(&chronicle);
    indexed_trace_close(&indexed);
}

/* The number of the last tick of the model at a position or before. */
static unsigned tick_at(struct ttd_position position)
{
    unsigned tick = 0;
    while (tick + 1 < HEAP_MODEL_TICKS &&
           ttd_position_compare(heap_model_at(tick + 1), position) <= 0)
        tick++;
    return tick;
}

static const struct heap_model *model_at(uint32_t moment)
{
    return &indexed.states[tick_at(chronicle_position(&chronicle, moment))];
}

static bool is_block_of(const struct chronicle_block *block, const struct ttd_event *event)
{
    return block->address == event->address && block->size == event->size &&
           block->stack == event->stack && block->thread == event->thread &&
           block->heap == event->heap;
}

/** Live blocks as they are visited: how many, and the address of the last one. */
struct visited {
    const struct heap_model *model;
    size_t count;
    uint64_t address;
};

static bool expect_live(void *context, uint32_t number)
{
    struct visited *visited = context;
    const struct chronicle_block *block = &chronicle.blocks[number];
    size_t same = 0;
    for (size_t i = 0; i < visited->model->count; i++)
        same += is_block_of(block, visited->model->live[i]);
    cr_assert_gt(same, 0);
    cr_assert_leq(visited->address, block->address);
    cr_assert_eq(block->is_nested, heap_model_parent(block->heap) != TTD_NONE);
    visited->address = block->address;
    visited->count++;
    return true;
}

Test(chronicle, has_the_blocks_of_each_moment)
{
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        open(seed);
        for (unsigned tick = 0; tick < HEAP_MODEL_TICKS; tick++) {
            struct visited visited = {.model = &indexed.states[tick]};
            uint32_t moment = chronicle_find(&chronicle, heap_model_at(tick));
            chronicle_each_live(&chronicle, moment, expect_live, &visited);
            cr_assert_eq(visited.count, visited.model->count, "seed %u, tick %u", (unsigned)seed,
                         tick);
        }
        close();
    }
}

Test(chronicle, goes_from_position_to_position)
{
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        uint32_t moment = 0, next;
        open(seed);
        for (; (next = chronicle_after(&chronicle, moment)) != moment; moment = next) {
            cr_assert_gt(next, moment);
            struct ttd_position position = chronicle_position(&chronicle, next);
            cr_assert_eq(chronicle_find(&chronicle, position), next);
            cr_assert_eq(chronicle_before(&chronicle, next), moment);
            for (uint32_t i = moment; i < next; i++)
                cr_assert_eq(ttd_position_compare(chronicle.effects[i].position, position), 0);
        }
        cr_assert_eq(moment, chronicle.effect_count);
        cr_assert_eq(chronicle_before(&chronicle, 0), 0);
        close();
    }
}

/* A number of events, or a time, leads to the last moment that is not behind it. */
Test(chronicle, finds_moments_by_events_and_times)
{
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        open(seed);
        for (uint32_t moment = 0, next = 0;; moment = next) {
            uint64_t time = chronicle_wall_time(&chronicle, moment);
            uint32_t by_time = chronicle_find_time(&chronicle, time);
            cr_assert_geq(by_time, moment);
            cr_assert_eq(chronicle_wall_time(&chronicle, by_time), time);
            uint64_t event = moment ? chronicle.effects[moment - 1].event : 0;
            uint32_t by_event = chronicle_find_event(&chronicle, event);
            cr_assert_eq(chronicle_find(&chronicle, chronicle_position(&chronicle, by_event)),
                         by_event);
            next = chronicle_after(&chronicle, moment);
            if (next == moment)
                break;
        }
        cr_assert_eq(chronicle_find_event(&chronicle, UINT64_MAX), chronicle.effect_count);
        cr_assert_eq(chronicle_find_time(&chronicle, UINT64_MAX), chronicle.effect_count);
        close();
    }
}

static ttd_id key_of(enum heap_tick_key key, const struct ttd_event *event)
{
    const ttd_id keys[HEAP_TICK_KEYS] = {[HEAP_TICK_BY_STACK] = event->stack,
                                         [HEAP_TICK_BY_THREAD] = event->thread,
                                         [HEAP_TICK_BY_HEAP] = event->heap,
                                         [HEAP_TICK_BY_SIZE] = heap_class_of(event->size)};
    return keys[key];
}

/* Bytes and blocks by key, modulo 2^64. */
struct key_sums {
    uint64_t bytes[KEYS_MAX];
    uint64_t blocks[KEYS_MAX];
};

static void add_model(struct key_sums *sums, enum heap_tick_key key, const struct heap_model *model,
                      uint64_t sign)
{
    for (size_t i = 0; i < model->count; i++) {
        ttd_id id = key_of(key, model->live[i]);
        cr_assert_lt(id, KEYS_MAX);
        sums->bytes[id] += sign * model->live[i]->size;
        sums->blocks[id] += sign;
    }
}

static void expect_series(const struct chronicle_sums *sums, enum heap_tick_key key,
                          const struct heap_model *before, const struct heap_model *after)
{
    const struct heap_tick_series *series = &sums->series[key];
    struct key_sums found = {{0}, {0}}, wanted = {{0}, {0}};
    for (size_t i = 0; i < series->change_count; i++) {
        const struct heap_tick_change *change = &series->changes[i];
        found.bytes[series->records[change->record].key] += (uint64_t)change->bytes;
        found.blocks[series->records[change->record].key] += (uint64_t)change->blocks;
    }
    add_model(&wanted, key, before, -UINT64_C(1));
    add_model(&wanted, key, after, 1);
    for (size_t i = 0; i < KEYS_MAX; i++) {
        cr_assert_eq(found.bytes[i], wanted.bytes[i]);
        cr_assert_eq(found.blocks[i], wanted.blocks[i]);
    }
}

static void expect_peak(const struct heap_tick *tick, struct chronicle_range range)
{
    struct heap_sum peak = heap_model_bytes(model_at(range.from));
    for (unsigned t = tick_at(chronicle_position(&chronicle, range.from));
         t <= tick_at(chronicle_position(&chronicle, range.to)); t++) {
        struct heap_sum bytes = heap_model_bytes(&indexed.states[t]);
        if (heap_sum_is_less(peak, bytes))
            peak = bytes;
    }
    cr_assert_eq(tick->peak.low, peak.low);
    cr_assert_eq(tick->peak.high, peak.high);
}

/* A moment at which no position is in the midst of its effects. */
static uint32_t choose_moment(void)
{
    unsigned tick = entropy_pick(&indexed.entropy, HEAP_MODEL_TICKS);
    return chronicle_find(&chronicle, heap_model_at(tick));
}

static void expect_sums(struct chronicle_range range)
{
    const struct heap_model *before = model_at(range.from);
    const struct heap_model *after = model_at(range.to);
    struct chronicle_filter all = {.wants = NULL};
    struct heap_sum bytes = heap_model_bytes(after);
    struct chronicle_sums sums;
    struct heap_tick begin = {
        .position = chronicle_position(&chronicle, range.from),
        .live = {.blocks = heap_model_outer_count(before), .bytes = heap_model_bytes(before)}};
    cr_assert_eq(chronicle_sum(&chronicle, range, &begin, all, &sums), TTD_OK);
    cr_assert_eq(sums.tick.live.blocks, heap_model_outer_count(after));
    cr_assert_eq(sums.tick.live.bytes.low, bytes.low);
    cr_assert_eq(sums.tick.live.bytes.high, bytes.high);
    cr_assert_eq(before->count + sums.tick.allocations - sums.tick.releases, after->count);
    expect_peak(&sums.tick, range);
    for (int key = 0; key < HEAP_TICK_KEYS; key++)
        expect_series(&sums, (enum heap_tick_key)key, before, after);
    chronicle_sums_free(&sums);
}

Test(chronicle, sums_are_differences)
{
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        open(seed);
        for (int i = 0; i < RANGES; i++) {
            uint32_t one = choose_moment(), other = choose_moment();
            expect_sums(
                (struct chronicle_range){one < other ? one : other, one < other ? other : one});
        }
        close();
    }
}

static bool has(const struct heap_model *model, const struct ttd_event *event)
{
    for (size_t i = 0; i < model->count; i++)
        if (model->live[i] == event)
            return true;
    return false;
}

/* Blocks and bytes of a quadrant, modulo 2^64. */
struct quadrant_sums {
    uint64_t blocks;
    uint64_t bytes;
};

static struct quadrant_sums sums_of(const struct heap_tick_series *series)
{
    struct quadrant_sums sums = {0, 0};
    for (size_t i = 0; i < series->change_count; i++) {
        sums.blocks += (uint64_t)series->changes[i].blocks;
        sums.bytes += (uint64_t)series->changes[i].bytes;
    }
    return sums;
}

/* Sums of the blocks that are live in `at`, and also in `other`, or there not. */
static struct quadrant_sums model_sums(const struct heap_model *at, const struct heap_model *other,
                                       bool is_in_both)
{
    struct quadrant_sums sums = {0, 0};
    for (size_t i = 0; i < at->count; i++) {
        if (has(other, at->live[i]) != is_in_both)
            continue;
        sums.blocks++;
        sums.bytes += at->live[i]->size;
    }
    return sums;
}

static void expect_quadrant(const struct heap_tick_series *series, struct quadrant_sums wanted)
{
    struct quadrant_sums found = sums_of(series);
    cr_assert_eq(found.blocks, wanted.blocks);
    cr_assert_eq(found.bytes, wanted.bytes);
}

/* Expects the blocks that end in the range where it acquired them to be those that the model has at
 * neither end. */
static void expect_ended(struct chronicle_range range, const struct chronicle_quadrants *quadrants)
{
    struct quadrant_sums left = sums_of(&quadrants->series[HEAP_AIFO]);
    struct quadrant_sums acquired = {0, 0};
    for (size_t i = 0; i < chronicle.block_count; i++) {
        if (chronicle.lives[i].begin < range.from || chronicle.lives[i].begin >= range.to)
            continue;
        acquired.blocks++;
        acquired.bytes += chronicle.blocks[i].size;
    }
    expect_quadrant(
        &quadrants->series[HEAP_AIFI],
        (struct quadrant_sums){acquired.blocks - left.blocks, acquired.bytes - left.bytes});
}

Test(chronicle, quadrants_are_what_both_ends_have)
{
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        open(seed);
        for (int i = 0; i < RANGES; i++) {
            struct chronicle_filter all = {.wants = NULL};
            struct chronicle_quadrants quadrants;
            uint32_t one = choose_moment(), other = choose_moment();
            struct chronicle_range range = {one < other ? one : other, one < other ? other : one};
            const struct heap_model *before = model_at(range.from);
            const struct heap_model *after = model_at(range.to);
            cr_assert_eq(chronicle_quadrants_find(&chronicle, range, all, &quadrants), TTD_OK);
            expect_quadrant(&quadrants.series[HEAP_AOFO], model_sums(before, after, true));
            expect_quadrant(&quadrants.series[HEAP_AOFI], model_sums(before, after, false));
            expect_quadrant(&quadrants.series[HEAP_AIFO], model_sums(after, before, false));
            expect_ended(range, &quadrants);
            chronicle_quadrants_free(&quadrants);
        }
        close();
    }
}
