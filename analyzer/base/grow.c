/* SPDX-License-Identifier: MIT */
#include "base/grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void grow_hint(void *memory, size_t size)
{
#ifdef MADV_HUGEPAGE
    if (!memory || size < LARGE_PAGE)
        return;
    /* All pages of it: were some left out, the system could no longer move them together. */
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t before = (uintptr_t)memory % page;
    uintptr_t after = (page - (before + size) % page) % page;
    madvise((char *)memory - before, before + size + after, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)size;
#endif
}

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
    grow_hint(grown, wanted * size);
    *array = grown;
    *capacity = wanted;
    return TTD_OK;
}
