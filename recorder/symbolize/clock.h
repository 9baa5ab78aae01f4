/* SPDX-License-Identifier: MIT */
/** The time that limits are measured in. */
#ifndef TTD_SYMBOLIZE_CLOCK_H
#define TTD_SYMBOLIZE_CLOCK_H

#include <stdint.h>
#include <time.h>

/** Of CLOCK_MONOTONIC. */
static inline int64_t milliseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

#endif
