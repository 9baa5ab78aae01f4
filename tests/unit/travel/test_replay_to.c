/* SPDX-License-Identifier: MIT */
/* A replay to a position has the same outcome with keyframes and without. */
#include <criterion/criterion.h>

#include "support/heap/indexed_trace.h"

#define TRACES 2000

static void expect_same_outcome(const struct heap_outcome *a, const struct heap_outcome *b)
{
    cr_assert_eq(a->losses.records, b->losses.records);
    cr_assert_eq(a->losses.events, b->losses.events);
    cr_assert_eq(a->losses.kept_count, b->losses.kept_count);
    cr_assert_eq(ttd_position_compare(a->position, b->position), 0);
    cr_assert_eq(a->in_flight, b->in_flight);
    cr_assert_eq(a->reached_end, b->reached_end);
    cr_assert_eq(a->truncated, b->truncated);
}

static void check_outcomes(struct indexed_trace *indexed)
{
    for (unsigned tick = 0; tick < HEAP_MODEL_TICKS;
         tick += 1 + entropy_pick(&indexed->entropy, 20)) {
        struct heap_outcome outcomes[2];
        for (unsigned i = 0; i < 2; i++) {
            struct heap_trace trace = {.reader = indexed->reader,
                                       .keyframes = i ? &indexed->keyframes : NULL};
            struct heap_route route = {.to = heap_model_at(tick)};
            struct heap_arrival arrival;
            struct ttd_error error;
            cr_assert_eq(heap_replay_to(&arrival, &trace, &route, &error), TTD_OK);
            heap_arrival_end(&arrival, &outcomes[i]);
        }
        expect_same_outcome(&outcomes[0], &outcomes[1]);
    }
}

Test(replay_to, outcome_is_the_same_with_keyframes)
{
    static struct indexed_trace indexed;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        indexed_trace_open(&indexed, seed);
        check_outcomes(&indexed);
        indexed_trace_close(&indexed);
    }
}
