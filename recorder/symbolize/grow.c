/* SPDX-License-Identifier: MIT */
#include "symbolize/grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

void *grow_new(size_t count, size_t size)
{
    void *array = calloc(count > 0 ? count : 1, size);
    if (array == NULL)
        _exit(EXIT_FAILURE);
    return array;
}

void *grow_by_one(void *array, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity)
        return array;
    size_t new_capacity = *capacity > 0 ? *capacity : 32;
    if (new_capacity > SIZE_MAX / 2 / size)
        _exit(EXIT_FAILURE);
    new_capacity *= 2;
    array = realloc(array, new_capacity * size);
    if (array == NULL)
        _exit(EXIT_FAILURE);
    *capacity = new_capacity;
    return array;
}
