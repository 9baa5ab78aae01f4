/* SPDX-License-Identifier: MIT */
#include "allocator.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 64 << 20, LISTED = 1000, ALIGNMENT = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *memory;
static size_t used, listed;
static uintptr_t list; /* complemented: it is no pointer */

static void *take(size_t alignment, size_t size)
{
    size_t at;

    pthread_mutex_lock(&lock);
    if (!memory)
        memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at = (used + alignment - 1) / alignment * alignment;
    if (memory == MAP_FAILED || size > SIZE - at)
        abort();
    used = at + size;
    pthread_mutex_unlock(&lock);
    return memory + at;
}

/* A block has its size before it. */
static void *take_block(size_t alignment, size_t size)
{
    char *block = (char *)take(alignment, alignment + size) + alignment;

    memcpy(block - sizeof size, &size, sizeof size);
    if (list != 0 && listed < LISTED)
        ((void **)~list)[listed++] = block;
    return block;
}

void *allocator_room(size_t size)
{
    return take(ALIGNMENT, size);
}

void allocator_list_blocks(void)
{
    list = ~(uintptr_t)take(ALIGNMENT, LISTED * sizeof(void *));
}

void *malloc(size_t size)
{
    return take_block(ALIGNMENT, size);
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size); /* memory is used once, and zero */
}

void *realloc(void *block, size_t size)
{
    size_t before = 0;
    char *moved = malloc(size);

    if (block)
        memcpy(&before, (char *)block - sizeof before, sizeof before);
    if (before != 0)
        memcpy(moved, block, before < size ? before : size);
    return moved;
}

void *memalign(size_t alignment, size_t size); /* as in <malloc.h> */

void *memalign(size_t alignment, size_t size)
{
    return take_block(alignment > ALIGNMENT ? alignment : ALIGNMENT, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = memalign(alignment, size);
    return 0;
}

void free(void *block)
{
    (void)block;
}
