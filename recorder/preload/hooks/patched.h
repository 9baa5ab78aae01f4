/* SPDX-License-Identifier: MIT */
/*
 * Functions that the program defines itself, in whose first instructions a jump to a hook is
 * written when it starts. The last argument of such a hook is the function behind it, which a gate
 * adds (patch.h): so one hook serves the functions of one kind, whatever their names and modules.
 */
#ifndef TTD_PRELOAD_HOOKS_PATCHED_H
#define TTD_PRELOAD_HOOKS_PATCHED_H

#include "hooks.h"

struct patched_hook {
    /* The section is an array: its elements must have no gaps. */
    _Alignas(32) const char *name;
    uintptr_t hook;
    unsigned arguments; /* of the function */
};

/* Begins a hook: the result, the name of the function, the number of its arguments, and the
 * parameters with the function behind it as the last one. */
#define PATCHED(result, function, count, parameters)                                               \
    static result patched_##function parameters;                                                   \
    static const struct patched_hook hook_of_##function                                            \
        __attribute__((used, section("patched_hooks"))) = {#function,                              \
                                                           (uintptr_t)patched_##function, count};  \
    static result patched_##function parameters

#endif
