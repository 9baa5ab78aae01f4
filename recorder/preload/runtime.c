/* SPDX-License-Identifier: MIT */
/*
 * Finds the blocks that the C and C++ runtimes keep until the end: buffers of stdio, the emergency
 * pool of exceptions. The runtimes can release them on request, but nothing works afterwards. So a
 * copy of the process makes the request when the program has ended: the blocks that it releases are
 * the runtimes'. The program cannot notice the copy: no handler of fork runs, no SIGCHLD comes,
 * wait() does not see it; and it has no files, so that nothing is written twice.
 */
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sys.h"
#include "levels.h"
#include "real.h"

enum { WAIT_MS = 500 };

typedef void freeres_function(void);

/* The layout that the system call takes. */
struct kernel_sigaction {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

/* Isolates the copy, so that nothing it does is noticed. All signals are blocked and no handler
 * runs; only abort() unblocks its own. */
static void isolate(void)
{
    static const struct kernel_sigaction standard;
    const struct rlimit no_core = {0, 0};
    sys_call3(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
    sys_call3(SYS_prlimit64, 0, RLIMIT_CORE, (long)&no_core);
    sys_call6(SYS_rt_sigaction, SIGABRT, (long)&standard, 0, sizeof standard.mask, 0, 0);
    if (sys_call3(SYS_close_range, 0, ~0U, 0) != 0)
        for (int file = 0; file < 65536; file++)
            sys_call3(SYS_close, file, 0, 0);
}

/* Waits for the copy, for a limited time: it may wait for a lock that no thread is left to release.
 */
static void await(long copy)
{
    struct timespec limit = {.tv_nsec = WAIT_MS * 1000000L};
    struct pollfd wanted = {.events = POLLIN};
    long file = sys_call3(SYS_pidfd_open, copy, 0, 0);
    wanted.fd = (int)file;
    /* A signal ends the wait early: the list of the copy is then cut short, and says so. */
    if (file < 0 || sys_call6(SYS_ppoll, (long)&wanted, 1, (long)&limit, 0, 0, 0) != 1)
        sys_call3(SYS_kill, copy, SIGKILL, 0);
    if (file >= 0)
        sys_call3(SYS_close, file, 0, 0);
    while (sys_call6(SYS_wait4, copy, 0, __WALL, 0, 0, 0) == -EINTR)
        ;
}

static int is_cxx(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    return strstr(info->dlpi_name, "libstdc++") != NULL;
}

/*
 * Makes the runtimes release their blocks, in the copy, because even the lookup of these functions
 * may wait for a lock that is never released. The C++ runtime may be one that only a plugin sees.
 * False if the C library cannot do it.
 */
static bool release_all(void)
{
    freeres_function *c, *cxx = NULL;
    void *library = NULL;
    if (dl_iterate_phdr(is_cxx, NULL) != 0) /* else it would be searched for in files */
        library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (library != NULL)
        *(void **)&cxx = dlsym(library, "_ZN9__gnu_cxx9__freeresEv");
    if (cxx != NULL)
        cxx();
    /* To look in all modules would touch pages of each. */
    *(void **)&c = real_find_beside((uintptr_t)gnu_get_libc_version, "__libc_freeres");
    if (c == NULL)
        *(void **)&c = dlsym(RTLD_DEFAULT, "__libc_freeres");
    if (c != NULL)
        c();
    return c != NULL;
}

__attribute__((destructor)) static void ask_runtimes(void)
{
    /* Without a recorded call the runtimes keep no block. */
    bool has_blocks = target_on->on != 0 && target_on->has_records != 0;
    struct thread *thread = has_blocks && !process_is_confined ? target_enter(0) : NULL;
    if (thread == NULL)
        return;
    target_phase(thread, PHASE_RECORD);
    /* No handler of the program may run in the copy. */
    unsigned long all = ~0UL, before = 0;
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof all, 0, 0);
    long copy = sys_call6(SYS_clone, 0 /* a fork, without a signal at its end */, 0, 0, 0, 0, 0);
    if (copy != 0)
        sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0, 0);
    if (copy == 0) {
        process_is_copy = true;
        isolate();
        target_leave(thread);
        if (release_all())
            process_told_all();
        sys_call3(SYS_exit_group, 0, 0, 0);
    }
    if (copy > 0)
        await(copy);
    target_leave(thread);
}

/* A program that ends by _exit() runs no destructors. The child of a vfork only ends. */
EXPORT void _exit(int status)
{
    if (!process_is_confined && process_is_own())
        ask_runtimes();
    for (;;)
        sys_call3(SYS_exit_group, status, 0, 0);
}

EXPORT void _Exit(int status)
{
    _exit(status);
}
