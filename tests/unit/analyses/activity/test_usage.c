/* SPDX-License-Identifier: MIT */
/* The usage that is found by sums of chunks is the one that a replay of each call finds. */
#include "analyses/activity/usage.h"

#include <criterion/criterion.h>

#include "support/heap/random_calls.h"
#include "support/heap/usage_difference.h"

#define TRACES 600

static struct random_calls calls;

/* Numbers of events: in chunks that were summed up, and in chunks that were read. */
struct seen {
    uint64_t summed;
    uint64_t read;
};

static enum ttd_status see_net(void *context, const struct ttd_chunk *chunk,
                               const struct ttd_netted *netted)
{
    struct seen *seen = context;
    (void)netted;
    seen->summed += chunk->record_count;
    return TTD_OK;
}

static enum ttd_status see_batch(void *context, const struct ttd_batch *batch)
{
    struct seen *seen = context;
    seen->read += batch->kind == TTD_KIND_EVENTS ? batch->count : 0;
    return TTD_OK;
}

/* Finds the usage both ways. Adds to `seen` how the events were seen by the faster one. */
static void compare_with(uint64_t seed, struct ttd_reader *reader, uint64_t threads,
                         const struct heap_usage_options *options, struct seen *seen)
{
    struct heap_trace trace = {
        .reader = reader, .hook = {seen, see_batch, see_net, {0}, {0}}, .threads = threads};
    struct heap_trace replayed = {.reader = reader, .is_checked = true};
    struct heap_usage found, expected;
    struct ttd_error error;
    cr_assert_eq(heap_usage_find(&trace, options, &found, &error), TTD_OK);
    cr_assert_eq(heap_usage_find(&replayed, options, &expected, &error), TTD_OK);
    const char *difference = usage_difference(&found, &expected);
    cr_assert_null(difference, "seed %u: %s", (unsigned)seed, difference);
    heap_usage_free(&found);
    heap_usage_free(&expected);
}

/* Compares random traces with such faults. Returns the share of the events that were summed up. */
static double compare_all(const struct random_faults *faults)
{
    struct seen seen = {0};
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct ttd_reader *reader = random_calls_trace(&calls, seed, faults);
        cr_assert_not_null(reader);
        struct heap_usage_options options = {
            .order = HEAP_RANK_BY_STACK, .steps = seed % 4, .has_lifetimes = seed % 2};
        compare_with(seed, reader, 1 + seed % 3, &options, &seen);
        options.split = HEAP_SPLIT_HEAP;
        if (seed % 5 == 0)
            compare_with(seed, reader, 16, &options, &seen);
        ttd_reader_close(reader);
        ttd_memory_output_free(&calls.file);
    }
    return (double)seen.summed / (double)(seen.summed + seen.read);
}

/* A chunk that ends with a ReAlloc is replayed, and most of these chunks are short. */
Test(usage, is_summed_up_in_a_trace_of_a_program_without_errors)
{
    const struct random_faults faults = {.has_halves = true};
    cr_assert_geq(compare_all(&faults), 0.5);
}

Test(usage, is_right_where_reallocations_overlap_other_calls)
{
    const struct random_faults faults = {.has_halves = true, .overlap = 100};
    cr_assert_geq(compare_all(&faults), 0.1);
}

Test(usage, is_right_where_the_clock_moves_on_and_back)
{
    const struct random_faults faults = {.has_halves = true, .clock = 5, .overlap = 50};
    cr_assert_geq(compare_all(&faults), 0.05);
}

Test(usage, is_right_with_calls_that_have_no_effect)
{
    const struct random_faults faults = {.has_halves = true, .oddity = 100, .never = 5};
    cr_assert_geq(compare_all(&faults), 0.1);
}

Test(usage, is_right_where_heaps_are_destroyed)
{
    const struct random_faults faults = {.destruction = 20, .other_heap = 100};
    compare_all(&faults);
}

Test(usage, is_right_in_traces_with_errors)
{
    const struct random_faults faults = {
        .has_halves = true, .error = 3, .overlap = 10, .early = 5, .destruction = 2};
    cr_assert_geq(compare_all(&faults), 0.01);
}

Test(usage, is_right_with_losses_and_nested_heaps)
{
    const struct random_faults losses = {.loss = 5, .overlap = 20};
    const struct random_faults nested = {.has_parent = true, .other_heap = 100};
    compare_all(&losses);
    cr_assert_eq(compare_all(&nested), 0);
}

/* ---- Only temporary blocks ---- */

/* Returns whether the trace has temporary blocks. Where the short way asks for the long one, both
 * need not agree. */
static bool compare_temporary(uint64_t seed, struct ttd_reader *reader)
{
    const struct heap_trace trace = {.reader = reader, .is_checked = true};
    const struct heap_usage_options all = {.order = HEAP_RANK_BY_STACK};
    const struct heap_usage_options only = {.order = HEAP_RANK_BY_STACK, .only_temporary = true};
    struct heap_usage found, expected;
    struct ttd_error error;
    cr_assert_eq(heap_usage_find(&trace, &only, &found, &error), TTD_OK);
    cr_assert_eq(heap_usage_find(&trace, &all, &expected, &error), TTD_OK);
    bool has_some = !found.must_count && expected.total.temporary;
    if (!found.must_count) {
        cr_assert_eq(found.total.temporary, expected.total.temporary, "seed %u", (unsigned)seed);
        cr_assert_eq(found.total.temporary_bytes.low, expected.total.temporary_bytes.low);
        cr_assert_eq(found.total.allocations, expected.total.allocations);
        cr_assert_eq(found.total.bytes.low, expected.total.bytes.low);
    }
    heap_usage_free(&found);
    heap_usage_free(&expected);
    return has_some;
}

Test(usage, of_temporary_blocks_only_is_a_part_of_all)
{
    const struct random_faults faults[] = {
        {.has_halves = true}, {.has_halves = true, .oddity = 100, .never = 5}, {.error = 20}};
    unsigned with_some = 0;
    for (uint64_t seed = 1; seed <= TRACES; seed++) {
        struct ttd_reader *reader = random_calls_trace(&calls, seed, &faults[seed % 3]);
        cr_assert_not_null(reader);
        with_some += compare_temporary(seed, reader);
        ttd_reader_close(reader);
        ttd_memory_output_free(&calls.file);
    }
    cr_assert_gt(with_some, TRACES / 4);
}
