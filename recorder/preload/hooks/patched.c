/* SPDX-License-Identifier: MIT */
/* The hooks of functions that the program defines itself. */
#include "preload/hooks/patched.h"

/* A function that returns a block; its operands in the record follow, without the block. */
#define PATCHED_ACQUIRES(function, count, operation, parameters, types, arguments, ...)            \
    PATCHED_ACQUIRES_BY(PATCHED, function, count, operation, parameters, types, arguments,         \
                        __VA_ARGS__)
#define PATCHED_ACQUIRES_BY(begin, function, count, operation, parameters, types, arguments, ...)  \
    begin(void *, function, count, parameters)                                                     \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        struct thread *thread = target_enter(0);                                                   \
        void *block = ((void *(*)types)behind)arguments;                                           \
        if (LIKELY(thread))                                                                        \
            ACQUISITION_END(thread, operation, __VA_ARGS__, (uintptr_t)block);                     \
        return block;                                                                              \
    }

#define PATCHED_SIZE(function, operation)                                                          \
    PATCHED_ACQUIRES(function, 1, operation, (size_t size, uintptr_t behind), (size_t), (size),    \
                     size)
#define PATCHED_ALIGNED(function, operation)                                                       \
    PATCHED_ACQUIRES(function, 2, operation, (size_t alignment, size_t size, uintptr_t behind),    \
                     (size_t, size_t), (alignment, size), alignment, size)

PATCHED_ACQUIRES_BY(PATCHED_BOTH, malloc, 1, TTD_API_MALLOC, (size_t size, uintptr_t behind),
                    (size_t), (size), size)
PATCHED_SIZE(valloc, TTD_API_VALLOC)
PATCHED_SIZE(pvalloc, TTD_API_PVALLOC)
PATCHED_ACQUIRES_BY(PATCHED_BOTH, calloc, 2, TTD_API_CALLOC,
                    (size_t count, size_t size, uintptr_t behind), (size_t, size_t), (count, size),
                    count, size)
PATCHED_ALIGNED(memalign, TTD_API_MEMALIGN)
PATCHED_ALIGNED(aligned_alloc, TTD_API_ALIGNED_ALLOC)

PATCHED(int, posix_memalign, 3, (void **result, size_t alignment, size_t size, uintptr_t behind))
{
    HOOK_FRAME();
    struct thread *thread = target_enter(0);
    int status = ((int (*)(void **, size_t, size_t))behind)(result, alignment, size);
    if (LIKELY(thread))
        ACQUISITION_END(thread, TTD_API_POSIX_MEMALIGN, (uintptr_t)result, alignment, size,
                        (uint64_t)status, status == 0 ? (uintptr_t)*result : 0);
    return status;
}

/* Firefox has these beside the C family, for arenas of their own. */
PATCHED_ACQUIRES(moz_arena_malloc, 2, TTD_API_MALLOC, (size_t arena, size_t size, uintptr_t behind),
                 (size_t, size_t), (arena, size), size)
PATCHED_ACQUIRES(moz_arena_calloc, 3, TTD_API_CALLOC,
                 (size_t arena, size_t count, size_t size, uintptr_t behind),
                 (size_t, size_t, size_t), (arena, count, size), count, size)
PATCHED_ACQUIRES(moz_arena_memalign, 3, TTD_API_MEMALIGN,
                 (size_t arena, size_t alignment, size_t size, uintptr_t behind),
                 (size_t, size_t, size_t), (arena, alignment, size), alignment, size)

/* A reallocation of `base`. Within another call, one of NULL is an acquisition: the outer call may
 * return its block. */
#define PATCHED_REALLOCATES(define, name, count, operation, parameters, types, arguments, ...)     \
    define(void *, name, count, parameters)                                                        \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        void *(*function)types = (void *(*)types)behind;                                           \
        struct thread *thread = target_enter((uintptr_t)base);                                     \
        bool is_begun = false, is_acquisition = !base && thread && thread->outer;                  \
        if (LIKELY(thread && !is_acquisition))                                                     \
            REALLOCATION_BEGIN(thread, is_begun, operation, __VA_ARGS__);                          \
        void *block = function arguments;                                                          \
        if (UNLIKELY(is_acquisition))                                                              \
            REALLOCATION_WITHIN_END(thread, operation, block, __VA_ARGS__);                        \
        else if (LIKELY(thread))                                                                   \
            reallocation_hook_end(thread, is_begun, OP_REALLOC_END, block);                        \
        return block;                                                                              \
    }

PATCHED_REALLOCATES(PATCHED, moz_arena_realloc, 3, TTD_API_REALLOC,
                    (size_t arena, void *base, size_t size, uintptr_t behind),
                    (size_t, void *, size_t), (arena, base, size), (uintptr_t)base, size)
PATCHED_REALLOCATES(PATCHED_BOTH, realloc, 2, TTD_API_REALLOC,
                    (void *base, size_t size, uintptr_t behind), (void *, size_t), (base, size),
                    (uintptr_t)base, size)
PATCHED_REALLOCATES(PATCHED, reallocarray, 3, TTD_API_REALLOCARRAY,
                    (void *base, size_t count, size_t size, uintptr_t behind),
                    (void *, size_t, size_t), (base, count, size), (uintptr_t)base, count, size)

#define PATCHED_RELEASES(function, count, operation, parameters, types, arguments, ...)            \
    PATCHED_RELEASES_BY(PATCHED, function, count, operation, parameters, types, arguments,         \
                        __VA_ARGS__)
#define PATCHED_RELEASES_BY(begin, function, count, operation, parameters, types, arguments, ...)  \
    begin(void, function, count, parameters)                                                       \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        struct thread *thread = base ? target_enter((uintptr_t)base) : NULL;                       \
        if (LIKELY(thread))                                                                        \
            RELEASE_BEGIN(thread, operation, __VA_ARGS__);                                         \
        ((void(*) types)behind) arguments;                                                         \
        if (LIKELY(thread))                                                                        \
            release_hook_end(thread);                                                              \
    }

PATCHED_RELEASES_BY(PATCHED_BOTH, free, 1, TTD_API_FREE, (void *base, uintptr_t behind), (void *),
                    (base), (uintptr_t)base)
PATCHED_RELEASES(moz_arena_free, 2, TTD_API_FREE, (size_t arena, void *base, uintptr_t behind),
                 (size_t, void *), (arena, base), (uintptr_t)base)
PATCHED_RELEASES(cfree, 1, TTD_API_CFREE, (void *base, uintptr_t behind), (void *), (base),
                 (uintptr_t)base)
PATCHED_RELEASES(free_sized, 2, TTD_API_FREE_SIZED, (void *base, size_t size, uintptr_t behind),
                 (void *, size_t), (base, size), (uintptr_t)base, size)
PATCHED_RELEASES(free_aligned_sized, 3, TTD_API_FREE_ALIGNED_SIZED,
                 (void *base, size_t alignment, size_t size, uintptr_t behind),
                 (void *, size_t, size_t), (base, alignment, size), (uintptr_t)base, alignment,
                 size)

#ifdef TTD_ATTACHED

/* The C library's malloc() makes no other call; the other two may end by a jump to it. */
HOOK_SHORT void *short_malloc(size_t size, uintptr_t behind)
{
    if (PATCHED_SKIPS(size))
        HOOK_JUMP(((void *(*)(size_t, uintptr_t))behind)(size, behind));
    HOOK_JUMP(patched_malloc(size, behind));
}

PATCHED_SKIPPED(calloc, (size_t count, size_t size, uintptr_t behind), (count, size, behind))

HOOK_SHORT void *short_calloc(size_t count, size_t size, uintptr_t behind)
{
    size_t bytes;
    if (!__builtin_mul_overflow(count, size, &bytes) && PATCHED_SKIPS(bytes))
        HOOK_JUMP(skip_calloc(count, size, behind));
    HOOK_JUMP(patched_calloc(count, size, behind));
}

PATCHED_SKIPPED(realloc, (void *base, size_t size, uintptr_t behind), (base, size, behind))

HOOK_SHORT void *short_realloc(void *base, size_t size, uintptr_t behind)
{
    if (!chosen_has(base) && PATCHED_SKIPS(size))
        HOOK_JUMP(skip_realloc(base, size, behind));
    HOOK_JUMP(patched_realloc(base, size, behind));
}

HOOK_SHORT void short_free(void *base, uintptr_t behind)
{
    if (chosen_has(base))
        HOOK_JUMP_VOID(patched_free(base, behind));
    HOOK_JUMP_VOID(((void (*)(void *, uintptr_t))behind)(base, behind));
}

#endif
