/* SPDX-License-Identifier: MIT */
/** Growing arrays for the child process, which is expendable: running out of memory ends it. */
#ifndef RECORDER_SYMBOLIZE_GROW_H
#define RECORDER_SYMBOLIZE_GROW_H

#include <stddef.h>

/** Returns `count` zeroed elements, never NULL: ends the process if memory runs out. */
void *grow_new(size_t count, size_t size);

/**
 * Makes room for one more than `count` elements in an array of `*capacity` elements, which is NULL
 * if that is 0. Returns the array, which may have moved; ends the process if memory runs out.
 */
void *grow_by_one(void *array, size_t *capacity, size_t count, size_t size);

#endif
