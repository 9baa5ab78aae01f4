/* SPDX-License-Identifier: MIT */
/** Memory that grows: arrays by doubling, and arenas. */
#ifndef ANALYZER_BASE_GROW_H
#define ANALYZER_BASE_GROW_H

#include <stddef.h>

#include <ttdtrace/status.h>

/**
 * Makes room for `count` elements of `size` bytes in `*array`, whose capacity is `*capacity`
 * elements.
 *
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY with the array untouched.
 */
enum ttd_status grow_array(void **array, size_t *capacity, size_t count, size_t size);

/** An arena: memory for many small allocations that are released together. All zero when empty. */
struct arena {
    void *last;
    size_t used;
    size_t size;
};

/** Allocates `size` bytes, aligned for any type; NULL without memory. Valid until arena_free(). */
void *arena_take(struct arena *arena, size_t size);

/** Copies `size` bytes and adds a NUL; NULL without memory. */
char *arena_copy(struct arena *arena, const char *data, size_t size);

void arena_free(struct arena *arena);

#endif
