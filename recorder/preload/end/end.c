/* SPDX-License-Identifier: MIT */
/* Notices the end of the process, in whatever way the C library ends it. */
#include "preload/end/end.h"

#include <gnu/libc-version.h>
#include <signal.h>
#include <unistd.h>

#include "preload/threads/levels.h"
#include "preload/end/fatal.h"
#include "preload/end/last.h"
#include "preload/system/real.h"
#include "preload/system/sys.h"
#include "preload/threads/island.h"

int libc_at_quick_exit(void (*function)(void *), void *module) __asm__("__cxa_at_quick_exit");

enum way {
    BY_CALL,    /* of _exit(): the process may end here */
    BY_HANDLER, /* of exit() */
    BY_QUICK_HANDLER,
};

/* Blocks all signals: a handler would change what the snapshot shows, and in the copy none may run.
 */
static void block_signals(unsigned long *before)
{
    unsigned long all = ~0UL;
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)before, sizeof all, 0, 0);
}

/* Only when the hook's level has been left: a signal that has waited comes at once, and its handler
 * would take the level for one that a jump has left. */
static void restore_signals(const unsigned long *before)
{
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)before, 0, sizeof *before, 0, 0);
}

/* Returns the calling thread, in PHASE_RECORD and with all signals blocked; NULL if it does not
 * record. */
static struct thread *enter(unsigned long *before)
{
    struct thread *thread = target_enter(0);
    if (thread == NULL)
        return NULL;
    target_phase(thread, PHASE_RECORD);
    block_signals(before);
    return thread;
}

/* Finds what exit() calls after the last handler, and what flushes the streams: no function of the
 * program of the same name. */
static int (*find_flush(void))(void)
{
    int (*flush)(void);
    *(void **)&flush = real_find_beside((uintptr_t)gnu_get_libc_version, "fcloseall");
    return flush;
}

/*
 * Does what exit() does after its last handler, as far as the program can notice: the process may
 * then end here. Returns whether it may; if not, it is as it was, but for streams that are flushed.
 * Sets `*thread` to NULL if it does not record any more.
 */
static bool finish_exit(struct thread **thread, unsigned long *before)
{
    int (*flush)(void) = find_flush();
    if (flush == NULL || !last_is_running() || !runtime_has_process_alone())
        return false;
    target_leave(*thread);
    restore_signals(before);
    flush();
    *thread = enter(before);
    return *thread != NULL;
}

/* Does what is left to do at the end. */
static void end_recording(enum way way, int status)
{
    unsigned long before = 0;
    if (process_asks_itself)
        runtime_end(status);
    /* Without a recorded call there are no blocks. The child of a vfork only ends itself. */
    bool has_blocks = target_on->on != 0 && target_on->has_records != 0;
    if (!has_blocks || process_is_confined || !process_is_own())
        return;
    fatal_await_death();
    island_awake();
    struct thread *thread = enter(&before);
    if (thread == NULL)
        return;
    snapshot_ask(thread, before);
    if (way == BY_CALL || (way == BY_HANDLER && finish_exit(&thread, &before)))
        runtime_ask_and_end(thread, status);
    if (thread == NULL)
        return;
    long copy = runtime_copy(thread);
    target_leave(thread);
    restore_signals(&before);
    if (copy > 0)
        runtime_await(copy);
}

static void at_exit(void *unused, int status)
{
    (void)unused;
    end_recording(BY_HANDLER, status);
}

static void at_quick_exit(void *unused)
{
    (void)unused;
    end_recording(BY_QUICK_HANDLER, 0);
}

/*
 * The loader runs the constructor that calls this before the program starts. Only then does the
 * C library register what runs all destructors of modules, so `at_exit` comes after these, after
 * the program's handlers, and after the destructors of thread-local and static objects.
 */
void end_register(void)
{
    last_register(at_exit);
    libc_at_quick_exit(at_quick_exit, NULL);
}

EXPORT void _exit(int status)
{
    end_recording(BY_CALL, status);
    runtime_end(status);
}

EXPORT void _Exit(int status)
{
    _exit(status);
}
