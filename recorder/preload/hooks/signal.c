/* SPDX-License-Identifier: MIT */
/*
 * Hooks of the functions that set the action of a signal: where the program sets or asks for the
 * default action, the recorder's handler takes its place, or is not shown.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "preload/end/fatal_signal.h"
#include "preload/system/sys.h"
#include "preload/threads/internal.h"
#include "preload/hooks/hooks.h"

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

/* The default actions, as the program has set them; the handler is in their place. */
static struct default_action {
    uint64_t mask;
    void (*restorer)(void);
    int flags;
} defaults[NUMBERS + 1];

static uint64_t signal_bit_of(int number)
{
    return number > 0 && number <= NUMBERS ? UINT64_C(1) << (number - 1) : 0;
}

void fatal_take_place(int number)
{
    struct sigaction action;
    if (!fatal_is_watched(number) || find_sigaction()(number, fatal_action, &action) != 0)
        return;
    if (action.sa_handler != SIG_DFL) { /* another thread has set one meanwhile */
        if (!fatal_is_own(&action))
            find_sigaction()(number, &action, NULL);
        return;
    }
    struct default_action *kept = &defaults[number];
    memcpy(&kept->mask, &action.sa_mask, sizeof kept->mask);
    kept->restorer = action.sa_restorer;
    kept->flags = action.sa_flags;
}

/* Returns the default action that the handler has taken the place of. */
static struct sigaction signal_default_of(int number)
{
    const struct default_action *kept = &defaults[number];
    struct sigaction action = {
        .sa_handler = SIG_DFL, .sa_flags = kept->flags, .sa_restorer = kept->restorer};
    memcpy(&action.sa_mask, &kept->mask, sizeof kept->mask);
    return action;
}

/* The program's handlers that the system resets to the default action when it calls them
 * (SA_RESETHAND), by signal. */
static _Atomic(uintptr_t) once[NUMBERS + 1];

/* Called in their place, by the system: puts the recorder's handler in the place of the default
 * action that the system has just set, and returns the program's. */
static uintptr_t signal_once_begin(int number) __attribute__((used));

static uintptr_t signal_once_begin(int number)
{
    int kept_errno = errno;
    fatal_take_place(number);
    errno = kept_errno;
    return atomic_load(&once[number]);
}

/* Goes on with the program's handler as if the system had called that: on the same stack, and with
 * the same arguments. */
extern void once_entry(int number, siginfo_t *info, void *context)
    __attribute__((visibility("hidden")));

__asm__(".pushsection .text\n"
        ".type once_entry, @function\n"
        "once_entry:\n"
        "    .cfi_startproc\n"
        "    pushq %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rdx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    call signal_once_begin\n"
        "    popq %rdx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    jmp *%rax\n"
        "    .cfi_endproc\n"
        ".size once_entry, .-once_entry\n"
        ".popsection\n");

/* Whether an action is a handler that is called by way of once_entry(). */
static bool signal_is_once(const struct sigaction *action)
{
    return action->sa_sigaction == once_entry;
}

/* Has a handler called by way of once_entry() that the system is to reset. */
static void signal_pass_through(int number, struct sigaction *action)
{
    if ((action->sa_flags & SA_RESETHAND) == 0 || action->sa_handler == SIG_DFL ||
        action->sa_handler == SIG_IGN || action->sa_handler == SIG_ERR || !fatal_is_watched(number))
        return;
    atomic_store(&once[number], (uintptr_t)action->sa_sigaction);
    action->sa_sigaction = once_entry;
}

/* Shows the program's handler in the place of once_entry(); `handler` is the one that it had. */
static void signal_show_once(struct sigaction *action, uintptr_t handler)
{
    if (signal_is_once(action))
        action->sa_sigaction = (void (*)(int, siginfo_t *, void *))handler;
}

/* Where the C library has handlers return to. */
static void (*library_return)(void);

/* Has the program's handler of SIGABRT return to fatal_return(). */
static void signal_watch_return(int number)
{
    struct sys_sigaction action, before;
    const size_t size = sizeof action.mask;
    if (number != SIGABRT || !fatal_is_watched(number) ||
        sys_call6(SYS_rt_sigaction, number, 0, (long)&action, (long)size, 0, 0) != 0 ||
        action.handler == SIG_DFL || action.handler == SIG_IGN || !action.restorer ||
        action.restorer == fatal_return ||
        (uintptr_t)action.handler == (uintptr_t)fatal_action->sa_sigaction)
        return;
    library_return = action.restorer;
    action.restorer = fatal_return;
    if (sys_call6(SYS_rt_sigaction, number, (long)&action, (long)&before, (long)size, 0, 0) == 0 &&
        before.handler != action.handler) /* another thread has set one meanwhile */
        sys_call6(SYS_rt_sigaction, number, (long)&before, 0, (long)size, 0, 0);
}

/* Sets an action of the program. */
static int signal_set_action(int number, const struct sigaction *action, struct sigaction *before)
{
    struct sigaction changed = *action;
    bool is_default = changed.sa_handler == SIG_DFL;
    signal_pass_through(number, &changed);
    bool is_changed =
        !is_default && (changed.sa_flags & SA_ONSTACK) != 0 && signal_stacks_are_given();
    if (is_changed)
        changed.sa_flags &= ~SA_ONSTACK;
    int result = find_sigaction()(number, &changed, before);
    if (result == 0 && is_changed)
        atomic_fetch_or(&without_stack, signal_bit_of(number));
    else if (result == 0)
        atomic_fetch_and(&without_stack, ~signal_bit_of(number));
    if (result == 0)
        signal_watch_return(number);
    return result;
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    struct sigaction own_before;
    uintptr_t handler = signal_bit_of(number) != 0 ? atomic_load(&once[number]) : 0;
    bool is_onstack = (atomic_load(&without_stack) & signal_bit_of(number)) != 0;
    bool becomes_default = action && action->sa_handler == SIG_DFL;
    int result = action ? signal_set_action(number, action, &own_before)
                        : find_sigaction()(number, NULL, &own_before);
    if (result != 0)
        return result;
    if (fatal_is_own(&own_before))
        own_before = signal_default_of(number);
    else if (is_onstack)
        own_before.sa_flags |= SA_ONSTACK;
    signal_show_once(&own_before, handler);
    if (own_before.sa_restorer == fatal_return)
        own_before.sa_restorer = library_return;
    if (becomes_default)
        fatal_take_place(number);
    if (before)
        *before = own_before;
    return 0;
}

/* Lets the handlers run on signal stacks that shall do so: there are some now. */
static void signal_use_stacks(void)
{
    signal_stacks_end();
    uint64_t numbers = atomic_exchange(&without_stack, 0);
    for (int number = 1; number <= NUMBERS; number++) {
        struct sigaction action;
        if ((numbers & signal_bit_of(number)) == 0 || find_sigaction()(number, NULL, &action) != 0)
            continue;
        action.sa_flags |= SA_ONSTACK;
        find_sigaction()(number, &action, NULL);
        signal_watch_return(number);
    }
}

/* The thread's signal stack. Otherwise the system alone knows where it is: from here it is found as
 * a root of the thread. The name is shown. */
static __thread void *volatile alternate_signal_stack __attribute__((tls_model("initial-exec")));

typedef int sigaltstack_function(const stack_t *, stack_t *);
REAL(sigaltstack_function, sigaltstack, NULL)

EXPORT int sigaltstack(const stack_t *stack, stack_t *before)
{
    if (stack && (stack->ss_flags & SS_DISABLE) == 0 && signal_stacks_are_given())
        signal_use_stacks();
    int result = find_sigaltstack()(stack, before);
    if (result == 0 && stack)
        alternate_signal_stack = (stack->ss_flags & SS_DISABLE) == 0 ? stack->ss_sp : NULL;
    if (result == 0 && before && signal_stack_is_own(before))
        *before = (stack_t){.ss_flags = SS_DISABLE};
    return result;
}

typedef sighandler_t signal_function(int, sighandler_t);

/* Returns the result of one of the older functions, as sigaction() would have made it. `earlier` is
 * the handler that once_entry() has called until then. */
static sighandler_t signal_settle(int number, sighandler_t handler, sighandler_t before,
                                  uintptr_t earlier)
{
    struct sigaction action;
    if (before == SIG_ERR)
        return before;
    if (handler == SIG_DFL)
        fatal_take_place(number);
    else if (find_sigaction()(number, NULL, &action) == 0 && action.sa_handler == handler &&
             (action.sa_flags & SA_RESETHAND) != 0)
        signal_set_action(number, &action, NULL);
    else
        signal_watch_return(number);
    if ((uintptr_t)before == (uintptr_t)once_entry)
        return (sighandler_t)earlier;
    return (uintptr_t)before == (uintptr_t)fatal_action->sa_sigaction ? SIG_DFL : before;
}

#define HOOK_SIGNAL(name, symbol)                                                                  \
    static signal_function *real_##name;                                                           \
    signal_function name __asm__(symbol);                                                          \
    REAL_LATER(real_##name, symbol, NULL)                                                          \
    EXPORT sighandler_t name(int number, sighandler_t handler)                                     \
    {                                                                                              \
        if (!real_##name)                                                                          \
            *(void **)&real_##name = dlsym(RTLD_NEXT, symbol);                                     \
        uintptr_t earlier = signal_bit_of(number) != 0 ? atomic_load(&once[number]) : 0;           \
        return signal_settle(number, handler, real_##name(number, handler), earlier);              \
    }

HOOK_SIGNAL(hook_signal, "signal")
HOOK_SIGNAL(hook_ssignal, "ssignal")
HOOK_SIGNAL(hook_bsd_signal, "bsd_signal")
HOOK_SIGNAL(hook_sysv_signal, "sysv_signal")
HOOK_SIGNAL(hook_sysv_signal_too, "__sysv_signal")
HOOK_SIGNAL(hook_sigset, "sigset")

long sigaction_call(long number, int signal, const struct sys_sigaction *action,
                    struct sys_sigaction *before, size_t size);

/* Serves rt_sigaction() by syscall(): a program sets an action by it without the C library.
 */
__attribute__((used)) long sigaction_call(long number, int signal,
                                          const struct sys_sigaction *action,
                                          struct sys_sigaction *before, size_t size)
{
    bool becomes_default = action && action->handler == SIG_DFL;
    uintptr_t handler = signal_bit_of(signal) != 0 ? atomic_load(&once[signal]) : 0;
    long result = sys_call6(number, signal, (long)action, (long)before, (long)size, 0, 0);
    if (result != 0) {
        errno = (int)-result;
        return -1;
    }
    if (before && (uintptr_t)before->handler == (uintptr_t)fatal_action->sa_sigaction)
        before->handler = SIG_DFL;
    else if (before && (uintptr_t)before->handler == (uintptr_t)once_entry)
        before->handler = (void (*)(int))handler;
    if (becomes_default)
        fatal_take_place(signal);
    return 0;
}
