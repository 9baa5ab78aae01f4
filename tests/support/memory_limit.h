/* SPDX-License-Identifier: MIT */
/** A process that gets no more memory. */
#ifndef SUPPORT_MEMORY_LIMIT_H
#define SUPPORT_MEMORY_LIMIT_H

#include <stddef.h>

/** Lets the process map at most so many more bytes from now on. Returns 0, or -1 with errno. */
int memory_limit(size_t more);

/**
 * Calls `attempt` again and again: with 128 MB that the process may map but that are taken, and
 * with a little less of that taken each time, until the call succeeds. An allocation of 1 MB or
 * more fails at least once. The process keeps the limit.
 *
 * @param attempt  returns whether there was memory enough
 * @return how many calls failed; 0 if there never was enough, or the limit could not be set
 */
unsigned memory_limit_try(int (*attempt)(void));

#endif
