/* SPDX-License-Identifier: MIT */
/* Groups of blocks: found again by their keys, and ordered as qsort() would. */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "heap/groups.h"
#include "support/entropy.h"

static struct heap_groups groups;

static void begin(void)
{
    heap_groups_init(&groups);
}

static void finish(void)
{
    heap_groups_free(&groups);
}

TestSuite(groups, .init = begin, .fini = finish);

static struct heap_block block_of(ttd_id stack, ttd_id thread, uint64_t size, uint64_t steps)
{
    return (struct heap_block){.stack = stack,
                               .thread = thread,
                               .heap = 9,
                               .size = size,
                               .allocated = {1, steps},
                               .api = TTD_API_MALLOC};
}

static void add(ttd_id stack, ttd_id thread, uint64_t size, uint64_t steps)
{
    struct heap_block block = block_of(stack, thread, size, steps);
    cr_assert_eq(heap_groups_add(&groups, &block), TTD_OK);
}

static void expect_group(const struct heap_group *group, ttd_id stack, ttd_id other,
                         uint64_t blocks, uint64_t bytes)
{
    cr_assert_eq(group->key.stack, stack);
    cr_assert_eq(group->key.property, other);
    cr_assert_eq(group->blocks, blocks);
    cr_assert_eq(group->bytes, bytes);
}

Test(groups, have_one_group_for_each_stack)
{
    add(1, 1, 8, 5);
    add(2, 1, 100, 6);
    add(1, 2, 16, 7);

    cr_assert_eq(groups.count, 2);
    expect_group(&groups.items[0], 1, TTD_NONE, 2, 24);
    expect_group(&groups.items[1], 2, TTD_NONE, 1, 100);
}

Test(groups, are_split_by_thread_if_that_is_wanted)
{
    groups.split = HEAP_SPLIT_THREAD;

    add(1, 1, 8, 5);
    add(1, 2, 16, 7);

    cr_assert_eq(groups.count, 2);
    expect_group(&groups.items[0], 1, 1, 1, 8);
    expect_group(&groups.items[1], 1, 2, 1, 16);
}

Test(groups, are_split_by_the_class_of_the_size_if_that_is_wanted)
{
    groups.split = HEAP_SPLIT_SIZE;
    groups.has_stacks = false;

    add(1, 1, 4, 5);
    add(2, 1, 7, 6);
    add(3, 1, 8, 7);

    cr_assert_eq(groups.count, 2);
    expect_group(&groups.items[0], TTD_NONE, 3, 2, 11);
    expect_group(&groups.items[1], TTD_NONE, 4, 1, 8);
}

Test(groups, know_the_first_and_the_last_allocation)
{
    add(1, 1, 8, 6);
    add(1, 1, 8, 4);
    add(1, 1, 8, 5);

    cr_assert_eq(groups.items[0].first.steps, 4);
    cr_assert_eq(groups.items[0].last.steps, 6);
}

Test(groups, have_totals)
{
    add(1, 1, 8, 5);
    add(2, 1, 100, 6);

    cr_assert_eq(groups.blocks, 2);
    cr_assert_eq(groups.bytes, 108);
}

Test(groups, stop_at_the_largest_sum)
{
    add(1, 1, UINT64_MAX, 5);
    add(1, 1, 1, 6);

    cr_assert_eq(groups.items[0].bytes, UINT64_MAX);
    cr_assert_eq(groups.bytes, UINT64_MAX);
}

Test(groups, give_back_what_is_subtracted)
{
    add(1, 1, 8, 4);
    add(1, 1, 16, 5);
    add(1, 1, 32, 6);

    struct heap_block block = block_of(1, 1, 16, 5);
    heap_groups_subtract(&groups, &block);

    expect_group(&groups.items[0], 1, TTD_NONE, 2, 40);
    cr_assert_not(heap_group_is_unknown(&groups.items[0]));
}

Test(groups, no_longer_know_the_first_allocation_when_it_is_subtracted)
{
    add(1, 1, 8, 4);
    add(1, 1, 16, 5);

    struct heap_block block = block_of(1, 1, 8, 4);
    heap_groups_subtract(&groups, &block);

    cr_assert(heap_group_is_unknown(&groups.items[0]));
}

Test(groups, that_differ_in_their_stacks_only_are_joined)
{
    groups.split = HEAP_SPLIT_THREAD;
    add(1, 1, 8, 4);
    add(2, 1, 16, 5);
    add(3, 2, 32, 6);

    cr_assert_eq(heap_groups_join(&groups), TTD_OK);
    cr_assert_eq(heap_groups_sort(&groups), TTD_OK);

    cr_assert_eq(groups.count, 2);
    expect_group(&groups.items[0], TTD_NONE, 2, 1, 32);
    expect_group(&groups.items[1], TTD_NONE, 1, 2, 24);
}

/* ---- Random sums ---- */

/* Few different values, so that many are equal; small ones, and the largest. */
static uint64_t random_amount(struct entropy *entropy)
{
    return entropy_pick(entropy, 9) ? entropy_below(entropy, 5)
                                    : UINT64_MAX - entropy_below(entropy, 3);
}

static struct heap_group random_group(struct entropy *entropy, unsigned keys)
{
    struct heap_group group = {.key.stack = entropy_pick(entropy, keys)};
    if (!entropy_pick(entropy, 9))
        group.key.stack = UINT32_MAX - group.key.stack;
    if (!entropy_pick(entropy, 3))
        group.key.property = entropy_pick(entropy, 4);
    group.blocks = random_amount(entropy);
    group.bytes = random_amount(entropy);
    group.first = (struct ttd_position){1, entropy_below(entropy, 100)};
    group.last = (struct ttd_position){2, entropy_below(entropy, 100)};
    group.api = (uint8_t)entropy_pick(entropy, 3);
    return group;
}

static struct heap_group *find_sum(struct heap_group *sums, size_t count, struct heap_key key)
{
    for (size_t i = 0; i < count; i++)
        if (sums[i].key.stack == key.stack && sums[i].key.property == key.property)
            return &sums[i];
    return NULL;
}

/* Adds a group to an array of sums, in the simplest way; returns how many there are then. */
static size_t add_to_sums(struct heap_group *sums, size_t count, const struct heap_group *added)
{
    struct heap_group *sum = find_sum(sums, count, added->key);
    if (!sum) {
        sums[count] = *added;
        return count + 1;
    }
    sum->blocks += added->blocks;
    sum->bytes = sum->bytes > UINT64_MAX - added->bytes ? UINT64_MAX : sum->bytes + added->bytes;
    if (ttd_position_compare(added->first, sum->first) < 0)
        sum->first = added->first;
    if (ttd_position_compare(added->last, sum->last) > 0)
        sum->last = added->last;
    return count;
}

static void expect_same(const struct heap_group *group, const struct heap_group *expected)
{
    expect_group(group, expected->key.stack, expected->key.property, expected->blocks,
                 expected->bytes);
    cr_assert_eq(ttd_position_compare(group->first, expected->first), 0);
    cr_assert_eq(ttd_position_compare(group->last, expected->last), 0);
    cr_assert_eq(group->api, expected->api);
}

#define ADDITIONS_MAX 400

static void check_random_sums(struct entropy *entropy, unsigned additions)
{
    struct heap_group sums[ADDITIONS_MAX];
    size_t count = 0;
    for (unsigned i = 0; i < additions; i++) {
        struct heap_group added = random_group(entropy, 1 + additions / 2);
        cr_assert_eq(heap_groups_add_sum(&groups, &added), TTD_OK);
        count = add_to_sums(sums, count, &added);
    }
    cr_assert_eq(groups.count, count);
    qsort(sums, count, sizeof *sums, heap_groups_site_table(&groups).compare);
    cr_assert_eq(heap_groups_sort(&groups), TTD_OK);
    for (size_t i = 0; i < count; i++)
        expect_same(&groups.items[i], &sums[i]);
}

Test(groups, are_sorted_as_qsort_would)
{
    for (unsigned additions = 0; additions < ADDITIONS_MAX; additions = additions * 2 + 1) {
        for (uint64_t seed = 1; seed < 30; seed++) {
            struct entropy entropy = entropy_of_seed(seed);
            check_random_sums(&entropy, additions);
            heap_groups_free(&groups);
            heap_groups_init(&groups);
        }
    }
}
