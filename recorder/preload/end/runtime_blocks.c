/* SPDX-License-Identifier: MIT */
/*
 * Finds the blocks that the C and C++ runtimes keep until the end: buffers of stdio, the emergency
 * pool of exceptions. The runtimes can release them on request, but nothing works afterwards. So a
 * copy of the process makes the request when the program has ended: the blocks that it releases are
 * the runtimes'. The program cannot notice the copy: no handler of fork runs, no SIGCHLD comes,
 * wait() does not see it; and it has no files, so that nothing is written twice.
 *
 * A process that calls _exit() has nothing left to do, and one that calls exit() has not after the
 * last handler, once its streams are flushed. It makes the request itself, at a fraction of the
 * cost of a copy, if no other thread or process has the same memory. It has no files any more then
 * either, and ends with its own status whatever happens.
 */
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "preload/end/exit_end.h"
#include "preload/system/real.h"
#include "preload/system/replaced.h"
#include "preload/system/sys.h"

/* How long the program waits for a copy, at its end and at its start, where nothing can hold one up
 * but the program's functions. */
enum { WAIT_MS = 500, WAIT_START_MS = 5000 };

typedef void freeres_function(void);

static freeres_function *runtime_libc_freeres;

/* To look in all modules would touch pages of each. */
void runtime_find(void)
{
    *(void **)&runtime_libc_freeres =
        real_find_beside((uintptr_t)gnu_get_libc_version, "__libc_freeres");
}

/* Isolates the copy, so that nothing it does is noticed. All signals are blocked and no handler
 * runs; only abort() unblocks its own. */
static void runtime_isolate(long parent)
{
    static const struct sys_sigaction standard;
    const struct rlimit no_core = {0, 0};
    sys_call3(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
    if (sys_call3(SYS_getppid, 0, 0, 0) != parent) /* it was killed before it could say so */
        runtime_end(0);
    sys_call3(SYS_prlimit64, 0, RLIMIT_CORE, (long)&no_core);
    sys_call6(SYS_rt_sigaction, SIGABRT, (long)&standard, 0, sizeof standard.mask, 0, 0);
    if (sys_call3(SYS_close_range, 0, ~0U, 0) != 0)
        for (int file = 0; file < 65536; file++)
            sys_call3(SYS_close, file, 0, 0);
}

/* The exit status of a process that makes the request itself. */
static int end_status;

void runtime_end(int status)
{
    for (;;)
        sys_call3(SYS_exit_group, process_asks_itself ? end_status : status, 0, 0);
}

/* The exit status of a copy for "yes". Others may mean that it has failed. */
enum { YES = 111 };

static void runtime_on_failure(int number)
{
    runtime_end(number);
}

/* Makes the process end with its status if the request fails, or takes too long. All other signals
 * are blocked. */
static void runtime_guard(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGALRM};
    static const unsigned long has_restorer = 0x04000000; /* the system demands one */
    const struct sys_sigaction action = {.handler = runtime_on_failure,
                                         .flags = SA_ONSTACK | has_restorer,
                                         .restorer = (void (*)(void))runtime_on_failure,
                                         .mask = ~0UL};
    const struct itimerval limit = {.it_value = {.tv_usec = WAIT_MS * 1000L}};
    unsigned long wanted = 0;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        sys_call6(SYS_rt_sigaction, signals[i], (long)&action, 0, sizeof action.mask, 0, 0);
        wanted |= 1UL << (signals[i] - 1);
    }
    sys_call3(SYS_setitimer, ITIMER_REAL, (long)&limit, 0);
    sys_call6(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&wanted, 0, sizeof wanted, 0, 0);
}

/* The copy may wait for a lock that no thread is left to release. Returns its wait status. */
static int runtime_await_copy(long copy, long limit_ms)
{
    int status = 0;
    struct timespec limit = {limit_ms / 1000, limit_ms % 1000 * 1000000};
    struct pollfd event = {.events = POLLIN};
    long file = sys_call3(SYS_pidfd_open, copy, 0, 0);
    event.fd = (int)file;
    /* A signal ends the wait early: the list of the copy is then cut short, and says so. */
    if (file < 0 || sys_call6(SYS_ppoll, (long)&event, 1, (long)&limit, 0, 0, 0) != 1)
        sys_call3(SYS_kill, copy, SIGKILL, 0);
    if (file >= 0)
        sys_call3(SYS_close, file, 0, 0);
    while (sys_call6(SYS_wait4, copy, (long)&status, __WALL, 0, 0, 0) == -EINTR)
        ;
    return status;
}

void runtime_await(long copy)
{
    runtime_await_copy(copy, WAIT_MS);
}

/* Finds the C++ runtime's function in the runtime's own table. dlopen() would run constructors
 * again now that all destructors have run. */
static int runtime_find_cxx(struct dl_phdr_info *info, size_t size, void *function)
{
    (void)size;
    if (!strstr(info->dlpi_name, "libstdc++"))
        return 0;
    for (unsigned i = 0; i < info->dlpi_phnum && !*(void **)function; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            *(void **)function = real_find_beside(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
                                                  "_ZN9__gnu_cxx9__freeresEv");
    return 1;
}

/*
 * Makes the runtimes release their blocks, in the copy, because even the lookup of these functions
 * may wait for a lock that is never released. The C++ runtime may be one that only a plugin sees.
 * False if the C library cannot do it.
 */
static bool runtime_release_all(void)
{
    freeres_function *c = runtime_libc_freeres, *cxx = NULL;
    dl_iterate_phdr(runtime_find_cxx, &cxx);
    if (cxx)
        cxx();
    if (!c)
        *(void **)&c = dlsym(RTLD_DEFAULT, "__libc_freeres");
    if (c)
        c();
    return c != NULL;
}

/* Tries the program's own functions that allocate and release; nothing of this is recorded. */
static bool runtime_try_functions(void)
{
    target_on->refused = 1;
    bool forwards = replaced_forward();
    target_on->refused = 0;
    return forwards;
}

/* Takes the place of the real function: nothing uses the memory again. A release of a large block
 * would merge free memory all over the heap, and a forked process would copy these pages first. */
static void runtime_do_not_release(void *block)
{
    (void)block;
}

/* Makes the request, and ends. Before that, confirms the findings from the start of the program. */
static _Noreturn void runtime_ask_for_kept(struct thread *thread)
{
    _Atomic uint32_t *notes = &channel_process(&target_view, process_index())->notes;
    target_leave(thread);
    if ((atomic_load(notes) & NOTE_FORWARDS) != 0 && runtime_try_functions())
        atomic_fetch_and(notes, ~(uint32_t)NOTE_FORWARDS);
    real.free = real_libc.free = runtime_do_not_release;
    if (runtime_release_all())
        process_told_all();
    for (;;)
        runtime_end(0);
}

/* The system refuses this for memory that anybody else has, and does nothing otherwise. */
bool runtime_has_process_alone(void)
{
    return sys_call3(SYS_unshare, CLONE_VM, 0, 0) == 0;
}

void runtime_ask_and_end(struct thread *thread, int status)
{
    if (!runtime_has_process_alone() ||
        sys_call3(SYS_close_range, 0, ~0U, CLOSE_RANGE_UNSHARE) != 0)
        return;
    end_status = status;
    process_is_copy = process_asks_itself = true;
    runtime_guard();
    process_forget();
    runtime_ask_for_kept(thread);
}

/* Returns 0 in the copy, else the result of runtime_copy(). */
static long runtime_copy_process(void)
{
    long parent = sys_call3(SYS_getpid, 0, 0, 0);
    long copy = sys_call6(SYS_clone, 0 /* a fork, without a signal at its end */, 0, 0, 0, 0, 0);
    if (copy != 0)
        return copy;
    process_is_copy = true;
    runtime_isolate(parent);
    return copy;
}

long runtime_copy(struct thread *thread)
{
    long copy = runtime_copy_process();
    if (copy != 0)
        return copy;
    runtime_ask_for_kept(thread);
}

bool runtime_tries_functions(void)
{
    unsigned long all = ~0UL, mask = 0;
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&mask, sizeof all, 0, 0);
    long copy = runtime_copy_process();
    if (copy == 0)
        runtime_end(runtime_try_functions() ? YES : 0);
    int status = copy > 0 ? runtime_await_copy(copy, WAIT_START_MS) : 0;
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof mask, 0, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == YES;
}
