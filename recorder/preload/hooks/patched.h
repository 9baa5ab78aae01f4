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

#define PATCHED_ROW(where, function, count)                                                        \
    static const struct attached_hook hook_of_##function                                           \
        __attribute__((used, section("patched_hooks"))) = {                                        \
            #function, (uintptr_t)patched_##function, count, where};

#else

struct patched_hook {
    /** The section is an array: its elements must have no gaps. */
    _Alignas(32) const char *name;
    uintptr_t hook;
    unsigned arguments; /* of the function */
};

#define PATCHED_ROW(where, function, count)                                                        \
    static const struct patched_hook hook_of_##function                                            \
        __attribute__((used, section("patched_hooks"))) = {#function,                              \
                                                           (uintptr_t)patched_##function, count};

#endif

/** Begins a hook: the modules where the function is hooked in a running process, the result, the
 * name of the function, the number of its arguments, and the parameters with the function behind it
 * as the last one. */
#define PATCHED_IN(where, result, function, count, parameters)                                     \
    static HOOK_CODE result patched_##function parameters;                                         \
    PATCHED_ROW(where, function, count)                                                            \
    static result patched_##function parameters

/** For parameters without the function behind: their number, and the list with it. */
#define PATCHED_SEVENTH(a, b, c, d, e, f, result, ...) result
#define PATCHED_COUNT(...)                             PATCHED_SEVENTH(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)
#define PATCHED_WITH_BEHIND(...)                       (__VA_ARGS__, uintptr_t behind)

#define PATCHED(result, function, count, parameters)                                               \
    PATCHED_IN(ATTACHED_EVERYWHERE, result, function, count, parameters)

#endif
