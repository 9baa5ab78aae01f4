/* SPDX-License-Identifier: MIT */
#include "base/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

void pages_hint(void *memory, size_t size)
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

void pages_prepare(void)
{
#ifdef __GLIBC__
    /* Larger arrays have mappings of their own, which can be moved. */
    mallopt(M_MMAP_THRESHOLD, 2 * LARGE_PAGE);
    mallopt(M_TOP_PAD, 8 * LARGE_PAGE);
    mallopt(M_TRIM_THRESHOLD, 32 * LARGE_PAGE);
    /* One heap for all threads: of few, only one allocates much at a time. */
    mallopt(M_ARENA_MAX, 1);
    /* More than may be there already: it grows by what was said above. */
    char *first = malloc(LARGE_PAGE / 8);
    const char *end = sbrk(0);
    if (first && (uintptr_t)end > (uintptr_t)first)
        pages_hint(first, (size_t)((uintptr_t)end - (uintptr_t)first));
    free(first);
#endif
}
