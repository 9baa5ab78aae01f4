/* SPDX-License-Identifier: MIT */
#include "fatal.h"

#include <link.h>
#include <string.h>

#include "end.h"
#include "../system/real.h"
#include "../system/sys.h"
#include "../channel/target.h"
#include "../threads/signal_stack.h"

/* Those whose default action is a core, unless somebody wants the program to end, or limits it. */
static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
enum { SIGNALS = sizeof signals / sizeof *signals };

static bool is_watching;

/*
 * The process dies of the signal when the handler returns: where it was interrupted, with the same
 * information about the signal, so that the core is the same. To return from the handler and fail
 * again would not do: a trap goes on behind it, and another thread may have mapped memory
 * meanwhile.
 */
static void die(int number, siginfo_t *info)
{
    static const struct sys_sigaction standard;
    long process = sys_call3(SYS_getpid, 0, 0, 0);
    long thread = sys_call3(SYS_gettid, 0, 0, 0);
    sys_call6(SYS_rt_sigaction, number, (long)&standard, 0, sizeof standard.mask, 0, 0);
    if (sys_call6(SYS_rt_tgsigqueueinfo, process, thread, number, (long)info, 0, 0) != 0)
        sys_call3(SYS_tgkill, process, thread, number);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    if (target_on->on != 0 && !process_is_confined && process_is_own())
        snapshot_tell_signal(number, info, context);
    die(number, info);
}

static struct sigaction action = {
    .sa_sigaction = on_signal,
    /* A failure of the handler itself is final: all signals are blocked then. The action stays, for
     * another thread that fails meanwhile. */
    .sa_flags = SA_SIGINFO | SA_ONSTACK,
};
const struct sigaction *const fatal_action = &action;

bool fatal_is_watched(int number)
{
    bool is_one = false;
    for (int i = 0; i < SIGNALS; i++)
        is_one = is_one || signals[i] == number;
    return is_one && is_watching;
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
    is_watching = true;
    signal_stacks_begin();
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction before = {.sa_handler = SIG_IGN};
        set(signals[i], &action, &before);
        if (before.sa_handler != SIG_DFL)
            set(signals[i], &before, NULL);
    }
}

void fatal_unwatch(void)
{
    if (!is_watching)
        return;
    is_watching = false;
    for (int i = 0; i < SIGNALS; i++) {
        const struct sigaction standard = {.sa_handler = SIG_DFL};
        struct sigaction now = {0};
        set(signals[i], NULL, &now);
        if (fatal_is_own(&now))
            set(signals[i], &standard, NULL);
    }
}
