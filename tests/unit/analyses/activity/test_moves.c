/* SPDX-License-Identifier: MIT */
/* Moves, by plain calls and by effects: both ways are the same. */
#include "analyses/activity/moves.h"

#include <criterion/criterion.h>

#include "support/heap/random_calls.h"

#define TRACES 400
#define CHAINS 5

static struct random_calls calls;

/* ---- Comparing ---- */

static bool counts_differ(const struct heap_move_counts *a, const struct heap_move_counts *b)
{
    return a->reallocs != b->reallocs || a->moved != b->moved || a->in_place != b->in_place ||
           a->from_null != b->from_null || a->to_zero != b->to_zero || a->failed != b->failed ||
           a->unfinished != b->unfinished || a->unknown_old != b->unknown_old ||
           a->copies.remapped != b->copies.remapped || a->copies.unknown != b->copies.unknown ||
           a->copies.bytes != b->copies.bytes ||
           a->copies.bytes_at_most != b->copies.bytes_at_most || a->avoidable != b->avoidable;
}

static const char *group_difference(const struct heap_move_group *a,
                                    const struct heap_move_group *b)
{
    if (heap_key_compare(a->key, b->key) != 0)
        return "key of a group";
    if (counts_differ(&a->counts, &b->counts))
        return "counts of a group";
    if (a->smallest != b->smallest || a->largest != b->largest || a->grown != b->grown ||
        a->shrunk != b->shrunk || a->measured != b->measured)
        return "sizes of a group";
    return a->factor_sum < b->factor_sum || a->factor_sum > b->factor_sum ||
                   a->step_sum < b->step_sum || a->step_sum > b->step_sum
               ? "growth of a group"
               : NULL;
}

static const char *table_difference(const struct heap_move_table *a,
                                    const struct heap_move_table *b)
{
    const char *found = NULL;
    if (a->count != b->count || counts_differ(&a->total, &b->total))
        return "totals";
    for (size_t i = 0; i < a->count && !found; i++)
        found = group_difference(&a->groups[i], &b->groups[i]);
    return found;
}

static const char *chain_difference(const struct heap_chain *a, const struct heap_chain *b)
{
    if (a->start_size != b->start_size || a->final_size != b->final_size ||
        a->largest_size != b->largest_size)
        return "sizes of a chain";
    if (a->reallocs != b->reallocs || a->moved != b->moved || a->avoidable != b->avoidable)
        return "counts of a chain";
    return a->address != b->address || a->stack != b->stack ||
                   ttd_position_compare(a->first, b->first) != 0 ||
                   ttd_position_compare(a->last, b->last) != 0
               ? "calls of a chain"
               : NULL;
}

static const char *difference(const struct heap_moves *a, const struct heap_moves *b)
{
    const char *found = table_difference(&a->reallocs, &b->reallocs);
    if (!found)
        found = table_difference(&a->regrown, &b->regrown);
    if (!found && a->worst_count != b->worst_count)
        found = "number of chains";
    for (size_t i = 0; i < a->worst_count && !found; i++)
        found = chain_difference(&a->worst[i], &b->worst[i]);
    return found;
}

/* ---- Both ways ---- */

static enum ttd_status count_effect(void *context, const struct heap_effect *effect)
{
    uint64_t *count = context;
    (void)effect;
    ++*count;
    return TTD_OK;
}

/* Finds the moves beside a watcher that gets all effects: no call is a plain one then. */
static enum ttd_status find_by_effects(const struct heap_trace *trace,
                                       const struct heap_moves_options *options,
                                       struct heap_moves *moves)
{
    uint64_t count = 0;
    struct heap_pass pass = {.count = 0};
    struct heap_watcher watcher = {.observer = {.context = &count, .effect = count_effect},
                                   .to = ttd_position_max()};
    struct ttd_error error;
    enum ttd_status status = heap_moves_watch(moves, options, &pass);
    heap_pass_add(&pass, &watcher);
    if (status == TTD_OK)
        status = heap_pass_run(&pass, trace, &error);
    heap_moves_end(moves);
    return status;
}

static uint64_t compare(uint64_t seed, struct ttd_reader *reader)
{
    cr_assert_not_null(reader);
    const struct heap_trace trace = {.reader = reader, .is_checked = true};
    const struct heap_moves_options options = {.chains = CHAINS};
    struct heap_moves found, expected;
    struct ttd_error error;
    cr_assert_eq(heap_moves_find(&trace, &options, &found, &error), TTD_OK);
    cr_assert_eq(find_by_effects(&trace, &options, &expected), TTD_OK);
    const char *what = difference(&found, &expected);
    cr_assert_null(what, "seed %u: %s", (unsigned)seed, what);
    uint64_t regrown = found.regrown.total.moved;
    heap_moves_free(&found);
    heap_moves_free(&expected);
    ttd_reader_close(reader);
    ttd_memory_output_free(&calls.file);
    return regrown;
}

static void compare_all(const struct random_faults *faults)
{
    uint64_t regrown = 0;
    for (uint64_t seed = 1; seed <= TRACES; seed++)
        regrown += compare(seed, random_calls_trace(&calls, seed, faults));
    cr_assert_gt(regrown, TRACES);
}

Test(moves, are_the_same_without_faults)
{
    const struct random_faults faults = {.has_halves = true};
    compare_all(&faults);
}

Test(moves, are_the_same_where_calls_overlap)
{
    const struct random_faults faults = {
        .has_halves = true, .overlap = 100, .oddity = 100, .never = 5};
    compare_all(&faults);
}

Test(moves, are_the_same_with_errors_and_destroyed_heaps)
{
    const struct random_faults faults = {.error = 20, .early = 20, .destruction = 10};
    compare_all(&faults);
}

Test(moves, are_the_same_with_losses_and_nested_heaps)
{
    const struct random_faults faults = {
        .loss = 10, .has_parent = true, .other_heap = 100, .destruction = 10};
    compare_all(&faults);
}
