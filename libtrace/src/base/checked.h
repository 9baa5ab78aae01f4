/* SPDX-License-Identifier: MIT */
/** Arithmetic that does not wrap. */
#ifndef TTD_BASE_CHECKED_H
#define TTD_BASE_CHECKED_H

#include <stdint.h>

/** Adds a count of lost events; UINT64_MAX, for unknown, adds nothing, and the sum saturates. */
static inline uint64_t ttd_add_count(uint64_t sum, uint64_t count)
{
    if (count == UINT64_MAX)
        return sum;
    return count < UINT64_MAX - sum ? sum + count : UINT64_MAX;
}

#endif
