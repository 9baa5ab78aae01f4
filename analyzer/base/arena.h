/* SPDX-License-Identifier: MIT */
/** Memory for many small things that are released together. */
#ifndef ANALYZER_BASE_ARENA_H
#define ANALYZER_BASE_ARENA_H

#include <stddef.h>

/** All zero when empty. */
struct arena {
    void *last;
    size_t used;
    size_t size;
};

/** `size` bytes, aligned for any type, or NULL. Valid until arena_free(). */
void *arena_take(struct arena *arena, size_t size);

/** A copy of `size` bytes with a NUL after them, or NULL. */
char *arena_copy(struct arena *arena, const char *data, size_t size);

void arena_free(struct arena *arena);

#endif
