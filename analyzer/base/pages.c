/* SPDX-License-Identifier: MIT */
#include "base/pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/halves.h"

void pages_hint(void *memory, size_t size)
{
#ifdef MADV_HUGEPAGE
    if (!memory || size < LARGE_PAGE)
        return;
    /* All pages must have the same hint: the system cannot move a mapping together whose pages
     * differ. */
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t before = (uintptr_t)memory % page;
    uintptr_t after = (page - (before + size) % page) % page;
    madvise((char *)memory - before, before + size + after, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)size;
#endif
}

#ifdef MADV_POPULATE_WRITE

/* One half of the large pages of some memory. A failure changes nothing but speed. */
static enum ttd_status map_half(void *memory, size_t begin, size_t end)
{
    (void)madvise((char *)memory + begin, end - begin, MADV_POPULATE_WRITE);
    return TTD_OK;
}

void pages_map(void *memory, size_t size)
{
    (void)halves_do(map_half, memory, memory, size / (2 * LARGE_PAGE) * (2 * LARGE_PAGE));
}

#else

void pages_map(void *memory, size_t size)
{
    (void)memory;
    (void)size;
}

#endif

#ifdef M_ARENA_MAX

/* Memory that malloc() asks the system for at a time, and free memory that it keeps. */
#define HEAP_STEP (8 * LARGE_PAGE)
#define HEAP_KEPT (32 * LARGE_PAGE)

static bool is_unlimited(int resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

void pages_prepare(void)
{
    if (!is_unlimited(RLIMIT_AS) || !is_unlimited(RLIMIT_DATA))
        return;
    /* Larger arrays have mappings of their own, which mremap() can move without copying. */
    mallopt(M_MMAP_THRESHOLD, 2 * LARGE_PAGE);
    mallopt(M_TOP_PAD, HEAP_STEP);
    mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
    /* One malloc arena serves all threads, since only one of them allocates much at a time. */
    mallopt(M_ARENA_MAX, 1);
    /* This allocation is larger than the free memory, so that the heap grows by a step. Another
     * malloc() has no such step. */
    char *first = malloc(LARGE_PAGE / 8);
    uintptr_t end = (uintptr_t)sbrk(0);
    uintptr_t size = end - (uintptr_t)first;
    if (first && size <= HEAP_STEP + LARGE_PAGE)
        pages_hint(first, size);
    free(first);
}

#else

void pages_prepare(void)
{
}

#endif
