/* SPDX-License-Identifier: MIT */
/* Hooks of the functions that only jemalloc has, then of those that only tcmalloc has. */
#include <errno.h>
#include <string.h>

#include "preload/hooks/entries.h"

ENTRY_ACQUIRES(mallocx, TTD_API_MALLOCX, (size_t size, int flags), (size, flags), size,
               (uint64_t)flags)
ENTRY_REALLOCATES(rallocx, TTD_API_RALLOCX, (void *base, size_t size, int flags),
                  (base, size, flags), (uintptr_t)base, size, (uint64_t)flags)
ENTRY_RELEASES(dallocx, TTD_API_DALLOCX, (void *base, int flags), (base, flags), (uintptr_t)base,
               (uint64_t)flags)
ENTRY_RELEASES(sdallocx, TTD_API_SDALLOCX, (void *base, size_t size, int flags),
               (base, size, flags), (uintptr_t)base, size, (uint64_t)flags)

/* Stays where it is, and returns how large it is now: less than `size` if it could not grow. */
ENTRY_RESIZES(size_t, xallocx, xallocx, TTD_API_XALLOCX,
              (void *base, size_t size, size_t extra, int flags), (base, size, extra, flags),
              result >= size ? base : NULL, (uintptr_t)base, size, extra, (uint64_t)flags)

/* Notes calls that release all blocks of an arena. */
static void jemalloc_note_reset(const char *name)
{
    size_t size = strlen(name);
    if (strncmp(name, "arena.", 6) == 0 && size > 6 &&
        (strcmp(name + size - 6, ".reset") == 0 || strcmp(name + size - 7, "destroy") == 0))
        process_note(NOTE_ARENAS);
}

#define CONTROL (const char *name, void *old, size_t *old_size, void *value, size_t size)

ENTRY(int, mallctl, CONTROL)
{
    jemalloc_note_reset(name);
    return ENTRY_CALL(int, mallctl, CONTROL, (name, old, old_size, value, size));
}

/* The first call describes the second one; that has only numbers. */
#define LOOK_UP (const char *name, size_t *mib, size_t *length)

ENTRY(int, mallctlnametomib, LOOK_UP)
{
    jemalloc_note_reset(name);
    return ENTRY_CALL(int, mallctlnametomib, LOOK_UP, (name, mib, length));
}

/* tcmalloc's own functions: other names of the functions of C and C++; they are recorded as
 * these. */

/* Each takes a function and its operation. */
#define SIZE(name, operation) ENTRY_ACQUIRES(name, operation, (size_t size), (size), size)
#define SIZE_TAG(name, operation)                                                                  \
    ENTRY_ACQUIRES(name, operation, (size_t size, const void *tag), (size, tag), size,             \
                   (uintptr_t)tag)
#define SIZE_ALIGNMENT(name, operation)                                                            \
    ENTRY_ACQUIRES(name, operation, (size_t size, size_t alignment), (size, alignment), size,      \
                   alignment)
#define SIZE_ALIGNMENT_TAG(name, operation)                                                        \
    ENTRY_ACQUIRES(name, operation, (size_t size, size_t alignment, const void *tag),              \
                   (size, alignment, tag), size, alignment, (uintptr_t)tag)
#define BASE(name, operation) ENTRY_RELEASES(name, operation, (void *base), (base), (uintptr_t)base)
#define BASE_NUMBER(name, operation)                                                               \
    ENTRY_RELEASES(name, operation, (void *base, size_t number), (base, number), (uintptr_t)base,  \
                   number)
#define BASE_TAG(name, operation)                                                                  \
    ENTRY_RELEASES(name, operation, (void *base, const void *tag), (base, tag), (uintptr_t)base,   \
                   (uintptr_t)tag)
#define BASE_NUMBERS(name, operation)                                                              \
    ENTRY_RELEASES(name, operation, (void *base, size_t first, size_t second),                     \
                   (base, first, second), (uintptr_t)base, first, second)

SIZE(tc_malloc, TTD_API_MALLOC)
SIZE(tc_malloc_skip_new_handler, TTD_API_MALLOC)
ENTRY_ACQUIRES(tc_calloc, TTD_API_CALLOC, (size_t count, size_t size), (count, size), count, size)
ENTRY_ACQUIRES(tc_memalign, TTD_API_MEMALIGN, (size_t alignment, size_t size), (alignment, size),
               alignment, size)
ENTRY_POSIX_MEMALIGN(tc_posix_memalign)
SIZE(tc_valloc, TTD_API_VALLOC)
SIZE(tc_pvalloc, TTD_API_PVALLOC)
ENTRY_REALLOCATES(tc_realloc, TTD_API_REALLOC, (void *base, size_t size), (base, size),
                  (uintptr_t)base, size)
BASE(tc_free, TTD_API_FREE)
BASE(tc_cfree, TTD_API_CFREE)
BASE_NUMBER(tc_free_sized, TTD_API_FREE_SIZED)

/* Names that mimalloc has as well; the C library has them under others only. */
ENTRY_POSIX_MEMALIGN(__posix_memalign)
BASE(__libc_cfree, TTD_API_CFREE)

SIZE(tc_new, TTD_API_NEW)
SIZE_TAG(tc_new_nothrow, TTD_API_NEW_NOTHROW)
SIZE_ALIGNMENT(tc_new_aligned, TTD_API_NEW_ALIGNED)
SIZE_ALIGNMENT_TAG(tc_new_aligned_nothrow, TTD_API_NEW_ALIGNED_NOTHROW)
SIZE(tc_newarray, TTD_API_NEW_ARRAY)
SIZE_TAG(tc_newarray_nothrow, TTD_API_NEW_ARRAY_NOTHROW)
SIZE_ALIGNMENT(tc_newarray_aligned, TTD_API_NEW_ARRAY_ALIGNED)
SIZE_ALIGNMENT_TAG(tc_newarray_aligned_nothrow, TTD_API_NEW_ARRAY_ALIGNED_NOTHROW)

BASE(tc_delete, TTD_API_DELETE)
BASE_TAG(tc_delete_nothrow, TTD_API_DELETE_NOTHROW)
BASE_NUMBER(tc_delete_sized, TTD_API_DELETE_SIZED)
BASE_NUMBER(tc_delete_aligned, TTD_API_DELETE_ALIGNED)
BASE_NUMBERS(tc_delete_sized_aligned, TTD_API_DELETE_SIZED_ALIGNED)
BASE(tc_deletearray, TTD_API_DELETE_ARRAY)
BASE_TAG(tc_deletearray_nothrow, TTD_API_DELETE_ARRAY_NOTHROW)
BASE_NUMBER(tc_deletearray_sized, TTD_API_DELETE_ARRAY_SIZED)
BASE_NUMBER(tc_deletearray_aligned, TTD_API_DELETE_ARRAY_ALIGNED)
BASE_NUMBERS(tc_deletearray_sized_aligned, TTD_API_DELETE_ARRAY_SIZED_ALIGNED)

/* ... an alignment and a tag. */
#define BASE_ALIGNMENT_TAG(name, operation)                                                        \
    ENTRY_RELEASES(name, operation, (void *base, size_t alignment, const void *tag),               \
                   (base, alignment, tag), (uintptr_t)base, alignment, (uintptr_t)tag)

BASE_ALIGNMENT_TAG(tc_delete_aligned_nothrow, TTD_API_DELETE_ALIGNED_NOTHROW)
BASE_ALIGNMENT_TAG(tc_deletearray_aligned_nothrow, TTD_API_DELETE_ARRAY_ALIGNED_NOTHROW)
