/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that the collector keeps open for long. Their number may be limited to fewer than
 * there are recorded processes, and other work needs some for a moment. The system gives out the
 * lowest free number, so a number tells how many are in use.
 */
#ifndef RECORDER_COLLECT_TRACE_DESCRIPTORS_H
#define RECORDER_COLLECT_TRACE_DESCRIPTORS_H

#include <stdbool.h>
#include <sys/resource.h>

/* Quarters of the limit below which a descriptor may stay open. */
enum { DESCRIPTORS_OF_FILES = 2, DESCRIPTORS_OF_PROCESSES = 3, DESCRIPTORS_ALL = 4 };

static inline bool descriptor_may_stay(int descriptor, unsigned quarters)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
           (rlim_t)descriptor < limit.rlim_cur / DESCRIPTORS_ALL * quarters;
}

#endif
