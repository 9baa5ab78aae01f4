/* SPDX-License-Identifier: MIT */
/** Allocation through the caller's table. */
#ifndef TTD_BASE_MEMORY_H
#define TTD_BASE_MEMORY_H

#include <stddef.h>

#include <ttdtrace/allocator.h>

/** Returns a copy of the caller's table, or the default one for NULL. */
struct ttd_allocator ttd_allocator_or_default(const struct ttd_allocator *allocator);

/** Whether a table is complete, or NULL. */
int ttd_allocator_is_valid(const struct ttd_allocator *allocator);

/** Allocates `size` > 0 zeroed bytes; NULL on failure. */
void *ttd_allocate_zeroed(const struct ttd_allocator *allocator, size_t size);

/**
 * Makes room for `count` elements of `element` bytes in the array `*array` of capacity
 * `*capacity`. Returns 0 on success; on failure the array is untouched.
 */
int ttd_grow_array(const struct ttd_allocator *allocator, void **array, size_t *capacity,
                   size_t count, size_t element);

/** Like ttd_grow_array(), and zeroes the new elements. */
int ttd_grow_array_zeroed(const struct ttd_allocator *allocator, void **array, size_t *capacity,
                          size_t count, size_t element);

static inline void ttd_release(const struct ttd_allocator *allocator, void *block)
{
    allocator->release(allocator->context, block);
}

#endif
