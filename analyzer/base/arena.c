/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE 65536
#define ALIGNMENT  _Alignof(max_align_t)

void *arena_take(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!arena->last || arena->size - arena->used < size) {
        size_t needed = size + ALIGNMENT > BLOCK_SIZE ? size + ALIGNMENT : BLOCK_SIZE;
        char *block = malloc(needed);
        if (!block)
            return NULL;
        /* Each block begins with a pointer to the previous one, so that arena_free() needs no list.
         */
        memcpy(block, &arena->last, sizeof arena->last);
        arena->last = block;
        arena->used = ALIGNMENT;
        arena->size = needed;
    }
    char *memory = (char *)arena->last + arena->used;
    arena->used += size;
    return memory;
}

char *arena_copy(struct arena *arena, const char *data, size_t size)
{
    char *copy = arena_take(arena, size + 1);
    if (!copy)
        return NULL;
    if (size)
        memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}

void arena_free(struct arena *arena)
{
    while (arena->last) {
        void *before;
        memcpy(&before, arena->last, sizeof before);
        free(arena->last);
        arena->last = before;
    }
    arena->used = 0;
    arena->size = 0;
}
