/* SPDX-License-Identifier: MIT */
#include "fatal.h"

#include <link.h>
#include <linux/futex.h>
#include <string.h>

#include "end.h"
#include "../system/real.h"
#include "../system/sys.h"
#include "../channel/target.h"
#include "../threads/signal_stack.h"

#define SIGNAL(number) (UINT64_C(1) << ((number)-1))

static const uint64_t faults = SIGNAL(SIGSEGV) | SIGNAL(SIGBUS) | SIGNAL(SIGILL) | SIGNAL(SIGFPE) |
                               SIGNAL(SIGABRT) | SIGNAL(SIGTRAP) | SIGNAL(SIGSYS);

/* Those of which no process dies, that cannot be caught, or that the C library keeps for itself. */
static const uint64_t others =
    SIGNAL(SIGCHLD) | SIGNAL(SIGCONT) | SIGNAL(SIGURG) | SIGNAL(SIGWINCH) | SIGNAL(SIGTSTP) |
    SIGNAL(SIGTTIN) | SIGNAL(SIGTTOU) | SIGNAL(SIGKILL) | SIGNAL(SIGSTOP) | SIGNAL(32) | SIGNAL(33);
enum { SIGNALS = 64 };

/* How long a thread waits for the death of the process, and how often it looks meanwhile. */
enum { DEATH_LOOKS = 60 * 50, DEATH_LOOK_NS = 20 * 1000 * 1000 };

static uint64_t watched;

/*
 * The process dies of the signal when the handler returns: where it was interrupted, with the same
 * information about the signal, so that the core is the same. To return from the handler and fail
 * again would not do: a trap goes on behind it, and another thread may have mapped memory
 * meanwhile. What waits for a signal, such as sigsuspend(), may block it again as it returns.
 */
static void die(int number, siginfo_t *info, ucontext_t *context)
{
    static const struct sys_sigaction standard;
    long process = sys_call3(SYS_getpid, 0, 0, 0);
    long thread = sys_call3(SYS_gettid, 0, 0, 0);
    sys_call6(SYS_rt_sigaction, number, (long)&standard, 0, sizeof standard.mask, 0, 0);
    sigdelset(&context->uc_sigmask, number);
    if (sys_call6(SYS_rt_tgsigqueueinfo, process, thread, number, (long)info, 0, 0) != 0 &&
        sys_call3(SYS_tgkill, process, thread, number) != 0)
        sys_call3(SYS_kill, process, number, 0);
}

bool fatal_is_fault(int number)
{
    return (faults & SIGNAL(number)) != 0;
}

/* Whether the system ignores the default action of the signal: it came before the program has set
 * the action anew, in the first process of a namespace. */
static bool is_ignored(int number)
{
    return !fatal_is_fault(number) && sys_call3(SYS_getpid, 0, 0, 0) == 1;
}

/* Whether the collector is told. Many processes that are asked to end have done nothing yet. */
static bool is_told(int number)
{
    return target_on->on != 0 && !process_is_confined && process_is_own() &&
           (fatal_is_fault(number) || atomic_load(&target_on->has_records) != 0);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    if (is_ignored(number))
        return;
    if (is_told(number)) {
        atomic_store(&target_on->dies, 1);
        snapshot_tell_signal(number, info, context);
    }
    die(number, info, context);
}

void fatal_await_death(void)
{
    const struct timespec look = {.tv_nsec = DEATH_LOOK_NS};
    for (int i = 0; atomic_load(&target_on->dies) != 0 && i < DEATH_LOOKS; i++)
        sys_call6(SYS_futex, (long)&target_on->dies, FUTEX_WAIT, 1, (long)&look, 0, 0);
}

static struct sigaction action = {
    .sa_sigaction = on_signal,
    /* A failure of the handler itself is final: all signals are blocked then. The action stays, for
     * another thread that fails meanwhile. One that is ignored interrupts as few calls as can be.
     */
    .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART,
};
const struct sigaction *const fatal_action = &action;

bool fatal_is_watched(int number)
{
    return number > 0 && number <= SIGNALS && (watched & SIGNAL(number)) != 0;
}

bool fatal_is_own(const struct sigaction *installed)
{
    return (installed->sa_flags & SA_SIGINFO) != 0 && installed->sa_sigaction == on_signal;
}

/* Go's runtime reads actions by system calls of its own, and calls the handlers that it finds. */
static int is_go(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const ElfW(Nhdr) *note = (const void *)(info->dlpi_addr + segment->p_vaddr);
        if (segment->p_type == PT_NOTE && segment->p_memsz >= sizeof *note + 4 &&
            note->n_namesz == 4 && memcmp(note + 1, "Go\0", 4) == 0)
            return 1;
    }
    return -1; /* only the program, which comes first */
}

static void set(int number, const struct sigaction *now, struct sigaction *before)
{
    sigaction_function *function = fatal_real_sigaction();
    if (function != NULL)
        function(number, now, before);
}

void fatal_watch(void)
{
    if (process_is_confined || dl_iterate_phdr(is_go, NULL) == 1)
        return;
    sigfillset(&action.sa_mask);
    watched = sys_call3(SYS_getpid, 0, 0, 0) == 1 ? faults : ~others;
    signal_stacks_begin();
    for (int number = 1; number <= SIGNALS; number++) {
        struct sigaction before = {.sa_handler = SIG_IGN};
        if (!fatal_is_watched(number))
            continue;
        set(number, &action, &before);
        if (before.sa_handler != SIG_DFL)
            set(number, &before, NULL);
    }
}

/* Restores the default action of signals that are watched. */
static void unwatch(uint64_t numbers)
{
    numbers &= watched;
    watched &= ~numbers;
    for (int number = 1; number <= SIGNALS; number++) {
        const struct sigaction standard = {.sa_handler = SIG_DFL};
        struct sigaction now = {0};
        if ((numbers & SIGNAL(number)) == 0)
            continue;
        set(number, NULL, &now);
        if (fatal_is_own(&now))
            set(number, &standard, NULL);
    }
}

void fatal_watch_child(void)
{
    if (watched != 0 && sys_call3(SYS_getpid, 0, 0, 0) == 1)
        unwatch(~faults);
}

void fatal_unwatch(void)
{
    unwatch(watched);
}
