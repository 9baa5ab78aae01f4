/* SPDX-License-Identifier: MIT */
/* The analyzer's hash table, from pairs of numbers to a small number. */
#include <criterion/criterion.h>

#include "base/hash_map.h"
#include "support/entropy.h"

static struct hash_map map;

static void begin(void)
{
    map_init(&map);
}

static void finish(void)
{
    map_free(&map);
}

TestSuite(hash_map, .init = begin, .fini = finish);

Test(hash_map, has_nothing_at_first)
{
    cr_assert_eq(map_get(&map, 0, 0), MAP_NONE);
}

Test(hash_map, tells_the_numbers_of_a_pair_apart)
{
    cr_assert_eq(map_set(&map, 1, 2, 12), TTD_OK);
    cr_assert_eq(map_set(&map, 2, 1, 21), TTD_OK);

    cr_assert_eq(map_get(&map, 1, 2), 12);
    cr_assert_eq(map_get(&map, 2, 1), 21);
    cr_assert_eq(map_get(&map, 1, 1), MAP_NONE);
}

Test(hash_map, may_have_zeros_and_the_largest_numbers)
{
    cr_assert_eq(map_set(&map, 0, 0, 0), TTD_OK);
    cr_assert_eq(map_set(&map, UINT64_MAX, UINT64_MAX, MAP_NONE - 1), TTD_OK);

    cr_assert_eq(map_get(&map, 0, 0), 0);
    cr_assert_eq(map_get(&map, UINT64_MAX, UINT64_MAX), MAP_NONE - 1);
}

Test(hash_map, has_the_value_that_was_set_last)
{
    map_set(&map, 5, 0, 1);
    map_set(&map, 5, 0, 2);
    cr_assert_eq(map_get(&map, 5, 0), 2);
    cr_assert_eq(map.count, 1);
}

Test(hash_map, has_nothing_after_it_is_freed)
{
    map_set(&map, 5, 0, 1);
    map_free(&map);
    cr_assert_eq(map_get(&map, 5, 0), MAP_NONE);
    cr_assert_eq(map.count, 0);
}

#define KEYS 20000

/* Keys whose first numbers are the same for many: only both tell them apart. */
Test(hash_map, agrees_with_an_array_while_it_grows)
{
    static uint32_t expected[KEYS];
    struct entropy entropy = entropy_of_seed(1);
    for (unsigned i = 0; i < KEYS; i++)
        expected[i] = MAP_NONE;
    for (unsigned i = 0; i < KEYS; i++) {
        unsigned key = entropy_pick(&entropy, KEYS);
        expected[key] = i;
        cr_assert_eq(map_set(&map, key % 3, key, i), TTD_OK);
    }
    for (unsigned key = 0; key < KEYS; key++)
        cr_assert_eq(map_get(&map, key % 3, key), expected[key]);
}

/* Identifiers are dense at first, then far from each other, then between those that are there. */
Test(hash_map, finds_identifiers_wherever_they_are_kept)
{
    const uint64_t steps[] = {1, UINT64_C(1) << 20, 3};
    uint32_t value = 0;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        for (uint64_t k = 0; k < 1000; k++)
            map_set(&map, k * steps[i], 0, value++);
    }
    for (uint64_t k = 0; k < 1000; k++) {
        cr_assert_eq(map_get(&map, k * 3, 0), 2000 + k);
        cr_assert_eq(map_get(&map, k * 3, 1), MAP_NONE);
        if (k)
            cr_assert_eq(map_get(&map, k << 20, 0), 1000 + k);
    }
    cr_assert_eq(map.count, 1000 + 999 + 666);
}

Test(hash_map, a_copy_has_the_same_and_goes_its_own_way)
{
    struct hash_map copy = {.count = 0};
    map_set(&map, 5, 0, 1);
    map_set(&map, 5, 5, 2);
    cr_assert_eq(map_copy(&copy, &map), TTD_OK);
    map_set(&map, 5, 0, 3);
    cr_assert_eq(map_get(&copy, 5, 0), 1);
    cr_assert_eq(map_get(&copy, 5, 5), 2);
    map_free(&copy);
}
