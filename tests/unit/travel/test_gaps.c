/* SPDX-License-Identifier: MIT */
/* The end of the gaps before a position, compared with a look at all of them. */
#include <criterion/criterion.h>

#include "support/entropy.h"
#include "travel/losses.h"

enum { GAPS = 40, POSITIONS = 60 };

static struct ttd_position at(uint64_t number)
{
    return (struct ttd_position){number / 8, number % 8};
}

static struct ttd_loss random_gap(struct entropy *entropy)
{
    uint64_t begin = entropy_below(entropy, POSITIONS);
    return (struct ttd_loss){.reason = TTD_LOSS_NOT_RECORDING,
                             .count = TTD_UNKNOWN,
                             .last_good = at(begin),
                             .first_good = at(begin + entropy_below(entropy, 20))};
}

static struct ttd_position end_by_all(const struct ttd_loss *losses, size_t count,
                                      struct ttd_position position)
{
    struct ttd_position end = ttd_position_min();
    for (size_t i = 0; i < count; i++) {
        if (ttd_position_compare(losses[i].last_good, position) < 0 &&
            ttd_position_compare(losses[i].first_good, end) > 0)
            end = losses[i].first_good;
    }
    return end;
}

Test(gaps, ends_are_those_of_gaps_that_began_before)
{
    struct entropy entropy = entropy_of_seed(18);
    for (int round = 0; round < 200; round++) {
        struct heap_gaps gaps = {.count = 0};
        struct ttd_loss losses[GAPS];
        size_t count = entropy_pick(&entropy, GAPS + 1);
        for (size_t i = 0; i < count; i++)
            losses[i] = random_gap(&entropy);
        struct ttd_batch batch = {.kind = TTD_KIND_LOSSES, .count = count, .u = {.losses = losses}};
        cr_assert_eq(heap_gaps_add(&gaps, &batch), TTD_OK);
        for (uint64_t number = 0; number < POSITIONS + 20; number++) {
            struct ttd_position expected = end_by_all(losses, count, at(number));
            cr_assert_eq(ttd_position_compare(heap_gaps_end(&gaps, at(number)), expected), 0);
        }
        heap_gaps_free(&gaps);
    }
}

Test(gaps, other_losses_are_none)
{
    struct heap_gaps gaps = {.count = 0};
    struct ttd_loss losses[] = {
        {.reason = TTD_LOSS_OVERFLOW, .count = 1, .last_good = at(1), .first_good = at(5)},
        {.reason = TTD_LOSS_NOT_RECORDING, .count = 0, .last_good = at(1), .first_good = at(5)},
        {.reason = TTD_LOSS_NOT_RECORDING,
         .count = TTD_UNKNOWN,
         .last_good = at(1),
         .first_good = ttd_position_invalid()}};
    struct ttd_batch batch = {.kind = TTD_KIND_LOSSES, .count = 3, .u = {.losses = losses}};
    cr_assert_eq(heap_gaps_add(&gaps, &batch), TTD_OK);
    cr_assert_eq(gaps.count, 0);
    cr_assert(heap_is_unknown(at(4), at(5)));
    cr_assert(!heap_is_unknown(at(5), at(5)));
    heap_gaps_free(&gaps);
}
