/* SPDX-License-Identifier: MIT */
#include <ttdtrace/verify.h>

#include "base/status.h"
#include "read/walk.h"

enum ttd_status ttd_verify(const struct ttd_input *input, const struct ttd_allocator *allocator,
                           const struct ttd_problem_observer *observer, struct ttd_verdict *verdict,
                           struct ttd_error *error)
{
    if (!input || !verdict) {
        /* The input is taken over, also on failure. */
        if (input && input->close)
            input->close(input->context);
        return ttd_fail(error, TTD_ERROR_ARGUMENT, "argument", TTD_NOWHERE, TTD_NOWHERE);
    }
    struct ttd_check check = {.observer = ttd_observer_or_none(observer)};
    return ttd_walk_run(&check, input, allocator, verdict, error);
}
