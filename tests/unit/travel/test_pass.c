/* SPDX-License-Identifier: MIT */
/* Watchers of a pass that end at different positions see what replays to these positions see. */
#include <criterion/criterion.h>

#include "support/heap/indexed_trace.h"
#include "travel/pass.h"

#define TRACES   300
#define WATCHERS 4

/* Sums over what a watcher was told, in any order: blocks of destroyed heaps are told of late. */
struct told {
    uint64_t effects;
    uint64_t calls;
    uint64_t batches;
    uint64_t sum;
    uint64_t live;
    struct ttd_position position;
    bool is_finished;
    /** The index of live blocks is dropped at the end, as a graph does it. */
    bool drops_index;
};

static enum ttd_status see_effect(void *context, const struct heap_effect *effect)
{
    struct told *told = context;
    uint64_t address = effect->block ? effect->block->address : effect->address;
    told->effects++;
    told->sum += ((uint64_t)effect->kind * 7 + effect->event) * 31 + address;
    return TTD_OK;
}

static enum ttd_status see_call(void *context, const struct ttd_event *event)
{
    struct told *told = context;
    told->calls++;
    told->sum += event->number * 1023;
    return TTD_OK;
}

static enum ttd_status see_batch(void *context, const struct ttd_batch *batch)
{
    struct told *told = context;
    told->batches += batch->count;
    return TTD_OK;
}

static enum ttd_status finish(void *context, struct heap_arrival *arrival, struct ttd_error *error)
{
    struct told *told = context;
    (void)error;
    cr_assert(!told->is_finished);
    told->is_finished = true;
    told->live = arrival->cursor.replay.live.count;
    told->position = heap_arrival_outcome(arrival).position;
    if (told->drops_index)
        heap_live_drop_index(&arrival->cursor.replay.live);
    return TTD_OK;
}

static struct heap_watcher watcher_of(struct told *told, struct ttd_position to)
{
    return (struct heap_watcher){
        .observer = {.context = told, .effect = see_effect, .call = see_call},
        .to = to,
        .batch = see_batch,
        .finish = finish};
}

static void run(struct indexed_trace *indexed, struct heap_pass *pass)
{
    struct heap_trace trace = {.reader = indexed->reader};
    struct ttd_error error;
    cr_assert_eq(heap_pass_run(pass, &trace, &error), TTD_OK);
}

static void expect_same(const struct told *a, const struct told *b)
{
    cr_assert(a->is_finished);
    cr_assert_eq(a->effects, b->effects);
    cr_assert_eq(a->calls, b->calls);
    cr_assert_eq(a->sum, b->sum);
    cr_assert_eq(a->live, b->live);
    cr_assert_eq(ttd_position_compare(a->position, b->position), 0);
}

/* The last one wants the end; two may want one position. */
static void choose(struct indexed_trace *indexed, struct ttd_position *positions)
{
    for (unsigned i = 0; i + 1 < WATCHERS; i++)
        positions[i] = heap_model_at(entropy_pick(&indexed->entropy, HEAP_MODEL_TICKS));
    positions[WATCHERS - 1] = ttd_position_max();
}

Test(pass, watchers_see_what_replays_of_their_own_see)
{
    static struct indexed_trace indexed;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct ttd_position positions[WATCHERS];
        struct told together[WATCHERS] = {{0}};
        struct heap_pass pass = {.count = 0};
        indexed_trace_open(&indexed, seed);
        choose(&indexed, positions);
        for (unsigned i = 0; i < WATCHERS; i++) {
            struct heap_watcher watcher = watcher_of(&together[i], positions[i]);
            together[i].drops_index = i == 0;
            watcher.is_deferred = i % 2;
            heap_pass_add(&pass, &watcher);
        }
        run(&indexed, &pass);
        for (unsigned i = 0; i < WATCHERS; i++) {
            struct told alone = {0};
            struct heap_watcher watcher = watcher_of(&alone, positions[i]);
            struct heap_pass one = {.watchers = {watcher}, .count = 1};
            run(&indexed, &one);
            expect_same(&together[i], &alone);
            cr_assert_eq(together[i].batches, together[WATCHERS - 1].batches);
        }
        indexed_trace_close(&indexed);
    }
}
