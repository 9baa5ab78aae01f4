/* SPDX-License-Identifier: MIT */
/* Sums of a summary and the blocks behind it are together those of the model. */
#include <criterion/criterion.h>

#include "support/heap/indexed_trace.h"

#define TRACES 2000
#define VISITS 60

/* Counts the binary digits of a number. */
static unsigned count_digits(uint64_t number)
{
    unsigned count = 0;
    for (; number; number >>= 1)
        count++;
    return count;
}

/* Whether the block that the event acquired belongs to a group of a table. */
static bool belongs_to(const struct heap_group *group, size_t table, const struct ttd_event *event)
{
    switch (table) {
    case HEAP_BY_STACK:
        return event->stack == group->key.stack;
    case HEAP_BY_HEAP:
        return event->heap == group->key.property;
    case HEAP_BY_THREAD:
        return event->thread == group->key.property;
    default:
        return count_digits(event->size) == group->key.property;
    }
}

static void expect_group(const struct heap_group *group, size_t table,
                         const struct heap_model *state)
{
    struct heap_group sum = {.first = ttd_position_max()};
    for (size_t i = 0; i < state->count; i++) {
        const struct ttd_event *event = state->live[i];
        if (!belongs_to(group, table, event))
            continue;
        sum.blocks++;
        sum.bytes = heap_add(sum.bytes, event->size);
        if (ttd_position_compare(event->time_end, sum.first) < 0)
            sum.first = event->time_end;
        if (ttd_position_compare(event->time_end, sum.last) > 0)
            sum.last = event->time_end;
    }
    cr_assert_gt(sum.blocks, 0);
    cr_assert_eq(group->blocks, sum.blocks);
    cr_assert_eq(group->bytes, sum.bytes);
    if (table != HEAP_BY_STACK)
        return;
    cr_assert_eq(ttd_position_compare(group->first, sum.first), 0);
    cr_assert_eq(ttd_position_compare(group->last, sum.last), 0);
}

/* Checks that the sums and the blocks that are not in them are together the blocks of the model. */
static void expect_sums(const struct heap_model *state, const struct heap_tables *sums,
                        const struct heap_live *live)
{
    struct heap_tables all;
    size_t cursor = 0;
    const struct heap_block *block;
    heap_tables_init(&all);
    for (size_t i = 0; i < HEAP_TABLES; i++)
        for (size_t j = 0; j < sums->by[i].count; j++)
            cr_assert_eq(heap_groups_add_sum(&all.by[i], &sums->by[i].items[j]), TTD_OK);
    while ((block = heap_live_each(live, &cursor)))
        cr_assert_eq(heap_tables_add(&all, block), TTD_OK);
    for (size_t i = 0; i < HEAP_TABLES; i++) {
        uint64_t blocks = 0;
        for (size_t j = 0; j < all.by[i].count; j++) {
            expect_group(&all.by[i].items[j], i, state);
            blocks += all.by[i].items[j].blocks;
        }
        cr_assert_eq(blocks, state->count);
        cr_assert_eq(all.by[i].blocks, state->count);
    }
    heap_tables_free(&all);
}

/* How often a summary was used: on the way to a position, and to the end of a trace. */
struct summaries_used {
    size_t on_visits;
    size_t at_end;
};

static void check_sums(struct indexed_trace *indexed, struct summaries_used *used)
{
    struct heap_tables sums;
    struct heap_cursor cursor;
    struct heap_trace trace = {.reader = indexed->reader, .keyframes = &indexed->keyframes};
    struct ttd_error error;
    heap_tables_init(&sums);
    cr_assert_eq(heap_cursor_init(&cursor, &trace, HEAP_CURSOR_KINDS, NULL), TTD_OK);
    cursor.sums = &sums;
    for (unsigned i = 0; i < VISITS; i++) {
        unsigned tick = entropy_pick(&indexed->entropy, HEAP_MODEL_TICKS);
        cr_assert_eq(heap_cursor_seek(&cursor, heap_model_at(tick), &error), TTD_OK);
        heap_model_expect_progress(&indexed->states[tick], &cursor.replay);
        expect_sums(&indexed->states[tick], &sums, &cursor.replay.live);
        used->on_visits += cursor.start && cursor.start->is_summary;
    }
    cr_assert_eq(heap_cursor_seek(&cursor, ttd_position_max(), &error), TTD_OK);
    expect_sums(&indexed->states[HEAP_MODEL_TICKS - 1], &sums, &cursor.replay.live);
    used->at_end += cursor.start && cursor.start->is_summary;
    cr_assert_eq(cursor.keyframes, &indexed->keyframes, "a summary was found to be wrong");
    heap_cursor_free(&cursor);
    heap_tables_free(&sums);
}

Test(summary, sums_at_any_position_are_those_of_the_model)
{
    static struct indexed_trace indexed;
    struct summaries_used used = {.on_visits = 0};
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        indexed_trace_open(&indexed, seed);
        check_sums(&indexed, &used);
        indexed_trace_close(&indexed);
    }
    cr_assert_gt(used.on_visits, TRACES * VISITS / 4);
    cr_assert_gt(used.at_end, TRACES / 4);
}
