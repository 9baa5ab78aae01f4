/* SPDX-License-Identifier: MIT */
/**
 * Identifiers, and counts that may not be known.
 *
 * The records of a trace refer to each other by small numbers.
 *
 *     ttd_id stack = TTD_NONE;
 *     printf("%s\n", stack == TTD_NONE ? "no stack was recorded" : "there is a stack");
 */
#ifndef TTDTRACE_IDS_H
#define TTDTRACE_IDS_H

#include <stdint.h>

#include <ttdtrace/version.h>

TTD_BEGIN_DECLS

/**
 * Identifiers of strings, modules, stacks, threads and heaps: dense, in order of definition,
 * counted from 1. TTD_NONE means none. An identifier never changes its meaning.
 */
typedef uint32_t ttd_id;
#define TTD_NONE ((ttd_id)0)

/** A count that is not known. */
#define TTD_UNKNOWN UINT64_MAX

TTD_END_DECLS

#endif
