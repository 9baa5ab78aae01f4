/* SPDX-License-Identifier: MIT */
/* Every function of mimalloc: a part of allocators.c. */
#include <limits.h>

#include <mimalloc.h>

/* Calls that acquire `size` bytes, each released by one of several functions. */
static void call_acquisitions(mi_heap_t *heap, size_t size)
{
    RELEASE(mi_cfree, acquired(mi_malloc(size), size));
    RELEASE(mi_free_aligned, acquired(mi_malloc_small(size), size), 8);
    RELEASE(mi_free, acquired(mi_zalloc(size), size));
    RELEASE(mi_cfree, acquired(mi_zalloc_small(size), size));
    RELEASE(mi_free_aligned, acquired(mi_new(size), size), 8);
    RELEASE(mi_free, acquired(mi_new_nothrow(size), size));
    RELEASE(mi_cfree, acquired(mi_valloc(size), size));
    RELEASE(mi_free_aligned, acquired(mi_pvalloc(size), size), 8);
    RELEASE(mi_free, acquired(mi_heap_malloc(heap, size), size));
    RELEASE(mi_cfree, acquired(mi_heap_malloc_small(heap, size), size));
    RELEASE(mi_free_aligned, acquired(mi_heap_zalloc(heap, size), size), 8);
    RELEASE(mi_free, acquired(mi_heap_alloc_new(heap, size), size));
    RELEASE(mi_cfree, acquired(mi_calloc(3, size), 3 * size));
    RELEASE(mi_free_aligned, acquired(mi_mallocn(3, size), 3 * size), 8);
    RELEASE(mi_free, acquired(mi_new_n(3, size), 3 * size));
    RELEASE(mi_cfree, acquired(mi_heap_calloc(heap, 3, size), 3 * size));
    RELEASE(mi_free_aligned, acquired(mi_heap_mallocn(heap, 3, size), 3 * size), 8);
    RELEASE(mi_free, acquired(mi_heap_alloc_new_n(heap, 3, size), 3 * size));
    RELEASE(mi_free_size, acquired(mi_malloc(size), size), size);
}

static void call_aligned(mi_heap_t *heap, size_t size)
{
    RELEASE(mi_cfree, acquired(mi_malloc_aligned(size, 64), size));
    RELEASE(mi_free_aligned, acquired(mi_zalloc_aligned(size, 64), size), 8);
    RELEASE(mi_free, acquired(mi_new_aligned(size, 64), size));
    RELEASE(mi_cfree, acquired(mi_new_aligned_nothrow(size, 64), size));
    RELEASE(mi_free_aligned, acquired(mi_memalign(64, 64 * size), 64 * size), 8);
    RELEASE(mi_free, acquired(mi_aligned_alloc(64, 64 * size), 64 * size));
    RELEASE(mi_cfree, acquired(mi_malloc_aligned_at(size, 64, 8), size));
    RELEASE(mi_free_aligned, acquired(mi_zalloc_aligned_at(size, 64, 8), size), 8);
    RELEASE(mi_free, acquired(mi_calloc_aligned(3, size, 64), 3 * size));
    RELEASE(mi_cfree, acquired(mi_calloc_aligned_at(3, size, 64, 8), 3 * size));
    RELEASE(mi_free_aligned, acquired(mi_heap_malloc_aligned(heap, size, 64), size), 8);
    RELEASE(mi_free, acquired(mi_heap_zalloc_aligned(heap, size, 64), size));
    RELEASE(mi_cfree, acquired(mi_heap_malloc_aligned_at(heap, size, 64, 8), size));
    RELEASE(mi_free_aligned, acquired(mi_heap_zalloc_aligned_at(heap, size, 64, 8), size), 8);
    RELEASE(mi_free, acquired(mi_heap_calloc_aligned(heap, 3, size, 64), 3 * size));
    RELEASE(mi_cfree, acquired(mi_heap_calloc_aligned_at(heap, 3, size, 64, 8), 3 * size));
    void *block;
    if (mi_posix_memalign(&block, 64, size) != 0)
        abort();
    RELEASE(mi_free_size_aligned, acquired(block, size), size, 64);
}

static void call_reallocations(mi_heap_t *heap, size_t size)
{
    void *block = acquired(mi_malloc(size), size);
    RESIZE(block, mi_realloc(block, 2 * size), 2 * size);
    RESIZE(block, mi_rezalloc(block, 3 * size), 3 * size);
    RESIZE(block, mi_reallocf(block, 4 * size), 4 * size);
    RESIZE(block, mi_new_realloc(block, 5 * size), 5 * size);
    RESIZE(block, mi_reallocn(block, 6, size), 6 * size);
    RESIZE(block, mi_recalloc(block, 7, size), 7 * size);
    RESIZE(block, mi_reallocarray(block, 8, size), 8 * size);
    RESIZE(block, mi_new_reallocn(block, 9, size), 9 * size);
    RESIZE(block, mi_heap_realloc(heap, block, 10 * size), 10 * size);
    RESIZE(block, mi_heap_rezalloc(heap, block, 11 * size), 11 * size);
    RESIZE(block, mi_heap_reallocf(heap, block, 12 * size), 12 * size);
    RESIZE(block, mi_heap_reallocn(heap, block, 13, size), 13 * size);
    RESIZE(block, mi_heap_recalloc(heap, block, 14, size), 14 * size);
    RESIZE(block, mi_realloc_aligned(block, 15 * size, 64), 15 * size);
    RESIZE(block, mi_heap_realloc_aligned(heap, block, 16 * size, 64), 16 * size);
    RESIZE(block, mi_rezalloc_aligned(block, 17 * size, 64), 17 * size);
    RESIZE(block, mi_heap_rezalloc_aligned(heap, block, 18 * size, 64), 18 * size);
    RESIZE(block, mi_realloc_aligned_at(block, 19 * size, 64, 0), 19 * size);
    RESIZE(block, mi_heap_realloc_aligned_at(heap, block, 20 * size, 64, 0), 20 * size);
    RESIZE(block, mi_rezalloc_aligned_at(block, 21 * size, 64, 0), 21 * size);
    RESIZE(block, mi_heap_rezalloc_aligned_at(heap, block, 22 * size, 64, 0), 22 * size);
    RESIZE(block, mi_recalloc_aligned(block, 23, size, 64), 23 * size);
    RESIZE(block, mi_recalloc_aligned_at(block, 24, size, 64, 0), 24 * size);
    RESIZE(block, mi_heap_recalloc_aligned(heap, block, 25, size, 64), 25 * size);
    RESIZE(block, mi_heap_recalloc_aligned_at(heap, block, 26, size, 64, 0), 26 * size);
    RESIZE(block, mi_expand(block, size), size);       /* has room */
    RESIZE(block, mi_expand(block, 1 << 24), 1 << 24); /* has not */
    uintptr_t base = (uintptr_t)block;
    if (mi_reallocarr(&block, 27, size) != 0)
        abort();
    resized(base, block, 27 * size);
    RELEASE(mi_free, block);
}

static void call_copies(mi_heap_t *heap)
{
    char path[PATH_MAX];
    char *name = NULL;
    RELEASE(mi_free, acquired(mi_strdup("texts"), 6));
    RELEASE(mi_free, acquired(mi_strndup("texts", 4), 5));
    RELEASE(mi_free, acquired(mi_heap_strdup(heap, "texts"), 6));
    RELEASE(mi_free, acquired(mi_heap_strndup(heap, "texts", 4), 5));
    RELEASE(mi_free, acquired(mi_mbsdup((const unsigned char *)"texts"), 6));
    RELEASE(mi_free, acquired(mi_wcsdup((const unsigned short[]){'t', 'e', 0}), 6));
    if (!mi_realpath("/", path) || !mi_heap_realpath(heap, "/", path) ||
        mi_dupenv_s(&name, NULL, "NUMBER") != 0)
        abort();
    RELEASE(mi_free, acquired(name, 2));
    RELEASE(mi_free, acquired(mi_realpath("/", NULL), 2));
    RELEASE(mi_free, acquired(mi_heap_realpath(heap, "/", NULL), 2));
}

static void call_all(size_t i)
{
    mi_heap_t *heap = mi_heap_new();
    call_acquisitions(heap, 100 + i);
    call_aligned(heap, 100 + i);
    call_reallocations(heap, 100 + i);
    call_copies(heap);
    if (i == 0)
        acquired(mi_malloc(77), 77); /* is lost */
    mi_heap_delete(heap);
}
