/* SPDX-License-Identifier: MIT */
/**
 * The steps of every hook before and after the real call. Hooks are compiled with frame pointers,
 * for unwind_here().
 */
#ifndef RECORDER_PRELOAD_HOOKS_HOOKS_H
#define RECORDER_PRELOAD_HOOKS_HOOKS_H

#include "channel_record.h"
#include "preload/threads/chosen.h"
#include "preload/threads/levels.h"
#include "preload/system/real.h"

/* First in each hook: unwinders call level_personality() when they unwind its frame. */
#ifdef TTD_ATTACHED
#define HOOK_FRAME()                                                                               \
    __asm__ volatile(".cfi_personality 0x1b, level_personality");                                  \
    __attribute__((cleanup(thread_attached_leave))) const int frame_ = 0;                          \
    (void)frame_;                                                                                  \
    attached_depth++
#else
#define HOOK_FRAME() __asm__ volatile(".cfi_personality 0x1b, level_personality")
#endif

/**
 * Defines an exported function as a jump to its hook, long_NAME(); or if not all calls are
 * recorded, to short_NAME(), and if the real functions are unknown yet, to early_NAME(). These may
 * go on to the hook. It is assembly, so that no way has a frame more than its function.
 */
#define HOOK_ENTRY(name)                                                                           \
    __asm__(".text\n"                                                                              \
            ".globl " #name "\n"                                                                   \
            ".type " #name ", @function\n"                                                         \
            ".balign 16\n" #name ":\n"                                                             \
            ".cfi_startproc\n"                                                                     \
            "cmpb $1, real_way(%rip)\n"                                                            \
            "ja short_" #name "\n"                                                                 \
            "je long_" #name "\n"                                                                  \
            "jmp early_" #name "\n"                                                                \
            ".cfi_endproc\n"                                                                       \
            ".size " #name ", . - " #name "\n");

_Static_assert(REAL_EARLY == 0 && REAL_LONG == 1 && REAL_SHORT == 2, "as in HOOK_ENTRY()");

/** Before the definitions of long_NAME(), and of short_NAME() and early_NAME(). The latter end with
 * jumps, HOOK_JUMP(), and have no frame. */
#define HOOK_LONG static __attribute__((used, noinline)) HOOK_CODE
#ifdef __clang__
#define HOOK_SHORT      HOOK_LONG
#define HOOK_JUMP(call) __attribute__((musttail)) return call
#define HOOK_JUMP_VOID(call)                                                                       \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wpedantic\"")            \
        __attribute__((musttail)) return call;                                                     \
    _Pragma("clang diagnostic pop")
#else
#define HOOK_SHORT      HOOK_LONG __attribute__((optimize("optimize-sibling-calls,omit-frame-pointer")))
#define HOOK_JUMP(call) return call
#define HOOK_JUMP_VOID(call)                                                                       \
    do {                                                                                           \
        call;                                                                                      \
        return;                                                                                    \
    } while (0)
#endif

/** Enters PHASE_RECORD, and declares the operands of a record and the registers of the caller. */
#define RECORD_BEGIN(thread, ...)                                                                  \
    struct unwind_regs caller_;                                                                    \
    target_phase(thread, PHASE_RECORD);                                                            \
    unwind_here(&caller_);                                                                         \
    const uint64_t operands_[] = {__VA_ARGS__};                                                    \
    const unsigned count_ = sizeof operands_ / sizeof *operands_

/** The next step after an acquisition has returned `block`. */
static inline enum level_next acquisition_hook_next(struct thread *thread, uint64_t block)
{
    return LIKELY(!thread->is_special) || level_was_served(thread, block)
               ? LEVEL_RECORDS
               : level_acquired(thread, block);
}

/** Records an acquisition that has returned; the last operand is the block. Its begin and its end
 * are two steps. */
#define ACQUISITION_END(thread, operation, ...)                                                    \
    do {                                                                                           \
        RECORD_BEGIN(thread, __VA_ARGS__);                                                         \
        enum level_next next_ = acquisition_hook_next(thread, operands_[count_ - 1]);              \
        if (LIKELY(next_ == LEVEL_RECORDS)) {                                                      \
            thread->steps++;                                                                       \
            thread_record(thread, operation, &caller_, operands_, count_);                         \
        } else if (next_ == LEVEL_HOLDS) {                                                         \
            level_hold(thread, operation, &caller_, operands_, count_);                            \
        }                                                                                          \
        target_leave(thread);                                                                      \
    } while (0)

/** Records a realloc(NULL), or reallocarray(NULL), within another call that has returned `block`.
 */
#define REALLOCATION_WITHIN_END(thread, operation, block, ...)                                     \
    do {                                                                                           \
        RECORD_BEGIN(thread, __VA_ARGS__, (uintptr_t)(block));                                     \
        enum level_next next_ = level_acquired(thread, operands_[count_ - 1]);                     \
        if (next_ == LEVEL_HOLDS)                                                                  \
            level_hold(thread, operation, &caller_, operands_, count_);                            \
        else if (next_ == LEVEL_RECORDS &&                                                         \
                 thread_record(thread, operation, &caller_, operands_, count_ - 1))                \
            thread_append(thread, OP_REALLOC_END, &(const struct unwind_delta){0},                 \
                          &operands_[count_ - 1], 1);                                              \
        target_leave(thread);                                                                      \
    } while (0)

/** Records a release that is about to begin: it takes effect in the trace then. */
#define RELEASE_BEGIN(thread, operation, ...)                                                      \
    do {                                                                                           \
        RECORD_BEGIN(thread, __VA_ARGS__);                                                         \
        bool is_recorded_ = true;                                                                  \
        if (UNLIKELY(thread->is_special))                                                          \
            is_recorded_ = level_begins(thread, operands_[0], caller_.pc);                         \
        else                                                                                       \
            atomic_store_explicit(&thread->slot->in_release, 1, memory_order_relaxed);             \
        if (LIKELY(is_recorded_))                                                                  \
            thread_record(thread, operation, &caller_, operands_, count_);                         \
        thread->released = operands_[0];                                                           \
        target_phase(thread, PHASE_CALL);                                                          \
    } while (0)

/** Counts the return of a release, a step of the thread. */
static inline void release_hook_end(struct thread *thread)
{
    target_phase(thread, PHASE_RECORD);
    thread->released = 0;
    if (UNLIKELY(thread->is_special))
        level_ends(thread, 0);
    if (LIKELY(!thread->is_silent)) {
        thread->steps++;
        atomic_store_explicit(&thread->slot->in_release, 0, memory_order_release);
    } else if (!thread->outer) { /* not all blocks are recorded */
        thread->is_silent = false;
        atomic_store_explicit(&thread->slot->in_release, 0, memory_order_relaxed);
    }
    target_leave(thread);
}

/** Records a reallocation that is about to begin; `begun` is whether it was. */
#define REALLOCATION_BEGIN(thread, begun, operation, ...)                                          \
    do {                                                                                           \
        RECORD_BEGIN(thread, __VA_ARGS__);                                                         \
        thread->island.remaining++; /* the call counts for the throttle when it ends */            \
        begun = (LIKELY(!thread->is_special) || level_begins(thread, operands_[0], caller_.pc)) && \
                thread_record(thread, operation, &caller_, operands_, count_);                     \
        thread->released = operands_[0];                                                           \
        target_phase(thread, PHASE_CALL);                                                          \
    } while (0)

/** Appends the second record of a reallocation, with its result; `operation` is the record's. */
static inline void reallocation_hook_end(struct thread *thread, bool is_begun, unsigned operation,
                                         void *block)
{
    uint64_t result = (uintptr_t)block;
    target_phase(thread, PHASE_RECORD);
    thread->released = 0;
    if (UNLIKELY(thread->is_special))
        level_ends(thread, result);
    if (is_begun)
        thread_append(thread, operation, &(const struct unwind_delta){0}, &result, 1);
    if (UNLIKELY(thread->chosen.is_known || thread->chosen.is_wanted))
        chosen_reallocated(thread, result);
    target_leave(thread);
}

#endif
