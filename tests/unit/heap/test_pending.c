/* SPDX-License-Identifier: MIT */
/* The queue of blocks that reallocations in flight will acquire. */
#include <criterion/criterion.h>

#include "heap/replay.h"
#include "support/entropy.h"

static struct heap_queue queue;

static void finish(void)
{
    heap_queue_free(&queue);
}

TestSuite(pending, .fini = finish);

static void push(uint64_t steps, uint64_t event)
{
    struct heap_pending pending = {.block = {.allocated = {1, steps}, .event = event},
                                   .previous_address = 1000 + event};
    cr_assert_eq(heap_queue_push(&queue, &pending), TTD_OK);
}

static uint64_t pop(void)
{
    struct heap_pending pending;
    heap_queue_pop(&queue, &pending);
    cr_assert_eq(pending.previous_address, 1000 + pending.block.event, "all of it comes back");
    return pending.block.event;
}

Test(pending, comes_in_order_of_position)
{
    push(30, 1);
    push(10, 2);
    push(20, 3);

    cr_assert_eq(pop(), 2);
    cr_assert_eq(pop(), 3);
    cr_assert_eq(pop(), 1);
    cr_assert_eq(queue.count, 0);
}

Test(pending, comes_in_order_of_event_at_one_position)
{
    push(10, 3);
    push(10, 1);
    push(10, 2);

    cr_assert_eq(pop(), 1);
    cr_assert_eq(pop(), 2);
    cr_assert_eq(pop(), 3);
}

Test(pending, is_due_at_its_position_and_later)
{
    push(10, 1);
    cr_assert_not(heap_queue_due(&queue, (struct ttd_position){1, 9}));
    cr_assert(heap_queue_due(&queue, (struct ttd_position){1, 10}));
    cr_assert(heap_queue_due(&queue, (struct ttd_position){2, 0}));
}

Test(pending, is_never_due_where_there_is_nothing)
{
    cr_assert_not(heap_queue_due(&queue, ttd_position_max()));
}

Test(pending, comes_in_order_however_it_was_pushed)
{
    struct entropy entropy = entropy_of_seed(1);
    for (unsigned round = 0; round < 300; round++) {
        unsigned count = 1 + entropy_pick(&entropy, 40);
        for (unsigned i = 0; i < count; i++)
            push(entropy_pick(&entropy, 10), entropy_pick(&entropy, 1000));
        struct heap_pending before = {.block.event = 0};
        while (queue.count) {
            struct heap_pending pending;
            heap_queue_pop(&queue, &pending);
            int order = ttd_position_compare(before.block.allocated, pending.block.allocated);
            cr_assert(order < 0 || (order == 0 && before.block.event <= pending.block.event));
            before = pending;
        }
    }
}
