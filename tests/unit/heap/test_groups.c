/* SPDX-License-Identifier: MIT */
/* Groups of blocks: found again by their keys, and ordered as qsort() would. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "heap/groups.h"

static uint64_t state;

static uint64_t chance(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

/* Few different values, so that many are equal; small ones, and the largest. */
static uint64_t amount(void)
{
    return chance(9) ? chance(5) : UINT64_MAX - chance(3);
}

static struct heap_group random_group(uint64_t keys)
{
    return (struct heap_group){
        .key = {(ttd_id)(chance(9) ? chance(keys) : UINT32_MAX - chance(keys)),
                (ttd_id)(chance(3) ? 0 : chance(4))},
        .blocks = amount(),
        .bytes = amount(),
        .first = {1, chance(100)},
        .last = {2, chance(100)},
        .api = (uint8_t)chance(3)};
}

/* The sum of a key among the first `count`: whatever is added, in the simplest way. */
static struct heap_group *find(struct heap_group *sums, size_t count, struct heap_key key)
{
    for (size_t i = 0; i < count; i++)
        if (sums[i].key.stack == key.stack && sums[i].key.other == key.other)
            return &sums[i];
    return NULL;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

static size_t add_random(struct heap_groups *groups, struct heap_group *sums, size_t additions)
{
    size_t count = 0;
    for (size_t i = 0; i < additions; i++) {
        struct heap_group added = random_group(1 + additions / 2);
        struct heap_group *sum = find(sums, count, added.key);
        if (sum) {
            sum->blocks += added.blocks;
            sum->bytes = add(sum->bytes, added.bytes);
            heap_group_widen(sum, added.first);
            heap_group_widen(sum, added.last);
        } else {
            sums[count++] = added;
        }
        cr_assert_eq(heap_groups_add_sum(groups, &added), TTD_OK);
    }
    return count;
}

static void check(const struct heap_group *found, const struct heap_group *wanted)
{
    cr_assert_eq(found->key.stack, wanted->key.stack);
    cr_assert_eq(found->key.other, wanted->key.other);
    cr_assert_eq(found->blocks, wanted->blocks);
    cr_assert_eq(found->bytes, wanted->bytes);
    cr_assert_eq(ttd_position_compare(found->first, wanted->first), 0);
    cr_assert_eq(ttd_position_compare(found->last, wanted->last), 0);
    cr_assert_eq(found->api, wanted->api);
}

Test(groups, random)
{
    for (size_t additions = 0; additions < 400; additions = additions * 2 + 1) {
        for (uint64_t seed = 1; seed < 30; seed++) {
            state = seed;
            struct heap_groups groups;
            struct heap_group sums[800];
            heap_groups_init(&groups);
            size_t count = add_random(&groups, sums, additions);
            cr_assert_eq(groups.count, count);
            struct heap_rows rows = heap_groups_rows(&groups);
            qsort(sums, count, sizeof *sums, rows.compare);
            cr_assert_eq(heap_groups_sort(&groups), TTD_OK);
            for (size_t i = 0; i < count; i++)
                check(&groups.items[i], &sums[i]);
            heap_groups_free(&groups);
        }
    }
}
