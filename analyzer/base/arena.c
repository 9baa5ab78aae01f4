/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE 65536
#define ALIGNMENT  sizeof(max_align_t)

void *arena_take(struct arena *memory, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!memory->last || memory->size - memory->used < size) {
        size_t wanted = size + ALIGNMENT > BLOCK_SIZE ? size + ALIGNMENT : BLOCK_SIZE;
        char *block = malloc(wanted);
        if (!block)
            return NULL;
        /* Each block begins with a pointer to the one before. */
        memcpy(block, &memory->last, sizeof memory->last);
        memory->last = block;
        memory->used = ALIGNMENT;
        memory->size = wanted;
    }
    char *taken = (char *)memory->last + memory->used;
    memory->used += size;
    return taken;
}

char *arena_copy(struct arena *memory, const char *data, size_t size)
{
    char *copy = arena_take(memory, size + 1);
    if (!copy)
        return NULL;
    if (size)
        memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}

void arena_free(struct arena *memory)
{
    while (memory->last) {
        void *before;
        memcpy(&before, memory->last, sizeof before);
        free(memory->last);
        memory->last = before;
    }
    memory->used = 0;
    memory->size = 0;
}
