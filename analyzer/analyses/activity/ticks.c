/* SPDX-License-Identifier: MIT */
/* Ticks: sums at a bounded number of moments, and the series of changes between them. */
#include "analyses/activity/ticks.h"

#include <stdlib.h>

#include "common/search.h"

struct ticks_finder {
    struct heap_ticks *ticks;
    struct heap_ticks_options options;
    struct heap_totals totals;
    /** The tick that has not ended yet, and whether the range has begun. */
    struct heap_tick open;
    bool is_in_range;
    uint64_t first_event;
    /** How many events behind first_event the last one of the open stretch comes. */
    uint64_t stretch_last;
    /** All ticks that have ended, as one; and the highest state, as a tick that begins with the
     * range. */
    struct heap_tick ended;
    struct heap_tick highest;
};

/* The number of spans with releases before a tick. */
static size_t ticks_spans_before(size_t end)
{
    return end ? end * (end - 1) / 2 : 0;
}

enum ttd_status heap_spans_init(struct heap_tick_spans *spans, size_t max)
{
    *spans = (struct heap_tick_spans){
        .spans = calloc(ticks_spans_before(max) + 1, sizeof *spans->spans), .width = 1};
    return spans->spans ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

void heap_spans_free(struct heap_tick_spans *spans)
{
    free(spans->spans);
    spans->spans = NULL;
}

const struct heap_tick_span *heap_spans_of(const struct heap_tick_spans *spans, size_t end)
{
    return spans->spans + ticks_spans_before(end);
}

static void ticks_spans_add(struct heap_tick_spans *spans, size_t begin, size_t end,
                            struct heap_tick_span added)
{
    if (begin >= end)
        return;
    struct heap_tick_span *span = &spans->spans[ticks_spans_before(end) + begin];
    span->blocks += added.blocks;
    span->bytes += added.bytes;
}

void heap_spans_add(struct heap_tick_spans *spans, size_t begin, size_t end, uint64_t size)
{
    ticks_spans_add(spans, begin, end, (struct heap_tick_span){1, size});
}

void heap_spans_merge(struct heap_tick_spans *spans, const uint32_t *new_ticks, size_t count)
{
    /* A span never moves to a later index, so a merged entry is never met again. */
    for (size_t end = 1, i = 0; end < count; end++) {
        for (size_t begin = 0; begin < end; begin++, i++) {
            struct heap_tick_span span = spans->spans[i];
            spans->spans[i] = (struct heap_tick_span){0, 0};
            if (span.blocks)
                ticks_spans_add(spans, new_ticks[begin], new_ticks[end], span);
        }
    }
}

size_t heap_spans_count(const struct heap_tick_spans *spans, size_t end)
{
    size_t used = 0;
    for (size_t i = ticks_spans_before(end); i < ticks_spans_before(end + 1); i++)
        used += spans->spans[i].blocks != 0;
    return used;
}

static size_t ticks_count_all(const struct heap_tick_spans *spans, size_t count)
{
    size_t used = 0;
    for (size_t end = 0; end < count; end++)
        used += heap_spans_count(spans, end);
    return used;
}

enum ttd_status heap_spans_limit(struct heap_tick_spans *spans, size_t *count, size_t max)
{
    uint32_t *new_ticks = malloc((*count + 1) * sizeof *new_ticks);
    if (!new_ticks)
        return TTD_ERROR_NO_MEMORY;
    while (*count > 2 && ticks_count_all(spans, *count) > max) {
        for (size_t i = 0; i < *count; i++)
            new_ticks[i] = (uint32_t)((i + 1) / 2);
        heap_spans_merge(spans, new_ticks, *count);
        *count = new_ticks[*count - 1] + 1;
        spans->width *= 2;
    }
    free(new_ticks);
    return TTD_OK;
}

/* Adds the changes of a tick to the next one, its replacement. */
static void ticks_join(struct heap_tick *tick, const struct heap_tick *before)
{
    if (heap_sum_is_less(tick->peak, before->peak))
        tick->peak = before->peak;
    tick->allocations += before->allocations;
    heap_sum_add_sum(&tick->allocated, before->allocated);
    tick->releases += before->releases;
}

/* The state at a position includes all that happens at it: only then does it count. */
static void ticks_settle(struct ticks_finder *finder)
{
    finder->open.live = finder->totals.outer;
    if (!heap_sum_is_less(finder->open.peak, finder->open.live.bytes))
        return;
    finder->open.peak = finder->open.live.bytes;
    if (heap_sum_is_less(finder->highest.live.bytes, finder->open.live.bytes)) {
        finder->highest = finder->open;
        ticks_join(&finder->highest, &finder->ended);
    }
}

/** Applies late changes to the series, and merges ticks; see heap_series_settle(). */
static enum ttd_status ticks_settle_series(struct heap_ticks *ticks, const uint32_t *new_ticks)
{
    enum ttd_status status = TTD_OK;
    for (int key = 0; key < HEAP_TICK_KEYS && status == TTD_OK; key++)
        status = heap_series_settle(&ticks->series[key], new_ticks);
    return status;
}

/* Makes stretches twice as long, and so about half as many. */
static enum ttd_status ticks_widen(struct ticks_finder *finder)
{
    struct heap_ticks *ticks = finder->ticks;
    uint32_t *new_ticks = malloc(ticks->count * sizeof *new_ticks);
    size_t count = 0;
    if (!new_ticks)
        return TTD_ERROR_NO_MEMORY;
    ticks->width *= 2;
    finder->open.stretch /= 2;
    for (size_t i = 0; i < ticks->count; i++) {
        struct heap_tick tick = ticks->ticks[i];
        tick.stretch /= 2;
        /* The first one is before all stretches. */
        bool joins = count > 1 && ticks->ticks[count - 1].stretch == tick.stretch;
        if (joins)
            ticks_join(&tick, &ticks->ticks[--count]);
        new_ticks[i] = (uint32_t)count;
        ticks->ticks[count++] = tick;
    }
    heap_spans_merge(&ticks->spans, new_ticks, ticks->count);
    ticks->count = count;
    enum ttd_status status = ticks_settle_series(ticks, new_ticks);
    free(new_ticks);
    return status;
}

/** Ends the open tick. */
static enum ttd_status ticks_end_tick(struct ticks_finder *finder)
{
    struct heap_ticks *ticks = finder->ticks;
    ticks_settle(finder);
    ticks->ticks[ticks->count++] = finder->open;
    ticks_join(&finder->ended, &finder->open);
    enum ttd_status status = TTD_OK;
    for (int key = 0; key < HEAP_TICK_KEYS && status == TTD_OK; key++)
        status = heap_series_end_tick(&ticks->series[key]);
    finder->open = (struct heap_tick){.position = finder->open.position,
                                      .event = finder->open.event,
                                      .wall_time = finder->open.wall_time,
                                      .live = finder->open.live,
                                      .peak = finder->open.live.bytes,
                                      .stretch = finder->open.stretch};
    const struct heap_tick_series *by_stack = &ticks->series[HEAP_TICK_BY_STACK];
    while (status == TTD_OK && ticks->count > 3 &&
           (ticks->count >= finder->options.max ||
            by_stack->change_count > finder->options.changes_max + 4 * by_stack->count))
        status = ticks_widen(finder);
    return status;
}

/* Begins the stretch of the event that comes so many behind first_event. */
static void ticks_begin_stretch(struct ticks_finder *finder, uint64_t distance)
{
    uint64_t width = finder->ticks->width;
    finder->open.stretch = distance / width;
    finder->stretch_last = heap_add(finder->open.stretch * width, width - 1);
}

/** Ends ticks before the next position, an effect's. */
static enum ttd_status ticks_move_on(struct ticks_finder *finder, const struct heap_effect *effect)
{
    struct ttd_position position = effect->position;
    uint64_t event = effect->event;
    ticks_settle(finder);
    enum ttd_status status = TTD_OK;
    uint64_t largest = event > finder->open.event ? event : finder->open.event;
    if (!finder->is_in_range && ttd_position_compare(position, finder->options.from) >= 0) {
        status = ticks_end_tick(finder);
        finder->is_in_range = true;
        finder->first_event = largest;
        ticks_begin_stretch(finder, 0);
    }
    if (status == TTD_OK && finder->is_in_range &&
        largest - finder->first_event > finder->stretch_last) {
        status = ticks_end_tick(finder);
        ticks_begin_stretch(finder, largest - finder->first_event);
    }
    finder->open.position = position;
    finder->open.event = largest;
    finder->open.wall_time = effect->wall_time;
    return status;
}

/* The keys of a block in the series. */
static void ticks_keys_of(const struct heap_block *block, ttd_id keys[HEAP_TICK_KEYS])
{
    keys[HEAP_TICK_BY_STACK] = block->stack;
    keys[HEAP_TICK_BY_THREAD] = block->thread;
    keys[HEAP_TICK_BY_HEAP] = block->heap;
    keys[HEAP_TICK_BY_SIZE] = heap_class_of(block->size);
}

/* The first tick that ends at a position or after; count if that is the open one. */
static size_t tick_at(const struct heap_ticks *ticks, struct ttd_position position)
{
    size_t low = 0, high = ticks->count;
    SEARCH_SORTED(low, high, middle,
                  ttd_position_compare(ticks->ticks[middle].position, position) < 0);
    return low;
}

/* Whether tick_at() is this tick. It is not the open one. */
static bool is_tick_at(const struct heap_ticks *ticks, size_t tick, struct ttd_position position)
{
    return ttd_position_compare(ticks->ticks[tick].position, position) >= 0 &&
           (!tick || ttd_position_compare(ticks->ticks[tick - 1].position, position) < 0);
}

/* The tick when a block was allocated if every stretch has a tick. */
static uint64_t ticks_expected_birth(const struct ticks_finder *finder,
                                     const struct heap_block *block)
{
    return block->event < finder->first_event
               ? 0
               : 1 + (block->event - finder->first_event) / finder->ticks->width;
}

/* The tick when a block was allocated that is released in tick `end`. Mostly it follows from the
 * number of the event, since few stretches have no tick: a search would have to look at ten ticks
 * for each release. */
static size_t ticks_birth_of(const struct ticks_finder *finder, const struct heap_block *block,
                             size_t end)
{
    const struct heap_ticks *ticks = finder->ticks;
    if (ttd_position_compare(block->allocated, ticks->ticks[ticks->count - 1].position) > 0)
        return end;
    uint64_t expected = ticks_expected_birth(finder, block);
    return expected < ticks->count && is_tick_at(ticks, (size_t)expected, block->allocated)
               ? (size_t)expected
               : tick_at(ticks, block->allocated);
}

/* Takes a block out of the series. The blocks of a destroyed heap come late. */
static enum ttd_status ticks_take_block(struct ticks_finder *finder,
                                        const struct heap_effect *effect)
{
    struct heap_ticks *ticks = finder->ticks;
    bool is_late = effect->kind == HEAP_DISCARDED;
    size_t tick = is_late ? tick_at(ticks, effect->position) : ticks->count;
    ttd_id keys[HEAP_TICK_KEYS];
    ticks_keys_of(effect->block, keys);
    if (tick)
        heap_spans_add(&ticks->spans, ticks_birth_of(finder, effect->block, tick), tick,
                       effect->block->size);
    enum ttd_status status = TTD_OK;
    for (int i = 0; i < HEAP_TICK_KEYS && status == TTD_OK; i++)
        status = tick < ticks->count
                     ? heap_series_take_late(&ticks->series[i], (uint32_t)tick, keys[i],
                                             effect->block->size)
                     : heap_series_take(&ticks->series[i], keys[i], effect->block->size);
    return status;
}

static enum ttd_status ticks_acquire(struct ticks_finder *finder, const struct heap_block *block)
{
    ttd_id keys[HEAP_TICK_KEYS];
    ticks_keys_of(block, keys);
    finder->open.allocations++;
    heap_sum_add(&finder->open.allocated, block->size);
    enum ttd_status status = TTD_OK;
    for (int i = 0; i < HEAP_TICK_KEYS && status == TTD_OK; i++)
        status = heap_series_add(&finder->ticks->series[i], keys[i], block->size);
    if (status == TTD_OK)
        heap_series_tell_thread(&finder->ticks->series[HEAP_TICK_BY_STACK], block->thread);
    return status;
}

static enum ttd_status ticks_count_effect(struct ticks_finder *finder,
                                          const struct heap_effect *effect)
{
    uint64_t released = 0;
    enum ttd_status status = heap_totals_add(&finder->totals, effect, &released);
    finder->open.releases += released;
    if (status != TTD_OK || effect->kind == HEAP_DESTROYED)
        return status;
    return effect->kind == HEAP_ACQUIRED ? ticks_acquire(finder, effect->block)
                                         : ticks_take_block(finder, effect);
}

/* Whether a block counts. */
static enum ttd_status ticks_judge_block(const struct ticks_finder *finder,
                                         const struct heap_block *block, bool *is_wanted)
{
    const struct heap_ticks_options *options = &finder->options;
    *is_wanted = heap_islands_want_block(options->islands, block);
    return options->filter && *is_wanted
               ? options->filter(options->filter_context, block->stack, is_wanted)
               : TTD_OK;
}

static enum ttd_status ticks_see_effect(void *context, const struct heap_effect *effect)
{
    struct ticks_finder *finder = context;
    enum ttd_status status = TTD_OK;
    if (effect->kind == HEAP_UNKNOWN_RELEASE)
        return TTD_OK;
    if (effect->kind != HEAP_DISCARDED &&
        ttd_position_compare(effect->position, finder->open.position) != 0)
        status = ticks_move_on(finder, effect);
    bool is_wanted = true;
    if (status == TTD_OK && effect->kind != HEAP_DESTROYED)
        status = ticks_judge_block(finder, effect->block, &is_wanted);
    return status == TTD_OK && is_wanted ? ticks_count_effect(finder, effect) : status;
}

/* Prefetches the records of the call sites, and the ticks when blocks were allocated: most are not
 * in the cache. */
static void ticks_prepare(void *context, const struct heap_notes *notes)
{
    const struct ticks_finder *finder = context;
    const struct heap_ticks *ticks = finder->ticks;
    for (size_t i = 0; i < notes->count; i++) {
        const struct heap_note *note = &notes->notes[i];
        if (!note->effect.block)
            continue;
        heap_series_prefetch(&ticks->series[HEAP_TICK_BY_STACK], note->block.stack);
        uint64_t birth = ticks_expected_birth(finder, &note->block);
        if (note->effect.kind == HEAP_ACQUIRED || birth >= ticks->count)
            continue;
        __builtin_prefetch(&ticks->ticks[birth].position);
        __builtin_prefetch(&heap_spans_of(&ticks->spans, ticks->count)[birth], 1);
    }
}

/* Adds a block to the live sums at the peak, by record of the series. */
static void ticks_count_at_peak(struct heap_ticks *ticks, const struct heap_block *block)
{
    ttd_id keys[HEAP_TICK_KEYS];
    ticks_keys_of(block, keys);
    for (int i = HEAP_TICK_BY_THREAD; i < HEAP_TICK_KEYS; i++) {
        uint32_t record = map_get(&ticks->series[i].by_key, keys[i], 0);
        if (record == MAP_NONE)
            continue;
        struct heap_tick_change *sum = &ticks->peak_sums[i][record];
        sum->bytes = (int64_t)((uint64_t)sum->bytes + block->size);
        sum->blocks++;
    }
}

static enum ttd_status ticks_add_to_peak(struct ticks_finder *finder,
                                         const struct heap_block *block)
{
    if (heap_parents_get(finder->totals.parents, block->heap) != TTD_NONE)
        return TTD_OK;
    bool is_wanted;
    enum ttd_status status = ticks_judge_block(finder, block, &is_wanted);
    if (status != TTD_OK || !is_wanted)
        return status;
    if (finder->ticks->has_peak_tick)
        ticks_count_at_peak(finder->ticks, block);
    return heap_groups_add(&finder->ticks->at_peak, block);
}

/* Finds the tick that would end at the peak, and makes room for its sums. It is known if all blocks
 * count, and if no tick ends there. */
static enum ttd_status find_peak_tick(struct ticks_finder *finder)
{
    struct heap_ticks *ticks = finder->ticks;
    struct heap_tick *peak = &ticks->peak_tick;
    *peak = finder->highest;
    size_t tick = tick_at(ticks, peak->position);
    if (finder->options.filter || finder->options.islands || tick >= ticks->count ||
        ttd_position_compare(peak->position, ticks->peak.position) != 0 ||
        ttd_position_compare(peak->position, finder->options.from) < 0 ||
        ttd_position_compare(peak->position, ticks->ticks[tick].position) == 0)
        return TTD_OK;
    for (size_t i = 0; i < tick; i++) {
        peak->allocations -= ticks->ticks[i].allocations;
        peak->releases -= ticks->ticks[i].releases;
        peak->allocated.low -= ticks->ticks[i].allocated.low;
    }
    for (int key = HEAP_TICK_BY_THREAD; key < HEAP_TICK_KEYS; key++) {
        ticks->peak_sums[key] = calloc(ticks->series[key].count + 1, sizeof *ticks->peak_sums[key]);
        if (!ticks->peak_sums[key])
            return TTD_ERROR_NO_MEMORY;
    }
    ticks->has_peak_tick = true;
    return TTD_OK;
}

/* The blocks that were live at the peak, without those that lie in others. */
static enum ttd_status ticks_find_peak(struct ticks_finder *finder, struct heap_replay *replay)
{
    size_t cursor = 0;
    const struct heap_block *block;
    enum ttd_status status = heap_replay_end_peak(replay);
    finder->ticks->peak = replay->peak;
    if (status == TTD_OK)
        status = find_peak_tick(finder);
    while (status == TTD_OK && (block = heap_live_each(&replay->live, &cursor))) {
        if (ttd_position_compare(block->allocated, replay->peak.position) <= 0)
            status = ticks_add_to_peak(finder, block);
    }
    for (size_t i = 0; i < replay->ended_since_peak.count && status == TTD_OK; i++)
        status = ticks_add_to_peak(finder, &replay->ended_since_peak.blocks[i]);
    return status;
}

static enum ttd_status ticks_finish(void *context, struct heap_arrival *arrival,
                                    struct ttd_error *error)
{
    struct ticks_finder *finder = context;
    (void)error;
    finder->ticks->outcome = heap_arrival_outcome(arrival);
    /* Nothing may have happened in the range. */
    enum ttd_status status = ticks_end_tick(finder);
    if (status == TTD_OK)
        status = ticks_settle_series(finder->ticks, NULL);
    finder->ticks->span_count = finder->ticks->count;
    if (status == TTD_OK)
        status = heap_spans_limit(&finder->ticks->spans, &finder->ticks->span_count,
                                  finder->options.spans_max);
    return status == TTD_OK ? ticks_find_peak(finder, &arrival->cursor.replay) : status;
}

static void ticks_begin(void *context, const struct heap_arrival *arrival)
{
    struct ticks_finder *finder = context;
    heap_totals_init(&finder->totals, &arrival->cursor.replay.live.parents);
}

enum ttd_status heap_ticks_watch(struct heap_ticks *ticks, const struct heap_ticks_options *options,
                                 struct ttd_reader *reader, struct heap_pass *pass)
{
    struct ttd_end end;
    uint64_t length = ttd_reader_end(reader, &end) == TTD_OK ? end.events : 0;
    *ticks = (struct heap_ticks){.width = length / (options->max - 2) + 1,
                                 .ticks = calloc(options->max + 1, sizeof *ticks->ticks),
                                 .finder = calloc(1, sizeof *ticks->finder)};
    heap_groups_init(&ticks->at_peak);
    for (int key = 0; key < HEAP_TICK_KEYS; key++)
        heap_series_init(&ticks->series[key]);
    enum ttd_status status = heap_spans_init(&ticks->spans, options->max + 1);
    if (!ticks->ticks || !ticks->finder || status != TTD_OK)
        return TTD_ERROR_NO_MEMORY;
    *ticks->finder = (struct ticks_finder){.ticks = ticks, .options = *options};
    struct heap_watcher watcher = {
        .observer = {.context = ticks->finder, .effect = ticks_see_effect},
        .to = options->last,
        .is_deferred = true,
        .prepare = ticks_prepare,
        .begin = ticks_begin,
        .finish = ticks_finish};
    pass->keeps_peak = true;
    heap_pass_add(pass, &watcher);
    return TTD_OK;
}

void heap_ticks_end(struct heap_ticks *ticks)
{
    if (ticks->finder)
        heap_totals_free(&ticks->finder->totals);
    free(ticks->finder);
    ticks->finder = NULL;
}

void heap_ticks_free(struct heap_ticks *ticks)
{
    heap_ticks_end(ticks);
    free(ticks->ticks);
    ticks->ticks = NULL;
    heap_groups_free(&ticks->at_peak);
    for (int key = 0; key < HEAP_TICK_KEYS; key++)
        free(ticks->peak_sums[key]);
    heap_spans_free(&ticks->spans);
    for (int key = 0; key < HEAP_TICK_KEYS; key++)
        heap_series_free(&ticks->series[key]);
}
