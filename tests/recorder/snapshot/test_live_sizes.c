/* SPDX-License-Identifier: MIT */
/* The table of the sizes of live blocks, against an array of them. */
#include <criterion/criterion.h>

#include "collect/trace/live_sizes.h"
#include "support/entropy.h"

enum { BLOCKS = 5000, STEPS = 200000, TOO_MANY = (1 << 22) - (1 << 20) };

static void allocate(struct live_sizes *sizes, uint64_t address, uint64_t size)
{
    live_sizes_event(
        sizes, &(struct ttd_event){.action = TTD_ACTION_ALLOC, .address = address, .size = size});
}

Test(live_sizes, has_the_bytes_of_all_live_blocks)
{
    static uint64_t model[BLOCKS];
    struct live_sizes *sizes = live_sizes_new(LIVE_EXACT);
    struct entropy entropy = entropy_of_seed(35);
    uint64_t bytes = 0;
    for (int i = 0; i < STEPS; i++) {
        uint64_t at = entropy_below(&entropy, BLOCKS), size = entropy_below(&entropy, 999) + 1;
        uint64_t other = entropy_below(&entropy, BLOCKS);
        struct ttd_event event = {.action = TTD_ACTION_ALLOC, .address = 16 * at + 16};
        struct ttd_call call = {.action = TTD_ACTION_FREE, .address = 16 * at + 16};
        event.size = size;
        switch (entropy_pick(&entropy, 4)) {
        case 0: /* with or without a release before */
            bytes += size - model[at];
            model[at] = size;
            live_sizes_event(sizes, &event);
            break;
        case 1:
            bytes -= model[at];
            model[at] = 0;
            live_sizes_calls(sizes, &(struct ttd_calls){.calls = &call, .count = 1});
            break;
        case 2: /* moves, perhaps to where it was */
            bytes -= model[other];
            model[other] = 0;
            bytes += size - model[at];
            model[at] = size;
            event.action = TTD_ACTION_REALLOC;
            event.base_address = 16 * other + 16;
            live_sizes_event(sizes, &event);
            break;
        default: /* fails */
            event.action = TTD_ACTION_REALLOC;
            event.base_address = event.address;
            event.address = 0;
            live_sizes_event(sizes, &event);
        }
        live_sizes_calls(sizes, &(struct ttd_calls){.count = 0}); /* a reallocation has ended */
        cr_assert_eq(sizes->bytes, bytes);
    }
    cr_assert_eq(sizes->doubt, LIVE_EXACT);
    live_sizes_free(sizes);
}

/* A reallocation may be given the block that another thread has released since it began. */
Test(live_sizes, has_blocks_of_reallocations_from_their_ends_on)
{
    struct live_sizes *sizes = live_sizes_new(LIVE_EXACT);
    allocate(sizes, 16, 100);
    allocate(sizes, 32, 10);
    live_sizes_event(sizes, &(struct ttd_event){.action = TTD_ACTION_REALLOC,
                                                .time_start = {2, 0},
                                                .time_end = {5, 0},
                                                .base_address = 32,
                                                .address = 16,
                                                .size = 7});
    cr_assert_eq(sizes->bytes, 107);
    live_sizes_event(sizes, &(struct ttd_event){.action = TTD_ACTION_FREE,
                                                .time_start = {3, 0},
                                                .time_end = {3, 1},
                                                .base_address = 16});
    cr_assert_eq(sizes->bytes, 7);
    const struct ttd_call call = {.action = TTD_ACTION_FREE, .address = 16};
    live_sizes_calls(sizes, &(struct ttd_calls){.calls = &call, .count = 1, .start = {6, 0}});
    cr_assert_eq(sizes->bytes, 0);
    live_sizes_free(sizes);
}

Test(live_sizes, is_bounded_and_says_so)
{
    struct live_sizes *sizes = live_sizes_new(LIVE_EXACT);
    for (uint64_t i = 1; i <= TOO_MANY; i++)
        allocate(sizes, 16 * i, 2);
    cr_assert_eq(sizes->doubt, LIVE_EXACT);
    allocate(sizes, 16 * (uint64_t)TOO_MANY + 16, 2);
    cr_assert_eq(sizes->doubt, LIVE_NO_ROOM);
    cr_assert_eq(sizes->bytes, 2 * (uint64_t)TOO_MANY);
    live_sizes_free(sizes);
}

Test(live_sizes, a_new_heap_ends_doubts)
{
    const struct ttd_event destroy = {.action = TTD_ACTION_DESTROY};
    struct live_sizes *sizes = live_sizes_new(LIVE_BEFORE);
    allocate(sizes, 16, 5);
    live_sizes_doubt(sizes, LIVE_UNKNOWN);
    live_sizes_doubt(sizes, LIVE_BEFORE);
    allocate(sizes, 32, 6);
    cr_assert_eq(sizes->doubt, LIVE_UNKNOWN);
    cr_assert_eq(sizes->bytes, 0);
    live_sizes_event(sizes, &destroy);
    allocate(sizes, 16, 7);
    cr_assert_eq(sizes->doubt, LIVE_EXACT);
    cr_assert_eq(sizes->bytes, 7);
    live_sizes_free(sizes);
    /* Options of a recording hold for all programs. */
    sizes = live_sizes_new(LIVE_SAMPLE);
    live_sizes_event(sizes, &destroy);
    cr_assert_eq(sizes->doubt, LIVE_SAMPLE);
    live_sizes_free(sizes);
}
