/* SPDX-License-Identifier: MIT */
/* Parts of the library that is attached to a process which runs. */
#ifndef TTD_PRELOAD_ATTACHED_ATTACHED_H
#define TTD_PRELOAD_ATTACHED_ATTACHED_H

#include "../../attached.h"
#include "../threads/thread.h"

#define attached_depth thread_locals.attached.depth

/* Defines a hook: the result, the name of the function, the number of its arguments and the
 * parameters, of which the last is the function behind the hook. */
#define ATTACHED_HOOK(result, name, count, parameters)                                             \
    static result attached_##name parameters;                                                      \
    static const struct attached_hook hook_##name                                                  \
        __attribute__((used, section("attached_hooks"))) = {#name, (uintptr_t)attached_##name,     \
                                                            count};                                \
    static result attached_##name parameters

/* Begins to record the process; runs in a thread that the recorder has stopped, and puts back
 * afterwards. */
void attached_start(void);
void attached_wait(void);

/* Asks for a snapshot before the process ends. */
void attached_end(void);

extern struct attached attached __asm__(ATTACHED_SYMBOL) __attribute__((visibility("default")));

#endif
