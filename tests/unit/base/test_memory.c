/* SPDX-License-Identifier: MIT */
/* Allocation through the caller's table. */
#include <criterion/criterion.h>

#include "base/memory.h"
#include "support/chaos.h"

static struct chaos_memory memory;
static struct ttd_allocator allocator;
static void *array;
static size_t capacity;

static void begin(void)
{
    chaos_memory_init(&memory, CHAOS_NEVER);
    allocator = chaos_allocator(&memory);
    array = NULL;
    capacity = 0;
}

static void finish(void)
{
    ttd_release(&allocator, array);
}

TestSuite(memory, .init = begin, .fini = finish);

Test(memory, is_zeroed)
{
    uint8_t *block = ttd_allocate_zeroed(&allocator, 100);
    for (size_t i = 0; i < 100; i++)
        cr_assert_eq(block[i], 0);
    ttd_release(&allocator, block);
}

Test(memory, of_an_array_has_room_for_what_is_asked)
{
    cr_assert_eq(ttd_grow_array(&allocator, &array, &capacity, 1000, 8), 0);
    cr_assert_geq(capacity, 1000);
    cr_assert_geq(memory.bytes, 8000);
}

Test(memory, of_an_array_is_kept_where_there_is_room)
{
    ttd_grow_array(&allocator, &array, &capacity, 1000, 8);
    uint64_t calls = memory.counter.calls;
    cr_assert_eq(ttd_grow_array(&allocator, &array, &capacity, capacity, 8), 0);
    cr_assert_eq(memory.counter.calls, calls);
}

Test(memory, of_an_array_is_untouched_on_failure)
{
    ttd_grow_array(&allocator, &array, &capacity, 16, 8);
    void *array_before = array;
    size_t capacity_before = capacity;
    memory.counter.fail_at = memory.counter.calls;

    cr_assert_neq(ttd_grow_array(&allocator, &array, &capacity, 1000, 8), 0);

    cr_assert_eq(array, array_before);
    cr_assert_eq(capacity, capacity_before);
}

Test(memory, of_an_array_must_not_wrap)
{
    uint64_t calls = memory.counter.calls;
    cr_assert_neq(ttd_grow_array(&allocator, &array, &capacity, SIZE_MAX / 8 + 1, 8), 0);
    cr_assert_eq(memory.counter.calls, calls, "no memory is asked for");
}

Test(memory, comes_from_the_default_table_where_none_is_given)
{
    struct ttd_allocator given = ttd_allocator_or_default(NULL);
    void *block = ttd_allocate_zeroed(&given, 8);
    cr_assert_not_null(block);
    ttd_release(&given, block);
}

Test(memory, needs_both_functions_of_a_table)
{
    cr_assert(ttd_allocator_is_valid(NULL));
    cr_assert(ttd_allocator_is_valid(&allocator));
    allocator.release = NULL;
    cr_assert_not(ttd_allocator_is_valid(&allocator));
    allocator = chaos_allocator(&memory);
    allocator.resize = NULL;
    cr_assert_not(ttd_allocator_is_valid(&allocator));
}
