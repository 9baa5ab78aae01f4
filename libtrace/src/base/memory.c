/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_CAPACITY = 1024 };

static void *memory_default_resize(void *context, void *block, size_t size)
{
    (void)context;
    return realloc(block, size);
}

static void memory_default_release(void *context, void *block)
{
    (void)context;
    free(block);
}

struct ttd_allocator ttd_allocator_default(void)
{
    struct ttd_allocator allocator = {NULL, memory_default_resize, memory_default_release};
    return allocator;
}

struct ttd_allocator ttd_allocator_or_default(const struct ttd_allocator *allocator)
{
    return allocator ? *allocator : ttd_allocator_default();
}

int ttd_allocator_is_valid(const struct ttd_allocator *allocator)
{
    return !allocator || (allocator->resize && allocator->release);
}

void *ttd_allocate_zeroed(const struct ttd_allocator *allocator, size_t size)
{
    void *block = allocator->resize(allocator->context, NULL, size);
    if (block)
        memset(block, 0, size);
    return block;
}

int ttd_grow_array(const struct ttd_allocator *allocator, void **array, size_t *capacity,
                   size_t count, size_t element)
{
    if (count <= *capacity)
        return 0;
    /* A small array grows faster: to move it costs more than the memory. How it grows does not
     * depend on the size of an element: arrays of one capacity grow alike. */
    size_t new_capacity = *capacity + (*capacity <= SMALL_CAPACITY ? *capacity : *capacity / 2);
    if (new_capacity < count)
        new_capacity = count;
    if (new_capacity < 16)
        new_capacity = 16;
    if (new_capacity > SIZE_MAX / element)
        return -1;
    void *block = allocator->resize(allocator->context, *array, new_capacity * element);
    if (!block)
        return -1;
    *array = block;
    *capacity = new_capacity;
    return 0;
}

int ttd_grow_array_zeroed(const struct ttd_allocator *allocator, void **array, size_t *capacity,
                          size_t count, size_t element)
{
    size_t before = *capacity;
    if (ttd_grow_array(allocator, array, capacity, count, element))
        return -1;
    if (*capacity > before)
        memset((char *)*array + before * element, 0, (*capacity - before) * element);
    return 0;
}
