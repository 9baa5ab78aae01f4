/* SPDX-License-Identifier: MIT */
/* Apart from tables, since nearly all parts of the analyzer grow arrays and few have tables. */
#include "base/grow.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"

enum ttd_status grow_array(void **array, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity)
        return TTD_OK;
    size_t needed = *capacity < 16 ? 16 : *capacity;
    while (needed < count) {
        if (needed > SIZE_MAX / 2)
            return TTD_ERROR_NO_MEMORY;
        needed *= 2;
    }
    if (needed > SIZE_MAX / size)
        return TTD_ERROR_NO_MEMORY;
    void *grown = realloc(*array, needed * size);
    if (!grown)
        return TTD_ERROR_NO_MEMORY;
    pages_hint(grown, needed * size);
    *array = grown;
    *capacity = needed;
    return TTD_OK;
}

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
