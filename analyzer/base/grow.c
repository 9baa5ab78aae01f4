/* SPDX-License-Identifier: MIT */
/* Apart from tables, since nearly all parts of the analyzer grow arrays and few have tables. */
#include "base/grow.h"

#include <stdint.h>
#include <stdlib.h>

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
