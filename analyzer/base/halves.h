/* SPDX-License-Identifier: MIT */
/** Work on many things in a row, of which two threads do half each. */
#ifndef ANALYZER_BASE_HALVES_H
#define ANALYZER_BASE_HALVES_H

#include <stddef.h>

#include <ttdtrace/status.h>

/** Does the work on the things from number `begin` up to `end`, without that. */
typedef enum ttd_status (*halves_function)(void *context, size_t begin, size_t end);

/** Where the second half begins. */
static inline size_t halves_middle(size_t count)
{
    return count / 2;
}

/**
 * Calls a function for the first half with the context `first`, and for the second half with
 * `second`: one after the other, in any order, if there are few things, or only one processor; else
 * at the same time.
 *
 * @return the status of the first half, or that of the second if the first returned TTD_OK
 */
enum ttd_status halves_do(halves_function function, void *first, void *second, size_t count);

#endif
