/* SPDX-License-Identifier: MIT */
/*
 * Hooks of the functions that set what a signal does: where the program sets or asks for the
 * default action, the recorder's handler takes its place, or is not shown.
 */
#include <signal.h>
#include <string.h>

#include "../end/fatal.h"
#include "../threads/signal_stack.h"
#include "hooks.h"

REAL(sigaction_function, sigaction, NULL)

sigaction_function *fatal_real_sigaction(void)
{
    return find_sigaction();
}

/*
 * Signals, a bit for each, whose handlers shall run on a signal stack, while the program has none.
 * They must not run on the recorder's: without it they would run on the stack that was interrupted,
 * or not at all.
 */
static _Atomic uint64_t without_stack;

enum { NUMBERS = 64 };

/* The default actions, as the program has set them, in the place of which the handler is. */
static struct default_action {
    uint64_t mask;
    void (*restorer)(void);
    int flags;
} defaults[NUMBERS + 1];

static uint64_t bit_of(int number)
{
    return number > 0 && number <= NUMBERS ? UINT64_C(1) << (number - 1) : 0;
}

/* Puts the handler in the place of the default action that the program has just set. */
static void take_place(int number)
{
    struct sigaction action;
    if (!fatal_is_watched(number) || find_sigaction()(number, fatal_action, &action) != 0)
        return;
    struct default_action *kept = &defaults[number];
    memcpy(&kept->mask, &action.sa_mask, sizeof kept->mask);
    kept->restorer = action.sa_restorer;
    kept->flags = action.sa_flags;
}

/* Returns the default action that the handler has taken the place of. */
static struct sigaction default_of(int number)
{
    const struct default_action *kept = &defaults[number];
    struct sigaction action = {
        .sa_handler = SIG_DFL, .sa_flags = kept->flags, .sa_restorer = kept->restorer};
    memcpy(&action.sa_mask, &kept->mask, sizeof kept->mask);
    return action;
}

/* Sets an action of the program. */
static int set(int number, const struct sigaction *action, struct sigaction *before)
{
    struct sigaction changed = *action;
    bool is_default = changed.sa_handler == SIG_DFL;
    bool is_changed =
        !is_default && (changed.sa_flags & SA_ONSTACK) != 0 && signal_stacks_are_given();
    if (is_changed)
        changed.sa_flags &= ~SA_ONSTACK;
    int result = find_sigaction()(number, &changed, before);
    if (result == 0 && is_changed)
        atomic_fetch_or(&without_stack, bit_of(number));
    else if (result == 0)
        atomic_fetch_and(&without_stack, ~bit_of(number));
    return result;
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    struct sigaction own_before;
    bool is_onstack = (atomic_load(&without_stack) & bit_of(number)) != 0;
    bool becomes_default = action != NULL && action->sa_handler == SIG_DFL;
    int result = action != NULL ? set(number, action, &own_before)
                                : find_sigaction()(number, NULL, &own_before);
    if (result != 0)
        return result;
    if (fatal_is_own(&own_before))
        own_before = default_of(number);
    else if (is_onstack)
        own_before.sa_flags |= SA_ONSTACK;
    if (becomes_default)
        take_place(number);
    if (before != NULL)
        *before = own_before;
    return 0;
}

/* Lets the handlers run on signal stacks that shall do so: there are some now. */
static void use_stacks(void)
{
    signal_stacks_end();
    uint64_t numbers = atomic_exchange(&without_stack, 0);
    for (int number = 1; number <= NUMBERS; number++) {
        struct sigaction action;
        if ((numbers & bit_of(number)) == 0 || find_sigaction()(number, NULL, &action) != 0)
            continue;
        action.sa_flags |= SA_ONSTACK;
        find_sigaction()(number, &action, NULL);
    }
}

typedef int sigaltstack_function(const stack_t *, stack_t *);
REAL(sigaltstack_function, sigaltstack, NULL)

EXPORT int sigaltstack(const stack_t *stack, stack_t *before)
{
    if (stack != NULL && (stack->ss_flags & SS_DISABLE) == 0 && signal_stacks_are_given())
        use_stacks();
    int result = find_sigaltstack()(stack, before);
    if (result == 0 && before != NULL && signal_stack_is_own(before))
        *before = (stack_t){.ss_flags = SS_DISABLE};
    return result;
}

typedef sighandler_t signal_function(int, sighandler_t);

/* Makes what one of the older functions has set, and returns, as sigaction() would. */
static sighandler_t settle(int number, sighandler_t handler, sighandler_t before)
{
    if (before != SIG_ERR && handler == SIG_DFL)
        take_place(number);
    return (uintptr_t)before == (uintptr_t)fatal_action->sa_sigaction ? SIG_DFL : before;
}

#define HOOK_SIGNAL(name, symbol)                                                                  \
    static signal_function *real_##name;                                                           \
    signal_function name __asm__(symbol);                                                          \
    REAL_LATER(real_##name, symbol, NULL)                                                          \
    EXPORT sighandler_t name(int number, sighandler_t handler)                                     \
    {                                                                                              \
        if (real_##name == NULL)                                                                   \
            *(void **)&real_##name = dlsym(RTLD_NEXT, symbol);                                     \
        return settle(number, handler, real_##name(number, handler));                              \
    }

HOOK_SIGNAL(hook_signal, "signal")
HOOK_SIGNAL(hook_ssignal, "ssignal")
HOOK_SIGNAL(hook_bsd_signal, "bsd_signal")
HOOK_SIGNAL(hook_sysv_signal, "sysv_signal")
HOOK_SIGNAL(hook_sysv_signal_too, "__sysv_signal")
HOOK_SIGNAL(hook_sigset, "sigset")
