/* SPDX-License-Identifier: MIT */
/** A test that is too slow fails by its processor time, however busy the machine is. */
#ifndef SUPPORT_CPU_LIMIT_H
#define SUPPORT_CPU_LIMIT_H

#include <criterion/criterion.h>
#include <sys/resource.h>

/** Ends the process, which a test of Criterion has for itself, when it has computed that long. */
static inline void cpu_limit(unsigned seconds)
{
    cr_assert_eq(setrlimit(RLIMIT_CPU, &(struct rlimit){seconds, seconds}), 0);
}

#endif
