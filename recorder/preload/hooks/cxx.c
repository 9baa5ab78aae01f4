/* SPDX-License-Identifier: MIT */
/*
 * Every operator new and delete. Each call is one event: the malloc() that the C++ runtime's
 * operator calls is part of it. std::bad_alloc may leave the throwing forms; level_personality()
 * notices it.
 */
#include <stdlib.h>

#ifndef TTD_ATTACHED
#include "preload/system/replaced.h"
#endif
#include "preload/hooks/patched.h"

/* Prepares a call that may throw: keeps all that is needed to record it if it does not return. */
static inline void expect_exception(struct thread *thread, unsigned operation,
                                    const uint64_t *operands, unsigned count)
{
    struct acquisition *call = &thread->call;
    for (unsigned i = 0; i < count; i++)
        call->operands[i] = operands[i];
    call->operands[count] = 0;
    call->count = count + 1;
    call->operation = operation;
}

static inline void expect_no_exception(struct thread *thread)
{
    thread->call.operation = 0;
}

#ifdef TTD_ATTACHED

#define HOOK_NEW(name, operation, throws, parameters, arguments, alignment, ...)                   \
    PATCHED_BOTH(void *, name, PATCHED_COUNT parameters, PATCHED_WITH_BEHIND parameters)           \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        struct thread *thread = target_enter(0);                                                   \
        if (thread) {                                                                              \
            const uint64_t operands[] = {__VA_ARGS__};                                             \
            expect_exception(thread, operation, operands, sizeof operands / sizeof *operands);     \
        }                                                                                          \
        void *block = ((void *(*)parameters)behind)arguments;                                      \
        if (thread) {                                                                              \
            expect_no_exception(thread);                                                           \
            ACQUISITION_END(thread, operation, __VA_ARGS__, (uintptr_t)block);                     \
        }                                                                                          \
        return block;                                                                              \
    }                                                                                              \
                                                                                                   \
    PATCHED_SKIPPED(name, PATCHED_WITH_BEHIND parameters, PATCHED_ARGUMENTS arguments)             \
                                                                                                   \
    HOOK_SHORT void *short_##name PATCHED_WITH_BEHIND parameters                                   \
    {                                                                                              \
        if (PATCHED_SKIPS(size))                                                                   \
            HOOK_JUMP(skip_##name PATCHED_ARGUMENTS arguments);                                    \
        HOOK_JUMP(patched_##name PATCHED_ARGUMENTS arguments);                                     \
    }

#define HOOK_DELETE(name, operation, parameters, arguments, ...)                                   \
    PATCHED_BOTH(void, name, PATCHED_COUNT parameters, PATCHED_WITH_BEHIND parameters)             \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        struct thread *thread = base ? target_enter((uintptr_t)base) : NULL;                       \
        if (thread)                                                                                \
            RELEASE_BEGIN(thread, operation, __VA_ARGS__);                                         \
        ((void(*) parameters)behind) arguments;                                                    \
        if (thread)                                                                                \
            release_hook_end(thread);                                                              \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void short_##name PATCHED_WITH_BEHIND parameters                                    \
    {                                                                                              \
        if (chosen_has(base))                                                                      \
            HOOK_JUMP_VOID(patched_##name PATCHED_ARGUMENTS arguments);                            \
        HOOK_JUMP_VOID(                                                                            \
            ((void(*) PATCHED_WITH_BEHIND parameters)behind)PATCHED_ARGUMENTS arguments);          \
    }

#else

/*
 * The runtimes' operators are looked up when the program starts, never in a call: the loader's lock
 * may be held by a thread that waits for this one. A runtime that a plugin brings later is mostly
 * not needed: a plain allocation does the same. Only where that fails, and an exception must be
 * thrown, is the runtime looked up.
 */
static void *cxx_plain_new(size_t size, size_t alignment)
{
    void *block = NULL;
    if (alignment <= sizeof(void *) * 2)
        block = real.malloc(size != 0 ? size : 1);
    else if (real.posix_memalign(&block, alignment, size) != 0)
        block = NULL;
    return block;
}

/* Whether the calls are recorded that the runtime's operator makes, and not its own. */
static inline bool cxx_passes(bool has_runtime)
{
    return UNLIKELY(replaced_any) && has_runtime;
}

/*
 * NAME is the mangled operator; THROWS whether it may leave by an exception; PARAMETERS and
 * ARGUMENTS its parameter list and the names in it; then its alignment, and its arguments as
 * operands.
 */
#define HOOK_NEW(name, operation, throws, parameters, arguments, alignment, ...)                   \
    void *name parameters;                                                                         \
    static void *(*real_##name)parameters;                                                         \
    REAL_LATER(real_##name, #name, name)                                                           \
    static inline __attribute__((always_inline)) void *call_##name parameters                      \
    {                                                                                              \
        void *(*function)parameters = real_##name;                                                 \
        void *block = function ? function arguments : cxx_plain_new(size, alignment);              \
        if (UNLIKELY(!block && !function && throws)) {                                             \
            *(void **)&function = real_find(#name);                                                \
            block = function ? function arguments : NULL;                                          \
        }                                                                                          \
        return block;                                                                              \
    }                                                                                              \
                                                                                                   \
    HOOK_LONG void *skip_##name parameters                                                         \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        uint64_t until;                                                                            \
        struct thread *thread = chosen_enter_skipped(&until);                                      \
        void *block = call_##name arguments;                                                       \
        if (thread)                                                                                \
            chosen_leave_skipped(thread, until);                                                   \
        return block;                                                                              \
    }                                                                                              \
                                                                                                   \
    HOOK_LONG void *long_##name parameters                                                         \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        struct thread *thread = cxx_passes(real_##name != NULL) ? NULL : target_enter(0);          \
        if (thread) {                                                                              \
            const uint64_t operands[] = {__VA_ARGS__};                                             \
            expect_exception(thread, operation, operands, sizeof operands / sizeof *operands);     \
        }                                                                                          \
        void *block = call_##name arguments;                                                       \
        if (thread) {                                                                              \
            expect_no_exception(thread);                                                           \
            ACQUISITION_END(thread, operation, __VA_ARGS__, (uintptr_t)block);                     \
        }                                                                                          \
        return block;                                                                              \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void *look_##name parameters                                                        \
    {                                                                                              \
        if (!cxx_passes(real_##name != NULL) && chosen_skips(size))                                \
            HOOK_JUMP(skip_##name arguments);                                                      \
        HOOK_JUMP(long_##name arguments);                                                          \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void *short_##name parameters                                                       \
    {                                                                                              \
        if (!cxx_passes(real_##name != NULL) && chosen_counts(size))                               \
            HOOK_JUMP(skip_##name arguments);                                                      \
        HOOK_JUMP(look_##name arguments);                                                          \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void *early_##name parameters                                                       \
    {                                                                                              \
        if (!real_ready())                                                                         \
            return arena_alloc(size, alignment);                                                   \
        HOOK_JUMP(long_##name arguments);                                                          \
    }                                                                                              \
                                                                                                   \
    HOOK_ENTRY(name)

#define HOOK_DELETE(name, operation, parameters, arguments, ...)                                   \
    void name parameters;                                                                          \
    static void(*real_##name) parameters;                                                          \
    REAL_LATER(real_##name, #name, name)                                                           \
    HOOK_LONG void long_##name parameters                                                          \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        void(*function) parameters = real_##name;                                                  \
        if (UNLIKELY(real_arena_owns(base)))                                                       \
            return;                                                                                \
        struct thread *thread =                                                                    \
            !base || cxx_passes(function != NULL) ? NULL : target_enter((uintptr_t)base);          \
        if (thread)                                                                                \
            RELEASE_BEGIN(thread, operation, __VA_ARGS__);                                         \
        if (function)                                                                              \
            function arguments;                                                                    \
        else                                                                                       \
            real.free(base);                                                                       \
        if (thread)                                                                                \
            release_hook_end(thread);                                                              \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void early_##name parameters                                                        \
    {                                                                                              \
        if (!real_arena_owns(base) && real_ready())                                                \
            HOOK_JUMP_VOID(long_##name arguments);                                                 \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void look_##name parameters                                                         \
    {                                                                                              \
        if (real_arena_owns(base) || chosen_has(base))                                             \
            HOOK_JUMP_VOID(long_##name arguments);                                                 \
        if (!real_##name) {                                                                        \
            real.free(base);                                                                       \
            return;                                                                                \
        }                                                                                          \
        HOOK_JUMP_VOID(real_##name arguments);                                                     \
    }                                                                                              \
                                                                                                   \
    HOOK_SHORT void short_##name parameters                                                        \
    {                                                                                              \
        if (chosen_may_have(base) || !real_##name)                                                 \
            HOOK_JUMP_VOID(look_##name arguments);                                                 \
        HOOK_JUMP_VOID(real_##name arguments);                                                     \
    }                                                                                              \
                                                                                                   \
    HOOK_ENTRY(name)

#endif

#define NEW_FORMS(letter, form)                                                                    \
    HOOK_NEW(_Zn##letter##m, form, true, (size_t size), (size), 0, size)                           \
    HOOK_NEW(_Zn##letter##mRKSt9nothrow_t, form##_NOTHROW, false, (size_t size, const void *tag),  \
             (size, tag), 0, size, (uintptr_t)tag)                                                 \
    HOOK_NEW(_Zn##letter##mSt11align_val_t, form##_ALIGNED, true, (size_t size, size_t alignment), \
             (size, alignment), alignment, size, alignment)                                        \
    HOOK_NEW(_Zn##letter##mSt11align_val_tRKSt9nothrow_t, form##_ALIGNED_NOTHROW, false,           \
             (size_t size, size_t alignment, const void *tag), (size, alignment, tag), alignment,  \
             size, alignment, (uintptr_t)tag)

#define DELETE_FORMS(letter, form)                                                                 \
    HOOK_DELETE(_Zd##letter##Pv, form, (void *base), (base), (uintptr_t)base)                      \
    HOOK_DELETE(_Zd##letter##PvRKSt9nothrow_t, form##_NOTHROW, (void *base, const void *tag),      \
                (base, tag), (uintptr_t)base, (uintptr_t)tag)                                      \
    HOOK_DELETE(_Zd##letter##Pvm, form##_SIZED, (void *base, size_t size), (base, size),           \
                (uintptr_t)base, size)                                                             \
    HOOK_DELETE(_Zd##letter##PvSt11align_val_t, form##_ALIGNED, (void *base, size_t alignment),    \
                (base, alignment), (uintptr_t)base, alignment)                                     \
    HOOK_DELETE(_Zd##letter##PvSt11align_val_tRKSt9nothrow_t, form##_ALIGNED_NOTHROW,              \
                (void *base, size_t alignment, const void *tag), (base, alignment, tag),           \
                (uintptr_t)base, alignment, (uintptr_t)tag)                                        \
    HOOK_DELETE(_Zd##letter##PvmSt11align_val_t, form##_SIZED_ALIGNED,                             \
                (void *base, size_t size, size_t alignment), (base, size, alignment),              \
                (uintptr_t)base, size, alignment)

/* NOLINTBEGIN(clang-diagnostic-reserved-identifier) */
NEW_FORMS(w, TTD_API_NEW)
NEW_FORMS(a, TTD_API_NEW_ARRAY)
DELETE_FORMS(l, TTD_API_DELETE)
DELETE_FORMS(a, TTD_API_DELETE_ARRAY)
/* NOLINTEND(clang-diagnostic-reserved-identifier) */
