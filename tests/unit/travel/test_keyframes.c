/* SPDX-License-Identifier: MIT */
/* With keyframes and without, in whatever order positions are visited, the state is the model's. */
#include <criterion/criterion.h>

#include "support/heap/indexed_trace.h"

#define TRACES 2000
#define VISITS 60

/* The tick of a position. */
static unsigned tick_of(struct ttd_position position)
{
    return (unsigned)(position.sequence * 4 + position.steps);
}

static void go_and_compare(struct indexed_trace *indexed, struct heap_cursor *cursor, unsigned tick)
{
    struct ttd_error error;
    cr_assert_eq(heap_cursor_seek(cursor, heap_model_at(tick), &error), TTD_OK);
    heap_model_expect(&indexed->states[tick], &cursor->replay);
}

/* Forwards, backwards and anywhere, in an order that differs from trace to trace. */
static void visit_all(struct indexed_trace *indexed, struct heap_cursor *cursor)
{
    unsigned stride = 1 + entropy_pick(&indexed->entropy, 3);
    for (unsigned tick = 0; tick < HEAP_MODEL_TICKS; tick += stride)
        go_and_compare(indexed, cursor, tick);
    for (unsigned tick = HEAP_MODEL_TICKS; tick > 0; tick--)
        go_and_compare(indexed, cursor, tick - 1);
    for (unsigned i = 0; i < VISITS; i++)
        go_and_compare(indexed, cursor, entropy_pick(&indexed->entropy, HEAP_MODEL_TICKS));
}

/* Returns how many batches of events were read. */
static size_t check_cursor(struct indexed_trace *indexed, const struct heap_keyframes *keyframes)
{
    struct heap_cursor cursor;
    struct heap_trace trace = {
        .reader = indexed->reader,
        .keyframes = keyframes,
        .hook = {.context = &indexed->batches, .batch = indexed_trace_count_batch}};
    indexed->batches = 0;
    cr_assert_eq(heap_cursor_init(&cursor, &trace, HEAP_CURSOR_KINDS, NULL), TTD_OK);
    visit_all(indexed, &cursor);
    cr_assert_eq(cursor.keyframes, keyframes, "a keyframe was found to be wrong");
    heap_cursor_free(&cursor);
    return indexed->batches;
}

/* Each keyframe by itself is the state at its position, but for events that come later there. */
static void check_keyframes(struct indexed_trace *indexed)
{
    struct heap_replay replay;
    cr_assert_eq(heap_replay_init(&replay, NULL), TTD_OK);
    heap_model_learn(&replay.live.parents);
    for (size_t i = 0; i < indexed->keyframes.count; i++) {
        const struct heap_keyframe *keyframe = &indexed->keyframes.keyframes[i];
        if (keyframe->is_summary)
            continue;
        cr_assert_eq(heap_keyframes_restore(&indexed->keyframes, keyframe, &replay, NULL), TTD_OK);
        cr_assert_eq(replay.live.count, keyframe->blocks);
        uint64_t next = keyframe->next;
        cr_assert_lt(next, indexed->count);
        struct ttd_position after = ttd_event_position(&indexed->events[next]);
        if (ttd_position_compare(after, keyframe->position) > 0)
            heap_model_expect(&indexed->states[tick_of(keyframe->position)], &replay);
    }
    heap_replay_free(&replay);
}

Test(keyframes, are_the_states_of_the_model_and_lead_to_them)
{
    static struct indexed_trace indexed;
    size_t keyframes = 0;
    size_t batches_with = 0;
    size_t batches_without = 0;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        indexed_trace_open(&indexed, seed);
        keyframes += indexed.keyframes.count;
        check_keyframes(&indexed);
        batches_without += check_cursor(&indexed, NULL);
        batches_with += check_cursor(&indexed, &indexed.keyframes);
        indexed_trace_close(&indexed);
    }
    cr_assert_gt(keyframes, TRACES);
    /* Keyframes were used: they save reading. */
    cr_assert_lt(batches_with, batches_without * 3 / 4);
}

/* Writes an index with this spacing. Returns its facts. */
static struct heap_index_facts write_spaced_index(struct heap_index_spacing spacing)
{
    static struct indexed_trace indexed;
    indexed_trace_open(&indexed, 1);
    ttd_memory_output_free(&indexed.sidecar);
    struct heap_index_facts facts = indexed_trace_write_index(&indexed, &spacing);
    indexed_trace_close(&indexed);
    return facts;
}

Test(keyframes, of_a_small_trace_are_not_needed)
{
    struct heap_index_facts facts = write_spaced_index(HEAP_INDEX_SPACING);
    cr_assert_eq(facts.keyframes, 0);
    cr_assert_eq(facts.summaries, 0);
}

Test(keyframes, are_as_far_apart_as_is_wanted)
{
    const struct heap_index_spacing spacing = {
        .keyframes = 10, .summaries = 10, .summary_blocks = 1};
    struct heap_index_facts facts = write_spaced_index(spacing);
    cr_assert_leq(facts.keyframes, facts.events / 10);
    cr_assert_leq(facts.summaries, facts.events / 10 + facts.keyframes + 1);
}
