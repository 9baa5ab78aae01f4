/* SPDX-License-Identifier: MIT */
/* Asks for a snapshot at the end of the process, in _exit(), which exit() calls last. */
#include <signal.h>

#include "preload/end/exit_end.h"
#include "preload/system/sys.h"
#include "preload/threads/island.h"
#include "preload/threads/levels.h"
#include "preload/attached/attached_parts.h"

void attached_end(void)
{
    unsigned long all = ~0UL, before = 0;
    /* The child of a vfork only ends itself. */
    if (target_on->on == 0 || process_is_confined || !process_is_own())
        return;
    stale_forget();
    island_awake();
    struct thread *thread = target_enter(0);
    if (!thread)
        return;
    target_phase(thread, PHASE_RECORD);
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof all, 0, 0);
    snapshot_ask(thread, before);
    target_leave(thread);
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0, 0);
}
