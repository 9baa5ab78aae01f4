/* SPDX-License-Identifier: MIT */
#include "preload/end/fatal_signal.h"

#include <dlfcn.h>
#include <link.h>
#include <linux/futex.h>
#include <string.h>

#include "preload/end/exit_end.h"
#include "preload/system/real.h"
#include "preload/system/sys.h"
#include "preload/channel/target.h"
#include "preload/threads/internal.h"

#define SIGNAL(number) (UINT64_C(1) << ((number)-1))

static const uint64_t faults = SIGNAL(SIGSEGV) | SIGNAL(SIGBUS) | SIGNAL(SIGILL) | SIGNAL(SIGFPE) |
                               SIGNAL(SIGABRT) | SIGNAL(SIGTRAP) | SIGNAL(SIGSYS);

/* Signals that end no process, that cannot be caught, or that the C library keeps for itself. */
#ifndef TTD_ATTACHED
static const uint64_t others =
    SIGNAL(SIGCHLD) | SIGNAL(SIGCONT) | SIGNAL(SIGURG) | SIGNAL(SIGWINCH) | SIGNAL(SIGTSTP) |
    SIGNAL(SIGTTIN) | SIGNAL(SIGTTOU) | SIGNAL(SIGKILL) | SIGNAL(SIGSTOP) | SIGNAL(32) | SIGNAL(33);
#endif
enum { SIGNALS = 64 };

/* How long a thread waits for the death of the process, and how often it looks meanwhile. */
enum { DEATH_LOOKS = 60 * 50, DEATH_LOOK_NS = 20 * 1000 * 1000 };

#ifdef TTD_ATTACHED
#define watched attached.signals
#else
static uint64_t watched;
#endif

/*
 * The process dies of the signal when the handler returns: where it was interrupted, with the same
 * information about the signal, so that the core is the same. To return from the handler and fail
 * again would not do: a trap goes on behind it, and another thread may have mapped memory
 * meanwhile. A function that waits for a signal, such as sigsuspend(), may block it again as it
 * returns.
 */
static void fatal_die(int number, siginfo_t *info, ucontext_t *context)
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
static bool fatal_is_ignored(int number)
{
    return !fatal_is_fault(number) && sys_call3(SYS_getpid, 0, 0, 0) == 1;
}

/* Whether the collector gets a report. Many processes that are asked to end have done nothing
 * yet. */
static bool fatal_is_reported(int number)
{
    return target_on->on != 0 && !process_is_confined && process_is_own() &&
           (fatal_is_fault(number) || atomic_load(&target_on->has_records) != 0);
}

static void fatal_on_signal(int number, siginfo_t *info, void *context)
{
    if (fatal_is_ignored(number))
        return;
    if (fatal_is_reported(number)) {
        atomic_store(&target_on->dies, 1);
        snapshot_tell_signal(number, info, context);
    }
    fatal_die(number, info, context);
}

void fatal_await_death(void)
{
    const struct timespec look = {.tv_nsec = DEATH_LOOK_NS};
    for (int i = 0; atomic_load(&target_on->dies) != 0 && i < DEATH_LOOKS; i++)
        sys_call6(SYS_futex, (long)&target_on->dies, FUTEX_WAIT, 1, (long)&look, 0, 0);
}

static struct sigaction action = {
    .sa_sigaction = fatal_on_signal,
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
    return (installed->sa_flags & SA_SIGINFO) != 0 && installed->sa_sigaction == fatal_on_signal;
}

#ifndef TTD_ATTACHED

/* The C library's abort(); 0 if it is not known. */
static uintptr_t abort_begin, abort_end;

static void fatal_find_abort(void)
{
    Dl_info info;
    void *entry = NULL;
    void *address = dlsym(RTLD_NEXT, "abort");
    if (!address || dladdr1(address, &info, &entry, RTLD_DL_SYMENT) == 0 || !entry ||
        info.dli_saddr != address)
        return;
    abort_begin = (uintptr_t)address;
    abort_end = abort_begin + ((const ElfW(Sym) *)entry)->st_size;
}

/* Called when a handler of SIGABRT has returned. If abort() has raised the signal, the process dies
 * now. Without room on the handler's stack nothing is reported. */
static void fatal_handled(const ucontext_t *context) __attribute__((used));

static void fatal_handled(const ucontext_t *context)
{
    enum { ROOM = 4096 };
    const uint64_t all = UINT64_MAX;
    const siginfo_t info = {.si_signo = SIGABRT, .si_code = SI_TKILL};
    uintptr_t low = (uintptr_t)context->uc_stack.ss_sp, here = (uintptr_t)&info;
    bool is_on_signal_stack = here - low < context->uc_stack.ss_size;
    if (!fatal_is_watched(SIGABRT) || !fatal_is_reported(SIGABRT) ||
        (is_on_signal_stack && here - low < ROOM))
        return;
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, sizeof all, 0, 0);
    if (!snapshot_is_called_by(context, abort_begin, abort_end))
        return;
    atomic_store(&target_on->dies, 1);
    snapshot_tell_signal(SIGABRT, &info, context);
}

/*
 * For unwinders a frame of the system: each register is in the context that the stack pointer leads
 * to, at DW_OP_breg7 and an offset. The instruction before the function is for those that look up
 * the address before the one that a handler returns to.
 */
__asm__(".pushsection .text\n"
        "    .cfi_startproc\n"
        "    .cfi_signal_frame\n"
        "    .cfi_escape 0x0f, 0x04, 0x77, 0xa0, 0x01, 0x06\n" /* the CFA */
        "    .cfi_escape 0x10, 0x00, 0x03, 0x77, 0x90, 0x01\n" /* rax */
        "    .cfi_escape 0x10, 0x01, 0x03, 0x77, 0x88, 0x01\n" /* rdx */
        "    .cfi_escape 0x10, 0x02, 0x03, 0x77, 0x98, 0x01\n" /* rcx */
        "    .cfi_escape 0x10, 0x03, 0x03, 0x77, 0x80, 0x01\n" /* rbx */
        "    .cfi_escape 0x10, 0x04, 0x03, 0x77, 0xf0, 0x00\n" /* rsi */
        "    .cfi_escape 0x10, 0x05, 0x03, 0x77, 0xe8, 0x00\n" /* rdi */
        "    .cfi_escape 0x10, 0x06, 0x03, 0x77, 0xf8, 0x00\n" /* rbp */
        "    .cfi_escape 0x10, 0x07, 0x03, 0x77, 0xa0, 0x01\n" /* rsp */
        "    .cfi_escape 0x10, 0x08, 0x02, 0x77, 0x28\n"       /* r8 */
        "    .cfi_escape 0x10, 0x09, 0x02, 0x77, 0x30\n"       /* r9 */
        "    .cfi_escape 0x10, 0x0a, 0x02, 0x77, 0x38\n"       /* r10 */
        "    .cfi_escape 0x10, 0x0b, 0x03, 0x77, 0xc0, 0x00\n" /* r11 */
        "    .cfi_escape 0x10, 0x0c, 0x03, 0x77, 0xc8, 0x00\n" /* r12 */
        "    .cfi_escape 0x10, 0x0d, 0x03, 0x77, 0xd0, 0x00\n" /* r13 */
        "    .cfi_escape 0x10, 0x0e, 0x03, 0x77, 0xd8, 0x00\n" /* r14 */
        "    .cfi_escape 0x10, 0x0f, 0x03, 0x77, 0xe0, 0x00\n" /* r15 */
        "    .cfi_escape 0x10, 0x10, 0x03, 0x77, 0xa8, 0x01\n" /* rip */
        "    nop\n"
        ".globl fatal_return\n"
        ".hidden fatal_return\n"
        ".type fatal_return, @function\n"
        "fatal_return:\n"
        "    movq %rsp, %rbx\n"
        "    movq %rsp, %rdi\n"
        "    andq $-16, %rsp\n"
        "    cld\n"
        "    call fatal_handled\n"
        "    movq %rbx, %rsp\n"
        "    movl $15, %eax\n" /* rt_sigreturn */
        "    syscall\n"
        "    hlt\n"
        "    .cfi_endproc\n"
        ".size fatal_return, .-fatal_return\n"
        ".popsection\n");

/* Go's runtime reads actions by system calls of its own, and calls the handlers that it finds. */
static int fatal_is_go(struct dl_phdr_info *info, size_t size, void *unused)
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
    return -1; /* only the program; it comes first */
}

#endif

static void fatal_set_action(int number, const struct sigaction *now, struct sigaction *before)
{
    sigaction_function *function = fatal_real_sigaction();
    if (function)
        function(number, now, before);
}

#ifdef TTD_ATTACHED

void fatal_watch(void)
{
    /* Each is restored by a call that the process is made to make, while it is stopped. */
    static const uint64_t usual = SIGNAL(SIGHUP) | SIGNAL(SIGINT) | SIGNAL(SIGQUIT) |
                                  SIGNAL(SIGTERM) | SIGNAL(SIGPIPE) | SIGNAL(SIGALRM) |
                                  SIGNAL(SIGUSR1) | SIGNAL(SIGUSR2);
    memset(&action.sa_mask, 0xff, sizeof action.sa_mask);
    watched = sys_call3(SYS_getpid, 0, 0, 0) == 1 ? faults : faults | usual;
    for (int number = 1; number <= SIGNALS; number++)
        if (fatal_is_watched(number))
            fatal_take_place(number);
}

#else

void fatal_watch(void)
{
    if (process_is_confined || dl_iterate_phdr(fatal_is_go, NULL) == 1)
        return;
    sigfillset(&action.sa_mask);
    watched = sys_call3(SYS_getpid, 0, 0, 0) == 1 ? faults : ~others;
    fatal_find_abort();
    signal_stacks_begin();
    for (int number = 1; number <= SIGNALS; number++) {
        struct sigaction before = {.sa_handler = SIG_IGN};
        if (!fatal_is_watched(number))
            continue;
        fatal_set_action(number, &action, &before);
        if (before.sa_handler != SIG_DFL)
            fatal_set_action(number, &before, NULL);
    }
}

#endif

/* Restores the default action of signals that are watched. */
static void fatal_signal_unwatch(uint64_t numbers)
{
    numbers &= watched;
    watched &= ~numbers;
    for (int number = 1; number <= SIGNALS; number++) {
        const struct sigaction standard = {.sa_handler = SIG_DFL};
        struct sigaction now = {0};
        if ((numbers & SIGNAL(number)) == 0)
            continue;
        fatal_set_action(number, NULL, &now);
        if (fatal_is_own(&now))
            fatal_set_action(number, &standard, NULL);
    }
}

void fatal_watch_child(void)
{
    if (watched != 0 && sys_call3(SYS_getpid, 0, 0, 0) == 1)
        fatal_signal_unwatch(~faults);
}

void fatal_unwatch(void)
{
    fatal_signal_unwatch(watched);
}
