/* SPDX-License-Identifier: MIT */
/* Memory for many small things that are released together. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/grow.h"

static struct arena arena;

static void finish(void)
{
    arena_free(&arena);
}

TestSuite(arena, .fini = finish);

Test(arena, is_aligned_for_any_type)
{
    for (size_t size = 1; size < 100; size++)
        cr_assert_eq((uintptr_t)arena_take(&arena, size) % _Alignof(max_align_t), 0);
}

Test(arena, gives_memory_that_does_not_overlap)
{
    uint8_t *taken[300];
    for (size_t i = 0; i < 300; i++) {
        taken[i] = arena_take(&arena, 3 * i + 1);
        memset(taken[i], (int)(i % 251), 3 * i + 1);
    }
    for (size_t i = 0; i < 300; i++)
        for (size_t k = 0; k < 3 * i + 1; k++)
            cr_assert_eq(taken[i][k], i % 251);
}

Test(arena, gives_more_than_a_block_of_its_own)
{
    const size_t size = 1 << 20;
    uint8_t *before = arena_take(&arena, 1);
    *before = 7;

    uint8_t *large = arena_take(&arena, size);
    memset(large, 1, size);

    cr_assert_eq(*before, 7);
}

Test(arena, refuses_a_size_that_would_wrap)
{
    cr_assert_null(arena_take(&arena, SIZE_MAX));
    cr_assert_null(arena_take(&arena, SIZE_MAX - 64));
}

Test(arena, ends_copies_with_a_nul)
{
    char *copy = arena_copy(&arena, "abcdef", 3);
    cr_assert_str_eq(copy, "abc");
}

Test(arena, copies_nothing_as_an_empty_string)
{
    cr_assert_str_eq(arena_copy(&arena, NULL, 0), "");
}

Test(arena, may_be_used_again_after_it_is_freed)
{
    arena_take(&arena, 100);
    arena_free(&arena);
    cr_assert_str_eq(arena_copy(&arena, "abc", 3), "abc");
}
