/* SPDX-License-Identifier: MIT */
/*
 * mimalloc's own functions. A function with the parameters of a C function, perhaps plus a heap or
 * an offset, is recorded as that C function.
 */
#include <string.h>

#include "preload/hooks/entries.h"

/* Each function, with one of the same name that has a heap as well. */
#define SIZE(name, operation, heap_name)                                                           \
    ENTRY_ACQUIRES(name, operation, (size_t size), (size), size)                                   \
    ENTRY_ACQUIRES(heap_name, operation, (void *heap, size_t size), (heap, size), size)
#define COUNT(name, operation, heap_name)                                                          \
    ENTRY_ACQUIRES(name, operation, (size_t count, size_t size), (count, size), count, size)       \
    ENTRY_ACQUIRES(heap_name, operation, (void *heap, size_t count, size_t size),                  \
                   (heap, count, size), count, size)
#define RESIZED(name, operation, heap_name)                                                        \
    ENTRY_REALLOCATES(name, operation, (void *base, size_t size), (base, size), (uintptr_t)base,   \
                      size)                                                                        \
    ENTRY_REALLOCATES(heap_name, operation, (void *heap, void *base, size_t size),                 \
                      (heap, base, size), (uintptr_t)base, size)
#define RECOUNTED(name, operation, heap_name)                                                      \
    ENTRY_REALLOCATES(name, operation, (void *base, size_t count, size_t size),                    \
                      (base, count, size), (uintptr_t)base, count, size)                           \
    ENTRY_REALLOCATES(heap_name, operation, (void *heap, void *base, size_t count, size_t size),   \
                      (heap, base, count, size), (uintptr_t)base, count, size)

SIZE(mi_malloc, TTD_API_MALLOC, mi_heap_malloc)
SIZE(mi_malloc_small, TTD_API_MALLOC, mi_heap_malloc_small)
SIZE(mi_zalloc, TTD_API_MALLOC, mi_heap_zalloc)
SIZE(mi_new, TTD_API_MALLOC, mi_heap_alloc_new)
COUNT(mi_calloc, TTD_API_CALLOC, mi_heap_calloc)
COUNT(mi_mallocn, TTD_API_CALLOC, mi_heap_mallocn)
COUNT(mi_new_n, TTD_API_CALLOC, mi_heap_alloc_new_n)
RESIZED(mi_realloc, TTD_API_REALLOC, mi_heap_realloc)
RESIZED(mi_rezalloc, TTD_API_REALLOC, mi_heap_rezalloc)
RECOUNTED(mi_reallocn, TTD_API_REALLOCARRAY, mi_heap_reallocn)
RECOUNTED(mi_recalloc, TTD_API_REALLOCARRAY, mi_heap_recalloc)

#define ALONE(name, operation) ENTRY_ACQUIRES(name, operation, (size_t size), (size), size)
#define ALIGNED(name, operation)                                                                   \
    ENTRY_ACQUIRES(name, operation, (size_t alignment, size_t size), (alignment, size), alignment, \
                   size)

ALONE(mi_zalloc_small, TTD_API_MALLOC)
ALONE(mi_new_nothrow, TTD_API_MALLOC)
ALONE(mi_valloc, TTD_API_VALLOC)
ALONE(mi_pvalloc, TTD_API_PVALLOC)
ALIGNED(mi_memalign, TTD_API_MEMALIGN)
ALIGNED(mi_aligned_alloc, TTD_API_ALIGNED_ALLOC)
ALIGNED(_aligned_malloc, TTD_API_ALIGNED_ALLOC)
ENTRY_POSIX_MEMALIGN(mi_posix_memalign)

/* With the alignment behind the size; `rest` and `rest_arguments` are the offset, or nothing. */
#define REST_OF(...) __VA_ARGS__
#define ALIGNED_ALL(suffix, rest, rest_arguments)                                                  \
    ENTRY_ACQUIRES(mi_malloc_aligned##suffix, TTD_API_MI_MALLOC_ALIGNED,                           \
                   (size_t size, size_t alignment REST_OF rest),                                   \
                   (size, alignment REST_OF rest_arguments), size, alignment)                      \
    ENTRY_ACQUIRES(mi_zalloc_aligned##suffix, TTD_API_MI_MALLOC_ALIGNED,                           \
                   (size_t size, size_t alignment REST_OF rest),                                   \
                   (size, alignment REST_OF rest_arguments), size, alignment)                      \
    ENTRY_ACQUIRES(mi_calloc_aligned##suffix, TTD_API_MI_CALLOC_ALIGNED,                           \
                   (size_t count, size_t size, size_t alignment REST_OF rest),                     \
                   (count, size, alignment REST_OF rest_arguments), count, size, alignment)        \
    ENTRY_ACQUIRES(mi_heap_malloc_aligned##suffix, TTD_API_MI_MALLOC_ALIGNED,                      \
                   (void *heap, size_t size, size_t alignment REST_OF rest),                       \
                   (heap, size, alignment REST_OF rest_arguments), size, alignment)                \
    ENTRY_ACQUIRES(mi_heap_zalloc_aligned##suffix, TTD_API_MI_MALLOC_ALIGNED,                      \
                   (void *heap, size_t size, size_t alignment REST_OF rest),                       \
                   (heap, size, alignment REST_OF rest_arguments), size, alignment)                \
    ENTRY_ACQUIRES(mi_heap_calloc_aligned##suffix, TTD_API_MI_CALLOC_ALIGNED,                      \
                   (void *heap, size_t count, size_t size, size_t alignment REST_OF rest),         \
                   (heap, count, size, alignment REST_OF rest_arguments), count, size, alignment)  \
    REALIGNED(mi_realloc_aligned##suffix, mi_heap_realloc_aligned##suffix, rest, rest_arguments)   \
    REALIGNED(mi_rezalloc_aligned##suffix, mi_heap_rezalloc_aligned##suffix, rest, rest_arguments) \
    ENTRY_REALLOCATES(mi_recalloc_aligned##suffix, TTD_API_MI_RECALLOC_ALIGNED,                    \
                      (void *base, size_t count, size_t size, size_t alignment REST_OF rest),      \
                      (base, count, size, alignment REST_OF rest_arguments), (uintptr_t)base,      \
                      count, size, alignment)                                                      \
    ENTRY_REALLOCATES(                                                                             \
        mi_heap_recalloc_aligned##suffix, TTD_API_MI_RECALLOC_ALIGNED,                             \
        (void *heap, void *base, size_t count, size_t size, size_t alignment REST_OF rest),        \
        (heap, base, count, size, alignment REST_OF rest_arguments), (uintptr_t)base, count, size, \
        alignment)

#define REALIGNED(name, heap_name, rest, rest_arguments)                                           \
    ENTRY_REALLOCATES(name, TTD_API_MI_REALLOC_ALIGNED,                                            \
                      (void *base, size_t size, size_t alignment REST_OF rest),                    \
                      (base, size, alignment REST_OF rest_arguments), (uintptr_t)base, size,       \
                      alignment)                                                                   \
    ENTRY_REALLOCATES(heap_name, TTD_API_MI_REALLOC_ALIGNED,                                       \
                      (void *heap, void *base, size_t size, size_t alignment REST_OF rest),        \
                      (heap, base, size, alignment REST_OF rest_arguments), (uintptr_t)base, size, \
                      alignment)

ALIGNED_ALL(, (), ())
ALIGNED_ALL(_at, (, size_t offset), (, offset))

ENTRY_ACQUIRES(mi_new_aligned, TTD_API_MI_MALLOC_ALIGNED, (size_t size, size_t alignment),
               (size, alignment), size, alignment)
ENTRY_ACQUIRES(mi_new_aligned_nothrow, TTD_API_MI_MALLOC_ALIGNED, (size_t size, size_t alignment),
               (size, alignment), size, alignment)

ENTRY_REALLOCATES(mi_new_realloc, TTD_API_REALLOC, (void *base, size_t size), (base, size),
                  (uintptr_t)base, size)
ENTRY_REALLOCATES(mi_new_reallocn, TTD_API_REALLOCARRAY, (void *base, size_t count, size_t size),
                  (base, count, size), (uintptr_t)base, count, size)
ENTRY_REALLOCATES(mi_reallocarray, TTD_API_REALLOCARRAY, (void *base, size_t count, size_t size),
                  (base, count, size), (uintptr_t)base, count, size)

/* Stays where it is, or as it is. */
ENTRY_REALLOCATES(mi_expand, TTD_API_MI_EXPAND, (void *base, size_t size), (base, size),
                  (uintptr_t)base, size)
ENTRY_REALLOCATES(mi__expand, TTD_API_MI_EXPAND, (void *base, size_t size), (base, size),
                  (uintptr_t)base, size)

#define BASE(name, operation) ENTRY_RELEASES(name, operation, (void *base), (base), (uintptr_t)base)

BASE(mi_free, TTD_API_FREE)
BASE(mi_cfree, TTD_API_CFREE)
BASE(vfree, TTD_API_FREE)
ENTRY_RELEASES(mi_free_size, TTD_API_MI_FREE_SIZE, (void *base, size_t size), (base, size),
               (uintptr_t)base, size)
ENTRY_RELEASES(mi_free_aligned, TTD_API_MI_FREE_ALIGNED, (void *base, size_t alignment),
               (base, alignment), (uintptr_t)base, alignment)
ENTRY_RELEASES(mi_free_size_aligned, TTD_API_MI_FREE_SIZE,
               (void *base, size_t size, size_t alignment), (base, size, alignment),
               (uintptr_t)base, size)

/* Notes that all blocks of a heap are released at once. */
ENTRY(void, mi_heap_destroy, (void *heap))
{
    process_note(NOTE_ARENAS);
    ENTRY_CALL(void, mi_heap_destroy, (void *heap), (heap));
}
