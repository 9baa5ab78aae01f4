/* SPDX-License-Identifier: MIT */
/* Work that two threads may do half of each. */
#include <criterion/criterion.h>

#include "base/task.h"

/* Few things, which one thread does, and many. */
static const size_t counts[] = {0, 1, 2, 3, 1000, 100001};

#define COUNTS (sizeof counts / sizeof *counts)
#define MANY   100001

static unsigned char done[MANY];

struct work {
    size_t begin;
    size_t end;
    enum ttd_status status;
};

static enum ttd_status work(void *context, size_t begin, size_t end)
{
    struct work *half = context;
    half->begin = begin;
    half->end = end;
    for (size_t i = begin; i < end; i++)
        done[i]++;
    return half->status;
}

Test(halves, together_do_everything_once)
{
    for (size_t i = 0; i < COUNTS; i++) {
        struct work first = {.status = TTD_OK}, second = first;
        memset(done, 0, sizeof done);
        cr_assert_eq(halves_do(work, &first, &second, counts[i]), TTD_OK);
        cr_assert_eq(first.begin, 0);
        cr_assert_eq(first.end, task_halves_middle(counts[i]));
        cr_assert_eq(second.begin, first.end);
        cr_assert_eq(second.end, counts[i]);
        for (size_t thing = 0; thing < MANY; thing++)
            cr_assert_eq(done[thing], thing < counts[i], "thing %zu of %zu", thing, counts[i]);
    }
}

Test(halves, may_fail_and_then_the_first_failure_counts)
{
    for (size_t i = 0; i < COUNTS; i++) {
        struct work fine = {.status = TTD_OK};
        struct work bad = {.status = TTD_ERROR_NO_MEMORY}, worse = {.status = TTD_ERROR_CORRUPT};
        cr_assert_eq(halves_do(work, &fine, &bad, counts[i]), TTD_ERROR_NO_MEMORY);
        cr_assert_eq(halves_do(work, &bad, &fine, counts[i]), TTD_ERROR_NO_MEMORY);
        cr_assert_eq(halves_do(work, &worse, &bad, counts[i]), TTD_ERROR_CORRUPT);
    }
}
