/* SPDX-License-Identifier: MIT */
/* Notices the end of the process, in whatever way the C library ends it. */
#include "end.h"

#include <signal.h>
#include <unistd.h>

#include "../threads/levels.h"
#include "../system/sys.h"
#include "../threads/island.h"

/* The C library's registration of handlers, which it runs in reverse order. */
int libc_atexit(void (*function)(void *), void *argument, void *module) __asm__("__cxa_atexit");
int libc_at_quick_exit(void (*function)(void *), void *module) __asm__("__cxa_at_quick_exit");

enum { NO_STATUS = -1 };

/* Does what is left to do at the end. With a status the process has nothing else left, and may end
 * here. */
static void end(int status)
{
    if (process_asks_itself)
        runtime_end(status);
    /* Without a recorded call there are no blocks. The child of a vfork only ends itself. */
    bool has_blocks = target_on->on != 0 && target_on->has_records != 0;
    if (!has_blocks || process_is_confined || !process_is_own())
        return;
    island_awake();
    struct thread *thread = target_enter(0);
    if (thread == NULL)
        return;
    target_phase(thread, PHASE_RECORD);
    /* A handler would change what the snapshot shows; in the copy none may run. */
    unsigned long all = ~0UL, before = 0;
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof all, 0, 0);
    snapshot_ask(thread, before);
    if (status != NO_STATUS)
        runtime_ask_and_end(thread, status);
    long copy = runtime_copy(thread);
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0, 0);
    if (copy > 0)
        runtime_await(copy);
    target_leave(thread);
}

static void at_exit(void *unused)
{
    (void)unused;
    end(NO_STATUS);
}

/*
 * The loader runs the constructor that calls this before the program starts. Only then does the
 * C library register what runs all destructors of modules, so `at_exit` comes after these, after
 * the program's handlers, and after the destructors of thread-local and static objects.
 */
void end_register(void)
{
    libc_atexit(at_exit, NULL, NULL);
    libc_at_quick_exit(at_exit, NULL);
}

EXPORT void _exit(int status)
{
    end(status & 0xff); /* no more of it is seen */
    runtime_end(status);
}

EXPORT void _Exit(int status)
{
    _exit(status);
}
