/* SPDX-License-Identifier: MIT */
/* A growing run of bytes, whose first failure sticks. */
#include <string.h>

#include "base/buffer.h"
#include "support/fixtures/buffer.h"

TestSuite(buffer, .init = buffer_begin, .fini = buffer_finish);

static void fail_from_now_on(void)
{
    memory.counter.fail_at = memory.counter.calls;
    memory.counter.forever = 1;
}

Test(buffer, appends_one_after_the_other)
{
    static const uint8_t expected[] = {'a', 'b', 7, 4, 3, 2, 1, 8, 0, 0, 0, 0, 0, 0, 9, 0xAC, 2};

    ttd_buffer_put(&buffer, "ab", 2);
    ttd_buffer_put8(&buffer, 7);
    ttd_buffer_put32(&buffer, 0x01020304);
    ttd_buffer_put64(&buffer, UINT64_C(0x0900000000000008));
    ttd_buffer_put_varint(&buffer, 300);

    cr_assert_eq(buffer.size, sizeof expected);
    cr_assert_eq(memcmp(buffer.data, expected, sizeof expected), 0);
    cr_assert_not(buffer.failed);
}

Test(buffer, appends_nothing_without_needing_memory)
{
    fail_from_now_on();
    ttd_buffer_put(&buffer, NULL, 0);
    cr_assert_not(buffer.failed);
    cr_assert_eq(buffer.size, 0);
}

Test(buffer, keeps_its_content_while_it_grows)
{
    for (uint32_t i = 0; i < 10000; i++)
        ttd_buffer_put32(&buffer, i);
    cr_assert_eq(buffer.size, 40000);
    for (uint32_t i = 0; i < 10000; i++)
        cr_assert_eq(ttd_get32(buffer.data + 4 * i), i);
}

Test(buffer, grows_in_few_steps)
{
    for (uint32_t i = 0; i < 10000; i++)
        ttd_buffer_put32(&buffer, i);
    cr_assert_lt(memory.counter.calls, 40);
}

Test(buffer, keeps_its_memory_when_it_is_cleared)
{
    ttd_buffer_put(&buffer, "ab", 2);
    ttd_buffer_clear(&buffer);
    cr_assert_eq(buffer.size, 0);
    fail_from_now_on();

    ttd_buffer_put(&buffer, "cd", 2);

    cr_assert_not(buffer.failed);
    cr_assert_eq(memcmp(buffer.data, "cd", 2), 0);
}

Test(buffer, keeps_its_content_where_memory_runs_out)
{
    ttd_buffer_put(&buffer, "ab", 2);
    fail_from_now_on();

    cr_assert_not(ttd_buffer_reserve(&buffer, 1000));

    cr_assert(buffer.failed);
    cr_assert_eq(buffer.size, 2);
    cr_assert_eq(memcmp(buffer.data, "ab", 2), 0);
}

Test(buffer, appends_nothing_after_a_failure)
{
    ttd_buffer_put(&buffer, "ab", 2);
    memory.counter.fail_at = memory.counter.calls;
    ttd_buffer_reserve(&buffer, 1000);

    ttd_buffer_put8(&buffer, 1);
    ttd_buffer_put_varint(&buffer, 1);

    cr_assert(buffer.failed, "although there is memory again, and room");
    cr_assert_eq(buffer.size, 2);
}

Test(buffer, refuses_a_size_that_would_wrap)
{
    ttd_buffer_put(&buffer, "ab", 2);
    cr_assert_not(ttd_buffer_reserve(&buffer, SIZE_MAX));
    cr_assert(buffer.failed);
}
