/* SPDX-License-Identifier: MIT */
/** Memory for many small things that are released together. */
#ifndef ANALYZER_BASE_ARENA_H
#define ANALYZER_BASE_ARENA_H

#include <stddef.h>

/** All zero when empty. */
typedef struct arena {
    void *last;
    size_t used;
    size_t size;
} arena;

/** `size` bytes, aligned for any type, or NULL. Valid until arena_free(). */
void *arena_take(arena *memory, size_t size);

/** A copy of `size` bytes with a NUL after them, or NULL. */
char *arena_copy(arena *memory, const char *data, size_t size);

void arena_free(arena *memory);

#endif
