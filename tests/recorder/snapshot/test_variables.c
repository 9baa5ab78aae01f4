/* SPDX-License-Identifier: MIT */
/* Words of data that have to be named. */
#include <criterion/criterion.h>

#include "collect/trace/variables.h"

static struct variables variables;

static void expect_words(const struct variable_word *expected, size_t count)
{
    variables_sort(&variables);
    cr_assert_eq(variables.count, count, "%zu", variables.count);
    for (size_t i = 0; i < count; i++) {
        cr_expect_eq(variables.words[i].module, expected[i].module);
        cr_expect_eq(variables.words[i].offset, expected[i].offset);
    }
}

static void end(void)
{
    variables_free(&variables);
}

TestSuite(variables, .fini = end);

Test(variables, are_sorted_and_once)
{
    variables_add(&variables, 2, 8);
    variables_add(&variables, 1, UINT64_MAX - 7);
    variables_add(&variables, 2, 8);
    variables_add(&variables, 1, 16);
    expect_words((struct variable_word[]){{1, 16}, {1, UINT64_MAX - 7}, {2, 8}}, 3);
}

/* Those in variables that are known need no name, in this module only. */
Test(variables, are_left_if_known)
{
    variables_know(&variables, 1, 32, 16);
    variables_know(&variables, 1, 8, 8);
    variables_know(&variables, 3, 0, UINT64_MAX);
    for (uint64_t offset = 0; offset < 64; offset += 8) {
        variables_add(&variables, 1, offset);
        variables_add(&variables, 3, offset);
    }
    variables_add(&variables, 2, 40);
    expect_words((struct variable_word[]){{1, 0}, {1, 16}, {1, 24}, {1, 48}, {1, 56}, {2, 40}}, 6);
    variables_know(&variables, 1, 48, 16);
    expect_words((struct variable_word[]){{1, 0}, {1, 16}, {1, 24}, {2, 40}}, 4);
}

Test(variables, are_limited)
{
    for (uint64_t i = 0; i < VARIABLE_WORDS_MAX + 1000; i++)
        variables_add(&variables, 1, i * 8);
    variables_sort(&variables);
    cr_expect_eq(variables.count, VARIABLE_WORDS_MAX);
}
