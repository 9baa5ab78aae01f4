/* SPDX-License-Identifier: MIT */
/** An arena: memory for many small allocations that are released together. */
#ifndef ANALYZER_BASE_ARENA_H
#define ANALYZER_BASE_ARENA_H

#include <stddef.h>

/** All zero when empty. */
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
