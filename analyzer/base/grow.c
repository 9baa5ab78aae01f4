/* SPDX-License-Identifier: MIT */
#include "base/grow.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/pages.h"

enum ttd_status grow_array(void **array, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity)
        return TTD_OK;
    size_t wanted = *capacity < 16 ? 16 : *capacity;
    while (wanted < count) {
        if (wanted > SIZE_MAX / 2)
            return TTD_ERROR_NO_MEMORY;
        wanted *= 2;
    }
    if (wanted > SIZE_MAX / size)
        return TTD_ERROR_NO_MEMORY;
    void *grown = realloc(*array, wanted * size);
    if (!grown)
        return TTD_ERROR_NO_MEMORY;
    pages_hint(grown, wanted * size);
    *array = grown;
    *capacity = wanted;
    return TTD_OK;
}
