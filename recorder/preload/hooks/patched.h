/* SPDX-License-Identifier: MIT */
/**
 * The table of functions in whose first instructions a jump to a hook is written: those that the
 * program defines itself, when it starts, and all that are hooked in a process that runs, when the
 * recorder is attached to it. A hook is a row. Its last argument is the function behind it, added
 * by a gate (patch.h): so one hook serves the functions of one kind, whatever their names and
 * modules.
 */
#ifndef RECORDER_PRELOAD_HOOKS_PATCHED_H
#define RECORDER_PRELOAD_HOOKS_PATCHED_H

#include "preload/hooks/hooks.h"

#ifdef TTD_ATTACHED

#define PATCHED_ROW(where, quick, function, count)                                                 \
    static const struct attached_hook hook_of_##function                                           \
        __attribute__((used, section("patched_hooks"))) = {                                        \
            #function, (uintptr_t)patched_##function, count, where, (uintptr_t)(quick)};

#else

struct patched_hook {
    /** The section is an array: its elements must have no gaps. */
    _Alignas(32) const char *name;
    uintptr_t hook;
    unsigned arguments; /* of the function */
};

#define PATCHED_ROW(where, quick, function, count)                                                 \
    static const struct patched_hook hook_of_##function                                            \
        __attribute__((used, section("patched_hooks"))) = {#function,                              \
                                                           (uintptr_t)patched_##function, count};

#endif

/** Begins a hook: the modules where the function is hooked in a running process, the result, the
 * name of the function, the number of its arguments, and the parameters with the function behind it
 * as the last one. */
#define PATCHED_IN(where, result, function, count, parameters)                                     \
    static HOOK_CODE result patched_##function parameters;                                         \
    PATCHED_ROW(where, 0, function, count)                                                         \
    static result patched_##function parameters

/** Begins a hook that has another one, short_NAME(), for processes to which the recorder is
 * attached and of which not all blocks are recorded: it goes on to the function behind it without a
 * frame if the call is not recorded. */
#ifdef TTD_ATTACHED
#define PATCHED_BOTH(result, function, count, parameters)                                          \
    static HOOK_CODE result patched_##function parameters;                                         \
    HOOK_SHORT result short_##function parameters;                                                 \
    PATCHED_ROW(ATTACHED_EVERYWHERE, short_##function, function, count)                            \
    static result patched_##function parameters
#else
#define PATCHED_BOTH PATCHED
#endif

#ifdef TTD_ATTACHED
/** Enters the hook of a skipped call that may make other calls; those are not recorded and not
 * counted. Returns NULL within such a hook. */
static inline struct thread *patched_enter_skipped(uintptr_t frame)
{
    struct thread *thread = target_self;
    if (thread->guard != 0)
        return NULL;
    thread->guard = frame;
    target_phase(thread, PHASE_SKIP);
    return thread;
}
#endif

/** Defines skip_NAME(), the hook of such a call. The function behind gets itself as one more
 * argument, which it ignores. */
#define PATCHED_SKIPPED(function, parameters, arguments)                                           \
    HOOK_LONG void *skip_##function parameters                                                     \
    {                                                                                              \
        HOOK_FRAME();                                                                              \
        struct thread *thread = patched_enter_skipped((uintptr_t)__builtin_frame_address(0));      \
        void *block = ((void *(*)parameters)behind)arguments;                                      \
        if (thread)                                                                                \
            target_leave(thread);                                                                  \
        return block;                                                                              \
    }

/** Whether an acquisition by a hook is not recorded; calls that an allocator makes of its own do
 * not count for a sample. */
#define PATCHED_SKIPS(size)                                                                        \
    (!internal_is_call((uintptr_t)__builtin_return_address(0)) && chosen_skips(size))

/** For parameters without the function behind: their number, and the list with it. */
#define PATCHED_SEVENTH(a, b, c, d, e, f, result, ...) result
#define PATCHED_COUNT(...)                             PATCHED_SEVENTH(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)
#define PATCHED_WITH_BEHIND(...)                       (__VA_ARGS__, uintptr_t behind)
#define PATCHED_ARGUMENTS(...)                         (__VA_ARGS__, behind)

#define PATCHED(result, function, count, parameters)                                               \
    PATCHED_IN(ATTACHED_EVERYWHERE, result, function, count, parameters)

#endif
