/* SPDX-License-Identifier: MIT */
/* Error details, and sums of counts that may be unknown. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/fail.h"

Test(status, of_a_failure_is_returned_with_its_details)
{
    struct ttd_error error;

    enum ttd_status status = ttd_fail(&error, TTD_ERROR_CORRUPT, "why", 112, 3);

    cr_assert_eq(status, TTD_ERROR_CORRUPT);
    cr_assert_eq(error.status, TTD_ERROR_CORRUPT);
    cr_assert_eq(error.system_error, 0);
    cr_assert_eq(error.offset, 112);
    cr_assert_eq(error.chunk, 3);
    cr_assert_str_eq(error.what, "why");
}

Test(status, of_a_failure_of_the_system_has_its_number)
{
    struct ttd_error error;

    enum ttd_status status = ttd_fail_system(&error, 28, "why", 112);

    cr_assert_eq(status, TTD_ERROR_IO);
    cr_assert_eq(error.status, TTD_ERROR_IO);
    cr_assert_eq(error.system_error, 28);
    cr_assert_eq(error.offset, 112);
    cr_assert_eq(error.chunk, TTD_NOWHERE);
}

Test(status, needs_nobody_who_wants_details)
{
    cr_assert_eq(ttd_fail(NULL, TTD_ERROR_LIMIT, "why", 0, 0), TTD_ERROR_LIMIT);
    cr_assert_eq(ttd_fail_system(NULL, 28, "why", 0), TTD_ERROR_IO);
}

Test(status, has_a_text_of_its_own)
{
    for (int i = TTD_OK; i <= TTD_ERROR_CANCELLED; i++)
        for (int j = TTD_OK; j < i; j++)
            cr_assert_str_neq(ttd_status_text((enum ttd_status)i),
                              ttd_status_text((enum ttd_status)j));
}
