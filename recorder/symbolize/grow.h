/* SPDX-License-Identifier: MIT */
/** Arrays of the child. It is expendable, so running out of memory just ends it. */
#ifndef TTD_SYMBOLIZE_GROW_H
#define TTD_SYMBOLIZE_GROW_H

#include <stddef.h>

/** `count` zeroed elements. Never NULL: ends the process instead. */
void *grow_new(size_t count, size_t size);

/**
 * Makes room for one more than `count` elements in an array of `*capacity`, NULL if that is 0.
 * Returns the array, which may have moved. Never NULL: ends the process instead.
 */
void *grow_by_one(void *array, size_t *capacity, size_t count, size_t size);

#endif
