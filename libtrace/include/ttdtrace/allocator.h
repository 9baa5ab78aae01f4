/* SPDX-License-Identifier: MIT */
/**
 * The memory that the library uses.
 *
 * A program that counts, limits or places all memory passes its own functions to each object that
 * it opens; all others pass NULL.
 *
 *     struct ttd_allocator allocator = ttd_allocator_default();
 *     char *block = allocator.resize(allocator.context, NULL, 100);
 *     printf("%s\n", block ? "got 100 bytes" : "no memory");
 *     allocator.release(allocator.context, block);
 *
 * Threads: any thread may call these functions at any time; they have no state. The functions of a
 * table are called by the threads that use its objects, concurrently if several do.
 */
#ifndef TTDTRACE_ALLOCATOR_H
#define TTDTRACE_ALLOCATOR_H

#include <stddef.h>

#include <ttdtrace/version.h>

TTD_BEGIN_DECLS

/**
 * Table of memory functions. The library gets memory from nowhere else. The table is copied at
 * open; `context` must outlive the object. Both functions must be set.
 */
struct ttd_allocator {
    void *context;
    /**
     * Like realloc: resizes `block` (NULL for a new one) to `size` > 0 bytes, aligned for any
     * type; NULL on failure, with `block` untouched.
     */
    void *(*resize)(void *context, void *block, size_t size);
    /** Like free; `block` may be NULL. */
    void (*release)(void *context, void *block);
};

/** Returns the C library's realloc and free; used wherever an allocator argument is NULL. */
TTD_EXPORT struct ttd_allocator ttd_allocator_default(void);

TTD_END_DECLS

#endif
