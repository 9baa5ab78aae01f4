/* SPDX-License-Identifier: MIT */
#include "base/grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LARGE_PAGE (UINT64_C(2) << 20)

ttd_status grow_array(void **array, size_t *capacity, size_t count, size_t size)
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
    *array = grown;
    *capacity = wanted;
    return TTD_OK;
}

void grow_hint(void *memory, size_t size)
{
#ifdef MADV_HUGEPAGE
    uintptr_t begin = (uintptr_t)memory;
    uintptr_t first = (begin + LARGE_PAGE - 1) & ~(uintptr_t)(LARGE_PAGE - 1);
    uintptr_t end = (begin + size) & ~(uintptr_t)(LARGE_PAGE - 1);
    if (memory && first < end)
        madvise((char *)memory + (first - begin), end - first, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)size;
#endif
}
