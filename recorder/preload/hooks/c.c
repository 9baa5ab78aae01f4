/* SPDX-License-Identifier: MIT */
/* The C library's allocation functions. */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "preload/system/replaced.h"
#include "preload/hooks/hooks.h"

/* While the real functions are looked up, all calls come from the lookup and get arena memory. */

/*
 * The C library exports most of them as __libc_malloc() and so on as well. An allocator behind this
 * library that calls these serves a call with them; that call is recorded.
 */
#define ENTER_LIBC(base)                                                                           \
    (UNLIKELY(real_is_of_allocator((uintptr_t)__builtin_return_address(0))) ? NULL                 \
                                                                            : target_enter(base))

/*
 * Whether a call is not recorded, if not all are: see chosen.h. Each is named like the macro that
 * enters the hook. The C library's other names take the long way. The short way of a hook is two
 * functions: what nearly all calls need, without a register saved, and look_NAME() with the rest.
 */
#define target_enter_COUNTS(size)    chosen_counts(size)
#define target_enter_SKIPS(size)     chosen_skips(size)
#define target_enter_MAY_HAVE(block) chosen_may_have(block)
#define target_enter_HAS(block)      chosen_has(block)
#define ENTER_LIBC_COUNTS(size)      false
#define ENTER_LIBC_SKIPS(size)       false
#define ENTER_LIBC_MAY_HAVE(block)   true
#define ENTER_LIBC_HAS(block)        true

/* void *NAME(size_t size). `function` is the real one, `enter` enters the hook, and `early` is the
 * block while the functions are looked up. */
#define HOOK_SIZE(name, function, operation, enter, early)                                         \
    HOOK_LONG void *long_##name(size_t size)                                                       \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        struct thread *thread = enter(0);                                                          \
        if (UNLIKELY(!thread))                                                                     \
            return function(size);                                                                 \
        void *block = function(size);                                                              \
        ACQUISITION_END(thread, operation, size, (uintptr_t)block);                                \
        return block;                                                                              \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void *look_##name(size_t size)                                                      \
    {                                                                                              \
        if (enter##_SKIPS(size))                                                                   \
            HOOK_JUMP(function(size));                                                             \
        HOOK_JUMP(long_##name(size));                                                              \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void *short_##name(size_t size)                                                     \
    {                                                                                              \
        if (enter##_COUNTS(size))                                                                  \
            HOOK_JUMP(function(size));                                                             \
        HOOK_JUMP(look_##name(size));                                                              \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void *early_##name(size_t size)                                                     \
    {                                                                                              \
        if (!real_ready())                                                                         \
            return early;                                                                          \
        HOOK_JUMP(long_##name(size));                                                              \
    }                                                                                              \
                                                                                                   \
    HOOK_ENTRY(name)

HOOK_SIZE(malloc, real.malloc, TTD_API_MALLOC, target_enter, arena_alloc(size, 0))
HOOK_SIZE(__libc_malloc, real_libc.malloc, TTD_API_MALLOC, ENTER_LIBC, arena_alloc(size, 0))
HOOK_SIZE(valloc, real.valloc, TTD_API_VALLOC, target_enter, NULL)
HOOK_SIZE(__libc_valloc, real_libc.valloc, TTD_API_VALLOC, ENTER_LIBC, NULL)
HOOK_SIZE(pvalloc, real.pvalloc, TTD_API_PVALLOC, target_enter, NULL)
HOOK_SIZE(__libc_pvalloc, real_libc.pvalloc, TTD_API_PVALLOC, ENTER_LIBC, NULL)

static void *c_calloc_early(size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : arena_alloc(bytes, 0);
}

#define HOOK_COUNT(name, function, operation, enter)                                               \
    HOOK_LONG void *long_##name(size_t count, size_t size)                                         \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        struct thread *thread = enter(0);                                                          \
        if (UNLIKELY(!thread))                                                                     \
            return function(count, size);                                                          \
        void *block = function(count, size);                                                       \
        ACQUISITION_END(thread, operation, count, size, (uintptr_t)block);                         \
        return block;                                                                              \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void *look_##name(size_t count, size_t size)                                        \
    {                                                                                              \
        size_t bytes;                                                                              \
        if (!__builtin_mul_overflow(count, size, &bytes) && enter##_SKIPS(bytes))                  \
            HOOK_JUMP(function(count, size));                                                      \
        HOOK_JUMP(long_##name(count, size));                                                       \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void *short_##name(size_t count, size_t size)                                       \
    {                                                                                              \
        size_t bytes;                                                                              \
        if (!__builtin_mul_overflow(count, size, &bytes) && enter##_COUNTS(bytes))                 \
            HOOK_JUMP(function(count, size));                                                      \
        HOOK_JUMP(look_##name(count, size));                                                       \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void *early_##name(size_t count, size_t size)                                       \
    {                                                                                              \
        if (!real_ready())                                                                         \
            return c_calloc_early(count, size);                                                    \
        HOOK_JUMP(long_##name(count, size));                                                       \
    }                                                                                              \
                                                                                                   \
    HOOK_ENTRY(name)

HOOK_COUNT(calloc, real.calloc, TTD_API_CALLOC, target_enter)
HOOK_COUNT(__libc_calloc, real_libc.calloc, TTD_API_CALLOC, ENTER_LIBC)

/* Moves a block out of the arena. Its size is unknown: at most all that the arena has from it on.
 */
static __attribute__((noinline, cold)) void *realloc_arena(void *block, size_t size)
{
    void *moved = malloc(size);
    size_t held_size = arena_size(block);
    if (moved)
        memcpy(moved, block, held_size < size ? held_size : size);
    return moved;
}

/*
 * Calls realloc() of the C library. Sets `end` to the operation of the record of its end.
 *
 * In front of a block is the size of its chunk, with a bit that says whether the chunk is a mapping
 * of its own. Such a chunk is moved by mremap(), or, where that fails, as it does when the program
 * has split the mapping, by malloc() and a copy. The failure leaves an errno behind; a call that
 * succeeds does not set it otherwise. Only blocks at the beginning of a page are asked, since a
 * pointer that is none should fail in realloc(); mapped blocks are elsewhere if they are aligned,
 * and then nothing is said. Pages keep the offset in them: nothing need be said of a block that
 * moved to another one.
 */
static void *realloc_of_libc(void *base, size_t size, unsigned *end)
{
    enum { CHUNK_IS_MAPPED = 2, IN_PAGE = 4095, HEADER = 2 * sizeof(size_t) };
    bool is_asked = ((uintptr_t)base & IN_PAGE) == HEADER;
    bool was_mapped = is_asked && ((const size_t *)base)[-1] & CHUNK_IS_MAPPED;
    int before = errno;
    if (was_mapped)
        errno = 0;
    void *block = real_glibc_realloc(base, size);
    if (block && block != base && (((uintptr_t)base ^ (uintptr_t)block) & IN_PAGE) == 0) {
        bool is_mapped = ((const size_t *)block)[-1] & CHUNK_IS_MAPPED;
        if (was_mapped && errno == 0)
            *end = OP_REALLOC_REMAPPED;
        else if (is_asked || !is_mapped)
            *end = OP_REALLOC_COPIED;
    }
    if (was_mapped && errno == 0)
        errno = before;
    return block;
}

/* Calls a real realloc(). */
static inline void *realloc_real(void *(*function)(void *, size_t), void *base, size_t size,
                                 unsigned *end)
{
    *end = OP_REALLOC_END;
    return LIKELY(function == real_glibc_realloc) ? realloc_of_libc(base, size, end)
                                                  : function(base, size);
}

/* Within another call, realloc(NULL) is an acquisition: the outer call may return its block. */
#define HOOK_REALLOC(name, function, enter)                                                        \
    HOOK_LONG void *long_##name(void *base, size_t size)                                           \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        if (UNLIKELY(real_arena_owns(base)))                                                       \
            return realloc_arena(base, size);                                                      \
        struct thread *thread = enter((uintptr_t)base);                                            \
        if (UNLIKELY(!thread))                                                                     \
            return function(base, size);                                                           \
        if (UNLIKELY(!base && thread->outer)) {                                                    \
            void *block = function(base, size);                                                    \
            REALLOCATION_WITHIN_END(thread, TTD_API_REALLOC, block, 0, size);                      \
            return block;                                                                          \
        }                                                                                          \
        bool is_begun;                                                                             \
        REALLOCATION_BEGIN(thread, is_begun, TTD_API_REALLOC, (uintptr_t)base, size);              \
        unsigned end;                                                                              \
        void *block = realloc_real(function, base, size, &end);                                    \
        reallocation_hook_end(thread, is_begun, end, block);                                       \
        return block;                                                                              \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void *look_##name(void *base, size_t size)                                          \
    {                                                                                              \
        if (real_arena_owns(base))                                                                 \
            HOOK_JUMP(realloc_arena(base, size));                                                  \
        if (!enter##_HAS(base) && enter##_SKIPS(size))                                             \
            HOOK_JUMP(function(base, size));                                                       \
        HOOK_JUMP(long_##name(base, size));                                                        \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void *short_##name(void *base, size_t size)                                         \
    {                                                                                              \
        if (!enter##_MAY_HAVE(base) && enter##_COUNTS(size))                                       \
            HOOK_JUMP(function(base, size));                                                       \
        HOOK_JUMP(look_##name(base, size));                                                        \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void *early_##name(void *base, size_t size)                                         \
    {                                                                                              \
        if (real_arena_owns(base))                                                                 \
            HOOK_JUMP(realloc_arena(base, size));                                                  \
        if (!real_ready())                                                                         \
            return arena_alloc(size, 0);                                                           \
        HOOK_JUMP(long_##name(base, size));                                                        \
    }                                                                                              \
                                                                                                   \
    HOOK_ENTRY(name)

HOOK_REALLOC(realloc, real.realloc, target_enter)
HOOK_REALLOC(__libc_realloc, real_libc.realloc, ENTER_LIBC)

/* A call within this one would take memory for a level of its own. */
static void *c_reallocate_array(void *base, size_t count, size_t size, unsigned *end)
{
    size_t bytes;
    *end = OP_REALLOC_END;
    if (!real_reallocarray_is_plain || __builtin_mul_overflow(count, size, &bytes))
        return real.reallocarray(base, count, size);
    return realloc_real(real.realloc, base, bytes, end);
}

EXPORT HOOK_CODE void *reallocarray(void *base, size_t count, size_t size)
{
    HOOK_FRAME();
    size_t bytes;
    if (UNLIKELY(real_arena_owns(base)))
        return __builtin_mul_overflow(count, size, &bytes) ? NULL : realloc_arena(base, bytes);
    if (UNLIKELY(!real_ready()))
        return NULL;
    struct thread *thread = replaced_any ? NULL : target_enter((uintptr_t)base);
    if (UNLIKELY(!thread))
        return real.reallocarray(base, count, size);
    bool is_begun;
    REALLOCATION_BEGIN(thread, is_begun, TTD_API_REALLOCARRAY, (uintptr_t)base, count, size);
    unsigned end;
    void *block = c_reallocate_array(base, count, size, &end);
    reallocation_hook_end(thread, is_begun, end, block);
    return block;
}

#define HOOK_FREE(name, function, enter)                                                           \
    HOOK_LONG void long_##name(void *base)                                                         \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        if (UNLIKELY(real_arena_owns(base)))                                                       \
            return;                                                                                \
        struct thread *thread = base ? enter((uintptr_t)base) : NULL;                              \
        if (!thread) {                                                                             \
            function(base);                                                                        \
            return;                                                                                \
        }                                                                                          \
        RELEASE_BEGIN(thread, TTD_API_FREE, (uintptr_t)base);                                      \
        function(base);                                                                            \
        release_hook_end(thread);                                                                  \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void early_##name(void *base)                                                       \
    {                                                                                              \
        if (!real_arena_owns(base) && real_ready())                                                \
            HOOK_JUMP_VOID(long_##name(base));                                                     \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void look_##name(void *base)                                                        \
    {                                                                                              \
        if (real_arena_owns(base))                                                                 \
            return;                                                                                \
        if (enter##_HAS(base))                                                                     \
            HOOK_JUMP_VOID(long_##name(base));                                                     \
        HOOK_JUMP_VOID(function(base));                                                            \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void short_##name(void *base)                                                       \
    {                                                                                              \
        if (enter##_MAY_HAVE(base))                                                                \
            HOOK_JUMP_VOID(look_##name(base));                                                     \
        HOOK_JUMP_VOID(function(base));                                                            \
    }                                                                                              \
                                                                                                   \
    HOOK_ENTRY(name)

HOOK_FREE(free, real.free, target_enter)
HOOK_FREE(__libc_free, real_libc.free, ENTER_LIBC)

/*
 * Functions that only the newest or the oldest C libraries have; each does the same as `free`. The
 * parameters of the function are followed by its operands in the record.
 */
#define HOOK_RARE_FREE(name, operation, parameters, ...)                                           \
    void name parameters;                                                                          \
    EXPORT HOOK_CODE void name parameters                                                          \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        if (UNLIKELY(real_arena_owns(base) || !real_ready()))                                      \
            return;                                                                                \
        struct thread *thread = base ? target_enter((uintptr_t)base) : NULL;                       \
        if (thread)                                                                                \
            RELEASE_BEGIN(thread, operation, __VA_ARGS__);                                         \
        real.free(base);                                                                           \
        if (thread)                                                                                \
            release_hook_end(thread);                                                              \
    }

HOOK_RARE_FREE(cfree, TTD_API_CFREE, (void *base), (uintptr_t)base)
HOOK_RARE_FREE(free_sized, TTD_API_FREE_SIZED, (void *base, size_t size), (uintptr_t)base, size)
HOOK_RARE_FREE(free_aligned_sized, TTD_API_FREE_ALIGNED_SIZED,
               (void *base, size_t alignment, size_t size), (uintptr_t)base, alignment, size)

EXPORT HOOK_CODE int posix_memalign(void **result, size_t alignment, size_t size)
{
    HOOK_FRAME();
    enum real_way way = real_way_now();
    if (UNLIKELY(way != REAL_LONG)) {
        if (way == REAL_SHORT && chosen_skips(size))
            return real.posix_memalign(result, alignment, size);
        if (!real_ready())
            return (*result = arena_alloc(size, alignment)) ? 0 : ENOMEM;
    }
    struct thread *thread = target_enter(0);
    if (UNLIKELY(!thread))
        return real.posix_memalign(result, alignment, size);
    int status = real.posix_memalign(result, alignment, size);
    ACQUISITION_END(thread, TTD_API_POSIX_MEMALIGN, (uintptr_t)result, alignment, size,
                    (uint64_t)status, status == 0 ? (uintptr_t)*result : 0);
    return status;
}

#define HOOK_ALIGNED(name, function, operation, enter)                                             \
    void *name(size_t alignment, size_t size);                                                     \
    EXPORT HOOK_CODE void *name(size_t alignment, size_t size)                                     \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        enum real_way way = real_way_now();                                                        \
        if (UNLIKELY(way != REAL_LONG)) {                                                          \
            if (way == REAL_SHORT && enter##_SKIPS(size))                                          \
                return function(alignment, size);                                                  \
            if (!real_ready())                                                                     \
                return arena_alloc(size, alignment);                                               \
        }                                                                                          \
        struct thread *thread = enter(0);                                                          \
        if (UNLIKELY(!thread))                                                                     \
            return function(alignment, size);                                                      \
        void *block = function(alignment, size);                                                   \
        ACQUISITION_END(thread, operation, alignment, size, (uintptr_t)block);                     \
        return block;                                                                              \
    }

HOOK_ALIGNED(memalign, real.memalign, TTD_API_MEMALIGN, target_enter)
/* NOLINTNEXTLINE(clang-diagnostic-reserved-identifier) */
HOOK_ALIGNED(__libc_memalign, real_libc.memalign, TTD_API_MEMALIGN, ENTER_LIBC)
HOOK_ALIGNED(aligned_alloc, real.aligned_alloc, TTD_API_ALIGNED_ALLOC, target_enter)

EXPORT size_t malloc_usable_size(void *block)
{
    static atomic_bool is_noted;
    if (UNLIKELY(!atomic_load_explicit(&is_noted, memory_order_relaxed))) {
        atomic_store(&is_noted, true);
        process_note(NOTE_USABLE_SIZES);
    }
    if (UNLIKELY(real_arena_owns(block) || !real_ready()))
        return 0;
    return real.malloc_usable_size(block);
}
