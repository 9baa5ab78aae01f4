/* SPDX-License-Identifier: MIT */
/*
 * The handler of signals that end the process, in a library that is attached to a running process.
 * A hook of sigaction() does not show it, though all functions of the C library that set an action
 * call it. It is put there and taken away by system calls.
 */
#include <string.h>

#include "preload/channel/target.h"
#include "preload/end/fatal_signal.h"
#include "preload/system/sys.h"
#include "preload/attached/attached_parts.h"

enum { RESTORER = 0x04000000 /* SA_RESTORER: the C library does not declare it */ };

/* Where the recorder's handler returns to. */
void attached_return(void) __attribute__((visibility("hidden")));

__asm__(".pushsection .text\n"
        ".type attached_return, @function\n"
        "attached_return:\n"
        "    movq $15, %rax\n"
        "    syscall\n"
        ".size attached_return, .-attached_return\n"
        ".popsection\n");
_Static_assert(SYS_rt_sigreturn == 15, "as in attached_return above");

static struct sys_sigaction attached_to_system(const struct sigaction *action)
{
    struct sys_sigaction system = {.handler = action->sa_handler,
                                   .flags = (unsigned)action->sa_flags,
                                   .restorer = action->sa_restorer};
    memcpy(&system.mask, &action->sa_mask, sizeof system.mask);
    if (fatal_is_own(action)) {
        system.flags |= RESTORER;
        system.restorer = attached_return;
    }
    return system;
}

static struct sigaction attached_of_system(const struct sys_sigaction *system)
{
    struct sigaction action = {.sa_handler = system->handler,
                               .sa_flags = (int)system->flags,
                               .sa_restorer = system->restorer};
    memcpy(&action.sa_mask, &system->mask, sizeof system->mask);
    return action;
}

/* Sets and gets an action without the C library. */
static int attached_set_action(int number, const struct sigaction *now, struct sigaction *before)
{
    struct sys_sigaction set = {0}, was = {0};
    if (now)
        set = attached_to_system(now);
    long result = sys_call6(SYS_rt_sigaction, number, now ? (long)&set : 0, (long)&was,
                            sizeof set.mask, 0, 0);
    if (result == 0 && before)
        *before = attached_of_system(&was);
    return (int)result;
}

sigaction_function *fatal_real_sigaction(void)
{
    return attached_set_action;
}

void fatal_take_place(int number)
{
    struct sigaction action;
    if (!fatal_is_watched(number) || attached_set_action(number, fatal_action, &action) != 0)
        return;
    if (action.sa_handler != SIG_DFL) { /* the program has one, or another thread has set it */
        if (!fatal_is_own(&action))
            attached_set_action(number, &action, NULL);
        return;
    }
    struct sys_sigaction system = attached_to_system(&action);
    memcpy(&attached.defaults[number], &system, sizeof system);
}
_Static_assert(sizeof(struct sys_sigaction) == sizeof(struct attached_action), "as the system's");

/* The child of a vfork has actions of its own, but shares its memory. */
PATCHED_IN(ATTACHED_IN_LIBC, int, sigaction, 3,
           (int number, const struct sigaction *action, struct sigaction *before,
            int (*real_sigaction)(int, const struct sigaction *, struct sigaction *)))
{
    struct sigaction own_before;
    if (!fatal_is_watched(number) || (action && fatal_is_own(action)))
        return real_sigaction(number, action, before);
    bool becomes_default = action && action->sa_handler == SIG_DFL;
    bool is_own = process_is_own();
    attached_depth += is_own;
    int result = real_sigaction(number, action, &own_before);
    if (result == 0 && fatal_is_own(&own_before)) {
        struct sys_sigaction system;
        memcpy(&system, &attached.defaults[number], sizeof system);
        own_before = attached_of_system(&system);
    }
    if (result == 0 && becomes_default && is_own)
        fatal_take_place(number);
    attached_depth -= is_own;
    if (result == 0 && before)
        *before = own_before;
    return result;
}
