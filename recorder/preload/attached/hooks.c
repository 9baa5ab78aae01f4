/* SPDX-License-Identifier: MIT */
/*
 * The hooks of the library that is attached to a process which runs. The last argument of each is
 * the function behind it, which the gate has added (attached.h).
 *
 * The depth of a thread tells when it is in no hook any more, so that the hooks can be taken away.
 * At the instructions before the depth is raised, and after it was lowered, the program counter
 * tells.
 */
#include <unistd.h>

#include "../hooks/hooks.h"
#include "../system/sys.h"
#include "attached.h"

/* Whether a call comes from within the module that defines the function, past its table of
 * functions. No other library could have taken its place: it is the allocator's own doing. */
static inline bool attached_is_internal(uintptr_t site)
{
    if (LIKELY(site - attached.internal_begin >= attached.internal_end - attached.internal_begin))
        return false;
    for (uint64_t i = 0; i < attached.internal_count; i++)
        if (attached.internal[i] == site)
            return true;
    return false;
}

/* Enters a hook, as target_enter() does; NULL as well for a call that is the allocator's own. */
static inline __attribute__((always_inline)) struct thread *attached_enter(uint64_t base)
{
    if (UNLIKELY(attached_is_internal((uintptr_t)__builtin_return_address(0))))
        return NULL;
    return target_enter(base);
}

/* Makes the real call and records it; the operands of the record follow, and then the block. */
#define ACQUIRES(operation, call, block, ...)                                                      \
    attached_depth++;                                                                              \
    struct thread *thread = attached_enter(0);                                                     \
    call;                                                                                          \
    if (LIKELY(thread != NULL))                                                                    \
        ACQUISITION_END(thread, operation, __VA_ARGS__, block);                                    \
    attached_depth--

ATTACHED_HOOK(void *, malloc, 1, (size_t size, void *(*real_malloc)(size_t)))
{
    ACQUIRES(TTD_API_MALLOC, void *block = real_malloc(size), (uintptr_t)block, size);
    return block;
}

ATTACHED_HOOK(void *, valloc, 1, (size_t size, void *(*real_valloc)(size_t)))
{
    ACQUIRES(TTD_API_VALLOC, void *block = real_valloc(size), (uintptr_t)block, size);
    return block;
}

ATTACHED_HOOK(void *, pvalloc, 1, (size_t size, void *(*real_pvalloc)(size_t)))
{
    ACQUIRES(TTD_API_PVALLOC, void *block = real_pvalloc(size), (uintptr_t)block, size);
    return block;
}

ATTACHED_HOOK(void *, calloc, 2, (size_t count, size_t size, void *(*real_calloc)(size_t, size_t)))
{
    ACQUIRES(TTD_API_CALLOC, void *block = real_calloc(count, size), (uintptr_t)block, count, size);
    return block;
}

ATTACHED_HOOK(void *, memalign, 2,
              (size_t alignment, size_t size, void *(*real_memalign)(size_t, size_t)))
{
    ACQUIRES(TTD_API_MEMALIGN, void *block = real_memalign(alignment, size), (uintptr_t)block,
             alignment, size);
    return block;
}

ATTACHED_HOOK(void *, aligned_alloc, 2,
              (size_t alignment, size_t size, void *(*real_aligned_alloc)(size_t, size_t)))
{
    ACQUIRES(TTD_API_ALIGNED_ALLOC, void *block = real_aligned_alloc(alignment, size),
             (uintptr_t)block, alignment, size);
    return block;
}

ATTACHED_HOOK(int, posix_memalign, 3,
              (void **result, size_t alignment, size_t size,
               int (*real_posix_memalign)(void **, size_t, size_t)))
{
    ACQUIRES(TTD_API_POSIX_MEMALIGN, int status = real_posix_memalign(result, alignment, size),
             status == 0 ? (uintptr_t)*result : 0, (uintptr_t)result, alignment, size,
             (uint64_t)status);
    return status;
}

/* Within another call, realloc(NULL) is an acquisition: the outer call may return its block. */
ATTACHED_HOOK(void *, realloc, 2, (void *base, size_t size, void *(*real_realloc)(void *, size_t)))
{
    attached_depth++;
    void *block;
    bool is_begun;
    struct thread *thread = attached_enter((uintptr_t)base);
    if (UNLIKELY(thread == NULL)) {
        block = real_realloc(base, size);
    } else if (UNLIKELY(base == NULL && thread->outer != NULL)) {
        block = real_realloc(base, size);
        ACQUISITION_END(thread, TTD_API_REALLOC, 0, size, (uintptr_t)block);
    } else {
        REALLOCATION_BEGIN(thread, is_begun, TTD_API_REALLOC, (uintptr_t)base, size);
        block = real_realloc(base, size);
        reallocation_end(thread, is_begun, OP_REALLOC_END, block);
    }
    attached_depth--;
    return block;
}

#define RELEASES(name, operation, count, parameters, arguments, ...)                               \
    ATTACHED_HOOK(void, name, count, parameters)                                                   \
    {                                                                                              \
        attached_depth++;                                                                          \
        struct thread *thread = base != NULL ? attached_enter((uintptr_t)base) : NULL;             \
        if (LIKELY(thread != NULL))                                                                \
            RELEASE_BEGIN(thread, operation, __VA_ARGS__);                                         \
        real_free arguments;                                                                       \
        if (LIKELY(thread != NULL))                                                                \
            release_end(thread);                                                                   \
        attached_depth--;                                                                          \
    }

RELEASES(free, TTD_API_FREE, 1, (void *base, void (*real_free)(void *)), (base), (uintptr_t)base)
RELEASES(free_sized, TTD_API_FREE_SIZED, 2,
         (void *base, size_t size, void (*real_free)(void *, size_t)), (base, size),
         (uintptr_t)base, size)
RELEASES(free_aligned_sized, TTD_API_FREE_ALIGNED_SIZED, 3,
         (void *base, size_t alignment, size_t size, void (*real_free)(void *, size_t, size_t)),
         (base, alignment, size), (uintptr_t)base, alignment, size)

ATTACHED_HOOK(int, dlclose, 1, (void *handle, int (*real_dlclose)(void *)))
{
    attached_depth++;
    int result = real_dlclose(handle);
    struct thread *thread = target_enter(0);
    if (thread != NULL) {
        target_phase(thread, PHASE_RECORD);
        modules_closed();
        target_leave(thread);
    }
    attached_depth--;
    return result;
}

/* Counts a child without a trace of its own that executes a program, which is not recorded. */
static void count_child(int count)
{
    if (!(target_channel->flags & CHANNEL_NO_CHILDREN))
        atomic_fetch_add(&target_channel->refused, (unsigned)count);
}

/* Images that are executed are not recorded, since the library that is loaded would have to be
 * found there. The child of a vfork, which shares the depth with its parent, does not come back. */
#define EXECUTES(name, count, parameters, arguments)                                               \
    ATTACHED_HOOK(int, name, count, parameters)                                                    \
    {                                                                                              \
        if (!process_is_own()) {                                                                   \
            count_child(1);                                                                        \
            int failure = real_##name arguments;                                                   \
            count_child(-1);                                                                       \
            return failure;                                                                        \
        }                                                                                          \
        attached_depth++;                                                                          \
        process_executes(true);                                                                    \
        int result = real_##name arguments;                                                        \
        process_executes(false);                                                                   \
        attached_depth--;                                                                          \
        return result;                                                                             \
    }

EXECUTES(execve, 3,
         (const char *path, char *const argv[], char *const envp[],
          int (*real_execve)(const char *, char *const[], char *const[])),
         (path, argv, envp))
EXECUTES(fexecve, 3,
         (int file, char *const argv[], char *const envp[],
          int (*real_fexecve)(int, char *const[], char *const[])),
         (file, argv, envp))
EXECUTES(execveat, 5,
         (int directory, const char *path, char *const argv[], char *const envp[], int flags,
          int (*real_execveat)(int, const char *, char *const[], char *const[], int)),
         (directory, path, argv, envp, flags))

ATTACHED_HOOK(void, _exit, 1, (int status, void (*real__exit)(int)))
{
    attached_end();
    real__exit(status);
}
