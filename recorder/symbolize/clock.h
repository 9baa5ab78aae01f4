/* SPDX-License-Identifier: MIT */
/** Monotonic time in milliseconds, for deadlines. */
#ifndef RECORDER_SYMBOLIZE_CLOCK_H
#define RECORDER_SYMBOLIZE_CLOCK_H

#include <stdint.h>
#include <time.h>

/** Returns CLOCK_MONOTONIC in milliseconds. */
static inline int64_t milliseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

#endif
