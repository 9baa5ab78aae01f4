/* SPDX-License-Identifier: MIT */
/**
 * Hooks of functions that only one allocator has, such as mallocx(). This library does not export
 * them: programs look for their names to find out the allocator that they have. Where the program's
 * allocator defines one when it starts, its symbol is made to be the hook (redirect.c), and
 * existing bindings to it become bindings to the hook (redirect.c). In a process to which the
 * recorder is attached they are rows of the table of patched.h.
 */
#ifndef RECORDER_PRELOAD_HOOKS_ENTRIES_H
#define RECORDER_PRELOAD_HOOKS_ENTRIES_H

#include "preload/hooks/hooks.h"

#ifdef TTD_ATTACHED

#include "preload/hooks/patched.h"

#define ENTRY(result, function, parameters)                                                        \
    PATCHED_IN(ATTACHED_IN_ALLOCATOR, result, function, PATCHED_COUNT parameters,                  \
               PATCHED_WITH_BEHIND parameters)
#define ENTRY_CALL(result, function, parameters, arguments)                                        \
    (((result(*) parameters)behind)arguments)

#else

/** Finds the hook of a function that has not been found anywhere yet; NULL if there is none. */
struct redirection *entries_named(const char *name);

/** Begins the hook of a function; `real` is the function itself. */
#define ENTRY(result, function, parameters)                                                        \
    static HOOK_CODE result hook_##function parameters;                                            \
    static struct redirection entry_##function                                                     \
        __attribute__((used, aligned(32), section("entries"))) = {                                 \
            .name = #function, .hook = (uintptr_t)hook_##function};                                \
    static result hook_##function parameters

/** Calls the real function. */
#define ENTRY_CALL(result, function, parameters, arguments)                                        \
    (((result(*) parameters)entry_##function.real_function)arguments)

#endif

/** A function that returns a block; its operands in the record follow. */
#define ENTRY_ACQUIRES(function, operation, parameters, arguments, ...)                            \
    ENTRY(void *, function, parameters)                                                            \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        struct thread *thread = target_enter(0);                                                   \
        void *block = ENTRY_CALL(void *, function, parameters, arguments);                         \
        if (LIKELY(thread))                                                                        \
            ACQUISITION_END(thread, operation, __VA_ARGS__, (uintptr_t)block);                     \
        return block;                                                                              \
    }

/** A function like posix_memalign(). */
#define ENTRY_POSIX_MEMALIGN(function)                                                             \
    ENTRY(int, function, (void **result, size_t alignment, size_t size))                           \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        struct thread *thread = target_enter(0);                                                   \
        int status =                                                                               \
            ENTRY_CALL(int, function, (void **, size_t, size_t), (result, alignment, size));       \
        if (LIKELY(thread))                                                                        \
            ACQUISITION_END(thread, TTD_API_POSIX_MEMALIGN, (uintptr_t)result, alignment, size,    \
                            (uint64_t)status, status == 0 ? (uintptr_t)*result : 0);               \
        return status;                                                                             \
    }

/** A function that releases `base`, its first operand. */
#define ENTRY_RELEASES(function, operation, parameters, arguments, ...)                            \
    ENTRY(void, function, parameters)                                                              \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        struct thread *thread = base ? target_enter((uintptr_t)base) : NULL;                       \
        if (LIKELY(thread))                                                                        \
            RELEASE_BEGIN(thread, operation, __VA_ARGS__);                                         \
        ENTRY_CALL(void, function, parameters, arguments);                                         \
        if (LIKELY(thread))                                                                        \
            release_hook_end(thread);                                                              \
    }

/** A function that reallocates `base`, its first operand. Without one, and within another call, it
 * acquires a block, which the outer call may return. It calls `real`, mostly itself, whose
 * result `result` is the block as `block` says; NULL if the block stays as it was. */
#define ENTRY_RESIZES(type, function, real, operation, parameters, arguments, block, ...)          \
    ENTRY(type, function, parameters)                                                              \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        bool begun = false;                                                                        \
        struct thread *thread = target_enter((uintptr_t)base);                                     \
        bool is_acquisition =                                                                      \
            ((operation) == TTD_API_REALLOC || (operation) == TTD_API_REALLOCARRAY) && !base &&    \
            thread && thread->outer;                                                               \
        if (LIKELY(thread && !is_acquisition))                                                     \
            REALLOCATION_BEGIN(thread, begun, operation, __VA_ARGS__);                             \
        type result = ENTRY_CALL(type, real, parameters, arguments);                               \
        if (UNLIKELY(is_acquisition))                                                              \
            REALLOCATION_WITHIN_END(thread, operation, block, __VA_ARGS__);                        \
        else if (LIKELY(thread))                                                                   \
            reallocation_hook_end(thread, begun, OP_REALLOC_END, block);                           \
        return result;                                                                             \
    }

#define ENTRY_REALLOCATES(function, operation, parameters, arguments, ...)                         \
    ENTRY_RESIZES(void *, function, function, operation, parameters, arguments, result, __VA_ARGS__)

#endif
