/* SPDX-License-Identifier: MIT */
/* Ticks are states of the heap, and their series the sums of what changed on the way to them. */
#include "analyses/activity/ticks.h"

#include <criterion/criterion.h>

#include "support/heap/indexed_trace.h"

#define TRACES 400

/* More keys than any series here has: of stacks, threads, heaps, and classes of sizes. */
#define KEYS_MAX 80

static struct indexed_trace indexed;

/* The number of the last tick of the model at a position or before. */
static unsigned model_tick(struct ttd_position position)
{
    unsigned tick = 0;
    while (tick + 1 < HEAP_MODEL_TICKS &&
           ttd_position_compare(heap_model_at(tick + 1), position) <= 0)
        tick++;
    return tick;
}

static const struct heap_model *model_at(struct ttd_position position)
{
    return &indexed.states[model_tick(position)];
}

static struct heap_ticks_options choose_options(void)
{
    struct entropy *entropy = &indexed.entropy;
    struct heap_ticks_options options = {.from = ttd_position_min(),
                                         .last = ttd_position_max(),
                                         .max = 4 + entropy_pick(entropy, 60),
                                         .changes_max = entropy_pick(entropy, 3) ? 1000 : 1,
                                         .spans_max = entropy_pick(entropy, 2) ? 10000 : 20};
    unsigned from = entropy_pick(entropy, HEAP_MODEL_TICKS);
    unsigned length = entropy_pick(entropy, HEAP_MODEL_TICKS);
    if (entropy_pick(entropy, 2))
        options.from = heap_model_at(from);
    if (entropy_pick(entropy, 2) && from + length < HEAP_MODEL_TICKS)
        options.last = heap_model_at(from + length);
    return options;
}

static void find(struct heap_ticks *ticks, const struct heap_ticks_options *options)
{
    struct heap_trace trace = {.reader = indexed.reader};
    struct heap_pass pass = {.count = 0};
    struct ttd_error error;
    cr_assert_eq(heap_ticks_watch(ticks, options, indexed.reader, &pass), TTD_OK);
    cr_assert_eq(heap_pass_run(&pass, &trace, &error), TTD_OK);
    heap_ticks_end(ticks);
}

static void expect_state(const struct heap_tick *tick)
{
    const struct heap_model *model = model_at(tick->position);
    struct heap_sum bytes = heap_model_bytes(model);
    cr_assert_eq(tick->live.blocks, heap_model_outer_count(model));
    cr_assert_eq(tick->live.bytes.low, bytes.low);
    cr_assert_eq(tick->live.bytes.high, bytes.high);
}

/* The largest sum at the end of the tick before, and at any position after it up to that of the
 * tick. */
static void expect_peak(const struct heap_tick *before, const struct heap_tick *tick)
{
    struct heap_sum peak = heap_model_bytes(model_at(before->position));
    for (unsigned t = model_tick(before->position); t <= model_tick(tick->position); t++) {
        struct heap_sum bytes = heap_model_bytes(&indexed.states[t]);
        if (heap_sum_is_less(peak, bytes))
            peak = bytes;
    }
    cr_assert_eq(tick->peak.low, peak.low);
    cr_assert_eq(tick->peak.high, peak.high);
}

static ttd_id key_of(enum heap_tick_key key, const struct ttd_event *event)
{
    const ttd_id keys[HEAP_TICK_KEYS] = {[HEAP_TICK_BY_STACK] = event->stack,
                                         [HEAP_TICK_BY_THREAD] = event->thread,
                                         [HEAP_TICK_BY_HEAP] = event->heap,
                                         [HEAP_TICK_BY_SIZE] = heap_class_of(event->size)};
    return keys[key];
}

/* The sums of a record are those of the model's blocks. */
static void expect_record(enum heap_tick_key key, const struct heap_tick_change *sum, ttd_id wanted,
                          const struct heap_model *model)
{
    uint64_t bytes = 0;
    int64_t blocks = 0;
    for (size_t i = 0; i < model->count; i++) {
        if (key_of(key, model->live[i]) != wanted)
            continue;
        bytes += model->live[i]->size;
        blocks++;
    }
    cr_assert_eq((uint64_t)sum->bytes, bytes);
    cr_assert_eq(sum->blocks, blocks);
}

static void expect_series(const struct heap_ticks *ticks, enum heap_tick_key key)
{
    const struct heap_tick_series *series = &ticks->series[key];
    struct heap_tick_change sums[KEYS_MAX] = {{0}};
    cr_assert_leq(series->count, KEYS_MAX);
    if (series->count)
        cr_assert_eq(series->tick_count, ticks->count);
    for (size_t tick = 0, next = 0; series->count && tick < ticks->count; tick++) {
        for (; next < series->ends[tick]; next++) {
            const struct heap_tick_change *change = &series->changes[next];
            /* Sizes of the random traces go up to 2^63: sums are modulo 2^64, as the model's. */
            sums[change->record].bytes =
                (int64_t)((uint64_t)sums[change->record].bytes + (uint64_t)change->bytes);
            sums[change->record].blocks += change->blocks;
        }
        for (size_t i = 0; i < series->count; i++)
            expect_record(key, &sums[i], series->records[i].key,
                          model_at(ticks->ticks[tick].position));
    }
}

/* Allocations less releases are what the number of blocks has grown by. */
static void expect_activity(const struct heap_ticks *ticks)
{
    uint64_t blocks = model_at(ticks->ticks[0].position)->count;
    for (size_t i = 1; i < ticks->count; i++) {
        blocks += ticks->ticks[i].allocations - ticks->ticks[i].releases;
        cr_assert_eq(blocks, model_at(ticks->ticks[i].position)->count);
    }
}

/* The tick of the heap that a tick of the spans ends with. */
static size_t end_of_span(const struct heap_ticks *ticks, size_t place)
{
    size_t end = place * ticks->spans.width;
    return end < ticks->count ? end : ticks->count - 1;
}

static bool is_live(const struct heap_model *model, const struct ttd_event *event)
{
    for (size_t i = 0; i < model->count; i++) {
        if (model->live[i] == event)
            return true;
    }
    return false;
}

/* The blocks that were live at one tick, and not at another behind it. */
static void expect_released(const struct heap_ticks *ticks, size_t from, size_t to)
{
    const struct heap_model *before = model_at(ticks->ticks[end_of_span(ticks, from)].position);
    const struct heap_model *after = model_at(ticks->ticks[end_of_span(ticks, to)].position);
    struct heap_tick_span sum = {0, 0}, wanted = {0, 0};
    for (size_t end = from + 1; end <= to; end++) {
        for (size_t begin = 0; begin <= from; begin++) {
            sum.blocks += heap_spans_of(&ticks->spans, end)[begin].blocks;
            sum.bytes += heap_spans_of(&ticks->spans, end)[begin].bytes;
        }
    }
    for (size_t i = 0; i < before->count; i++) {
        if (!is_live(after, before->live[i])) {
            wanted.blocks++;
            wanted.bytes += before->live[i]->size;
        }
    }
    cr_assert_eq(sum.blocks, wanted.blocks);
    cr_assert_eq(sum.bytes, wanted.bytes);
}

static void expect_spans(const struct heap_ticks *ticks, size_t max)
{
    size_t used = 0;
    for (size_t end = 0; end < ticks->span_count; end++)
        used += heap_spans_count(&ticks->spans, end);
    cr_assert_leq(used, max);
    cr_assert_eq(end_of_span(ticks, ticks->span_count - 1), ticks->count - 1);
    for (size_t from = 0; from < ticks->span_count; from++) {
        for (size_t to = from + 1; to < ticks->span_count; to++)
            expect_released(ticks, from, to);
    }
}

/* The tick that the peak would end is a state of the heap, within the stretch of another one; what
 * its series have adds up to it. */
static void expect_peak_tick(const struct heap_ticks *ticks, size_t *count)
{
    if (!ticks->has_peak_tick)
        return;
    ++*count;
    expect_state(&ticks->peak_tick);
    size_t tick = 0;
    while (ttd_position_compare(ticks->ticks[tick].position, ticks->peak_tick.position) < 0)
        tick++;
    cr_assert_eq(heap_sum_value(ticks->peak_tick.live.bytes), heap_sum_value(ticks->peak.bytes));
    cr_assert_leq(ticks->peak_tick.allocations, ticks->ticks[tick].allocations);
    cr_assert_leq(ticks->peak_tick.releases, ticks->ticks[tick].releases);
    for (int key = HEAP_TICK_BY_THREAD; key < HEAP_TICK_KEYS; key++) {
        struct heap_tick_change sum = {.record = 0};
        for (size_t i = 0; i < ticks->series[key].count; i++) {
            sum.bytes = (int64_t)((uint64_t)sum.bytes + (uint64_t)ticks->peak_sums[key][i].bytes);
            sum.blocks += ticks->peak_sums[key][i].blocks;
        }
        /* Sums of series are modulo 2^64, and those of groups end there. */
        if (ticks->at_peak.bytes != UINT64_MAX)
            cr_assert_eq((uint64_t)sum.bytes, ticks->at_peak.bytes);
        cr_assert_eq((uint64_t)sum.blocks, ticks->at_peak.blocks);
    }
}

Test(ticks, are_states_of_the_heap)
{
    size_t peak_ticks = 0;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct heap_ticks ticks;
        indexed_trace_open(&indexed, seed);
        struct heap_ticks_options options = choose_options();
        find(&ticks, &options);
        cr_assert_leq(ticks.count, options.max);
        for (size_t i = 0; i < ticks.count; i++) {
            expect_state(&ticks.ticks[i]);
            if (i)
                expect_peak(&ticks.ticks[i - 1], &ticks.ticks[i]);
        }
        expect_activity(&ticks);
        expect_spans(&ticks, options.spans_max);
        for (int key = 0; key < HEAP_TICK_KEYS; key++)
            expect_series(&ticks, (enum heap_tick_key)key);
        cr_assert_eq(ticks.at_peak.bytes, heap_sum_value(ticks.peak.bytes));
        expect_peak_tick(&ticks, &peak_ticks);
        heap_ticks_free(&ticks);
        indexed_trace_close(&indexed);
    }
    cr_assert_gt(peak_ticks, 0);
}
