/* SPDX-License-Identifier: MIT */
#include "grow.h"

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
    size_t wanted = *capacity > 0 ? *capacity : 32;
    if (wanted > SIZE_MAX / 2 / size)
        _exit(EXIT_FAILURE);
    wanted *= 2;
    array = realloc(array, wanted * size);
    if (array == NULL)
        _exit(EXIT_FAILURE);
    *capacity = wanted;
    return array;
}
