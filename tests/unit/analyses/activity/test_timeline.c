/* SPDX-License-Identifier: MIT */
/* A timeline that is made of runs is the one that is made of each effect. */
#include "analyses/activity/timeline.h"

#include <criterion/criterion.h>

#include "support/heap/random_calls.h"

#define TRACES 400

static struct random_calls calls;

static enum ttd_status take_all(void *context, ttd_id stack, bool *is_wanted)
{
    uint64_t *asked = context;
    (void)stack;
    *is_wanted = true;
    ++*asked;
    return TTD_OK;
}

static bool sums_differ(struct heap_sum a, struct heap_sum b)
{
    return a.high != b.high || a.low != b.low;
}

/* Returns the first difference of two points, or NULL. */
static const char *point_difference(const struct heap_point *a, const struct heap_point *b)
{
    if (sums_differ(a->peak, b->peak))
        return "peak";
    if (sums_differ(a->live.bytes, b->live.bytes) || a->live.blocks != b->live.blocks)
        return "live blocks";
    if (a->allocations != b->allocations || sums_differ(a->allocated, b->allocated))
        return "allocations";
    if (a->releases != b->releases)
        return "releases";
    if (ttd_position_compare(a->position, b->position) != 0)
        return "position";
    return a->begin != b->begin ? "begin" : NULL;
}

static const char *difference(const struct heap_timeline *a, const struct heap_timeline *b)
{
    const char *found = NULL;
    if (a->count != b->count || a->first != b->first || a->width != b->width)
        return "points";
    for (size_t i = 0; i < a->count && !found; i++)
        found = point_difference(&a->points[i], &b->points[i]);
    return found ? found : a->end != b->end ? "end" : NULL;
}

/* Makes the timeline both ways. */
static void compare(uint64_t seed, struct ttd_reader *reader, enum heap_axis axis)
{
    const struct heap_trace trace = {.reader = reader, .is_checked = true};
    uint64_t asked = 0;
    const struct heap_timeline_options by_run = {.axis = axis, .max = 2 + seed % 40};
    struct heap_timeline_options by_effect = by_run;
    by_effect.filter = take_all;
    by_effect.filter_context = &asked;
    struct heap_timeline found, expected;
    struct ttd_error error;
    cr_assert_eq(heap_timeline_find(&trace, &by_run, &found, &error), TTD_OK);
    cr_assert_eq(heap_timeline_find(&trace, &by_effect, &expected, &error), TTD_OK);
    const char *what = difference(&found, &expected);
    cr_assert_null(what, "seed %u, axis %d: %s", (unsigned)seed, (int)axis, what);
    cr_assert(asked || !expected.count);
    heap_timeline_free(&found);
    heap_timeline_free(&expected);
}

/* Compares on both axes, and releases the trace. */
static void compare_axes(uint64_t seed, struct ttd_reader *reader)
{
    cr_assert_not_null(reader);
    compare(seed, reader, HEAP_AXIS_POSITION);
    compare(seed, reader, HEAP_AXIS_TIME);
    ttd_reader_close(reader);
    ttd_memory_output_free(&calls.file);
}

static void compare_all(const struct random_faults *faults)
{
    for (uint64_t seed = 1; seed <= TRACES; seed++)
        compare_axes(seed, random_calls_trace(&calls, seed, faults));
}

Test(timeline, is_the_same_without_faults)
{
    const struct random_faults faults = {.has_halves = true, .clock = 50};
    compare_all(&faults);
}

Test(timeline, is_the_same_where_calls_overlap_and_clocks_go_back)
{
    const struct random_faults faults = {
        .has_halves = true, .overlap = 100, .clock = 100, .oddity = 100, .never = 5};
    compare_all(&faults);
}

Test(timeline, is_the_same_with_errors_and_destroyed_heaps)
{
    const struct random_faults faults = {.error = 20, .early = 20, .destruction = 10, .clock = 50};
    compare_all(&faults);
}

Test(timeline, is_the_same_with_losses_and_nested_heaps)
{
    const struct random_faults faults = {
        .loss = 10, .has_parent = true, .other_heap = 100, .destruction = 10, .clock = 20};
    compare_all(&faults);
}

/* Writes calls of which some share a position with the one before, with sizes whose sum is beyond
 * 64 bits, at times from `wall_time` on. */
static void write_dense(struct entropy *entropy, uint64_t wall_time)
{
    uint64_t sizes[16] = {0};
    struct ttd_position now = {.sequence = 1};
    for (unsigned i = entropy_pick(entropy, 200); i > 0; i--) {
        unsigned place = entropy_pick(entropy, 16);
        bool is_live = sizes[place] != 0;
        now.steps += entropy_pick(entropy, 2);
        wall_time += entropy_pick(entropy, 3) ? 0 : entropy_pick(entropy, 50);
        struct ttd_event event = {.action = is_live ? TTD_ACTION_FREE : TTD_ACTION_ALLOC,
                                  .api = is_live ? TTD_API_FREE : TTD_API_MALLOC,
                                  .thread = 1,
                                  .stack = 1,
                                  .heap = 1 + place % RANDOM_CALLS_HEAPS,
                                  .result = 1,
                                  .time_start = now,
                                  .time_end = now,
                                  .wall_time = wall_time};
        uint64_t address = 0x1000 * (place + 1);
        sizes[place] = is_live ? 0 : entropy_pick(entropy, 8) ? 16 : UINT64_MAX - 500;
        event.size = sizes[place];
        event.address = is_live ? 0 : address;
        event.base_address = is_live ? address : 0;
        cr_assert_eq(ttd_writer_event(calls.writer, &event), TTD_OK, "%s",
                     ttd_writer_error(calls.writer).what);
    }
}

static void compare_dense(const struct random_faults *faults, uint64_t wall_time)
{
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct entropy entropy = entropy_of_seed(seed);
        cr_assert(random_calls_open_seed(&calls, seed, faults));
        write_dense(&entropy, wall_time);
        compare_axes(seed, random_calls_read(&calls));
    }
}

Test(timeline, is_the_same_where_calls_share_a_position)
{
    const struct random_faults plain = {0}, nested = {.has_parent = true};
    compare_dense(&plain, 0);
    compare_dense(&nested, 0);
}

Test(timeline, is_the_same_at_the_end_of_time)
{
    const struct random_faults plain = {0};
    compare_dense(&plain, UINT64_MAX - 20000);
}
