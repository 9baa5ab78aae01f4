/* SPDX-License-Identifier: MIT */
/* The C library's allocation functions. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "hooks.h"

/* While the real functions are looked up, all calls come from the lookup and get arena memory. */

EXPORT void *malloc(size_t size)
{
    HOOK_FRAME();
    if (UNLIKELY(!real_ready()))
        return arena_alloc(size, 0);
    struct thread *thread = target_enter(0);
    if (UNLIKELY(thread == NULL))
        return real.malloc(size);
    void *block = real.malloc(size);
    ACQUISITION_END(thread, TTD_API_MALLOC, size, (uintptr_t)block);
    return block;
}

EXPORT void *calloc(size_t count, size_t size)
{
    HOOK_FRAME();
    if (UNLIKELY(!real_ready())) {
        size_t bytes;
        return __builtin_mul_overflow(count, size, &bytes) ? NULL : arena_alloc(bytes, 0);
    }
    struct thread *thread = target_enter(0);
    if (UNLIKELY(thread == NULL))
        return real.calloc(count, size);
    void *block = real.calloc(count, size);
    ACQUISITION_END(thread, TTD_API_CALLOC, count, size, (uintptr_t)block);
    return block;
}

/* Moves a block out of the arena. Its size is unknown: at most all that the arena has from it on.
 */
static void *realloc_arena(void *block, size_t size)
{
    void *moved = malloc(size);
    size_t held_size = arena_size(block);
    if (moved != NULL)
        memcpy(moved, block, held_size < size ? held_size : size);
    return moved;
}

/* Within another call, realloc(NULL) is an acquisition: the outer call may return its block. */
EXPORT void *realloc(void *base, size_t size)
{
    HOOK_FRAME();
    if (UNLIKELY(arena_owns(base)))
        return realloc_arena(base, size);
    if (UNLIKELY(!real_ready()))
        return arena_alloc(size, 0);
    struct thread *thread = target_enter((uintptr_t)base);
    if (UNLIKELY(thread == NULL))
        return real.realloc(base, size);
    if (UNLIKELY(base == NULL && thread->outer != NULL)) {
        void *block = real.realloc(base, size);
        ACQUISITION_END(thread, TTD_API_REALLOC, 0, size, (uintptr_t)block);
        return block;
    }
    bool is_begun;
    REALLOCATION_BEGIN(thread, is_begun, TTD_API_REALLOC, (uintptr_t)base, size);
    void *block = real.realloc(base, size);
    reallocation_end(thread, is_begun, block);
    return block;
}

/* A call within this one would take memory for a level of its own. */
static void *reallocate_array(void *base, size_t count, size_t size)
{
    size_t bytes;
    if (!real_reallocarray_is_plain || __builtin_mul_overflow(count, size, &bytes))
        return real.reallocarray(base, count, size);
    return real.realloc(base, bytes);
}

EXPORT void *reallocarray(void *base, size_t count, size_t size)
{
    HOOK_FRAME();
    size_t bytes;
    if (UNLIKELY(arena_owns(base)))
        return __builtin_mul_overflow(count, size, &bytes) ? NULL : realloc_arena(base, bytes);
    if (UNLIKELY(!real_ready()))
        return NULL;
    struct thread *thread = target_enter((uintptr_t)base);
    if (UNLIKELY(thread == NULL))
        return real.reallocarray(base, count, size);
    bool is_begun;
    REALLOCATION_BEGIN(thread, is_begun, TTD_API_REALLOCARRAY, (uintptr_t)base, count, size);
    void *block = reallocate_array(base, count, size);
    reallocation_end(thread, is_begun, block);
    return block;
}

EXPORT void free(void *base)
{
    HOOK_FRAME();
    if (UNLIKELY(arena_owns(base) || !real_ready()))
        return;
    struct thread *thread = base != NULL ? target_enter((uintptr_t)base) : NULL;
    if (thread == NULL) {
        real.free(base);
        return;
    }
    RELEASE_BEGIN(thread, TTD_API_FREE, (uintptr_t)base);
    real.free(base);
    release_end(thread);
}

/*
 * Functions that only the newest or the oldest C libraries have; each does what `free` does. The
 * parameters of the function are followed by its operands in the record.
 */
#define HOOK_FREE(name, operation, parameters, ...)                                                \
    void name parameters;                                                                          \
    EXPORT void name parameters                                                                    \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        if (UNLIKELY(arena_owns(base) || !real_ready()))                                           \
            return;                                                                                \
        struct thread *thread = base != NULL ? target_enter((uintptr_t)base) : NULL;               \
        if (thread != NULL)                                                                        \
            RELEASE_BEGIN(thread, operation, __VA_ARGS__);                                         \
        real.free(base);                                                                           \
        if (thread != NULL)                                                                        \
            release_end(thread);                                                                   \
    }

HOOK_FREE(cfree, TTD_API_CFREE, (void *base), (uintptr_t)base)
HOOK_FREE(free_sized, TTD_API_FREE_SIZED, (void *base, size_t size), (uintptr_t)base, size)
HOOK_FREE(free_aligned_sized, TTD_API_FREE_ALIGNED_SIZED,
          (void *base, size_t alignment, size_t size), (uintptr_t)base, alignment, size)

EXPORT int posix_memalign(void **result, size_t alignment, size_t size)
{
    HOOK_FRAME();
    if (UNLIKELY(!real_ready()))
        return (*result = arena_alloc(size, alignment)) != NULL ? 0 : ENOMEM;
    struct thread *thread = target_enter(0);
    if (UNLIKELY(thread == NULL))
        return real.posix_memalign(result, alignment, size);
    int status = real.posix_memalign(result, alignment, size);
    ACQUISITION_END(thread, TTD_API_POSIX_MEMALIGN, (uintptr_t)result, alignment, size,
                    (uint64_t)status, status == 0 ? (uintptr_t)*result : 0);
    return status;
}

/* void *NAME(size_t alignment, size_t size) */
#define HOOK_ALIGNED(name, operation)                                                              \
    EXPORT void *name(size_t alignment, size_t size)                                               \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        if (UNLIKELY(!real_ready()))                                                               \
            return arena_alloc(size, alignment);                                                   \
        struct thread *thread = target_enter(0);                                                   \
        if (UNLIKELY(thread == NULL))                                                              \
            return real.name(alignment, size);                                                     \
        void *block = real.name(alignment, size);                                                  \
        ACQUISITION_END(thread, operation, alignment, size, (uintptr_t)block);                     \
        return block;                                                                              \
    }

/* void *NAME(size_t size), page aligned */
#define HOOK_PAGES(name, operation)                                                                \
    EXPORT void *name(size_t size)                                                                 \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        if (UNLIKELY(!real_ready()))                                                               \
            return NULL;                                                                           \
        struct thread *thread = target_enter(0);                                                   \
        if (UNLIKELY(thread == NULL))                                                              \
            return real.name(size);                                                                \
        void *block = real.name(size);                                                             \
        ACQUISITION_END(thread, operation, size, (uintptr_t)block);                                \
        return block;                                                                              \
    }

HOOK_ALIGNED(memalign, TTD_API_MEMALIGN)
HOOK_ALIGNED(aligned_alloc, TTD_API_ALIGNED_ALLOC)
HOOK_PAGES(valloc, TTD_API_VALLOC)
HOOK_PAGES(pvalloc, TTD_API_PVALLOC)

EXPORT size_t malloc_usable_size(void *block)
{
    if (UNLIKELY(arena_owns(block) || !real_ready()))
        return 0;
    return real.malloc_usable_size(block);
}
