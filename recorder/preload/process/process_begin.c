/* SPDX-License-Identifier: MIT */
/* The process records, or does not: attaches it once, and again in the child of a fork. */
#include "preload/process/process_begin.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "preload/channel/target.h"
#include "preload/end/fatal_signal.h"
#include "preload/system/own_memory.h"
#include "preload/system/sys.h"
#include "preload/threads/chosen.h"
#include "preload/threads/levels.h"
#include "preload/threads/island.h"
#include "preload/threads/stale_stack.h"

static struct on_page nothing_on;
struct on_page *target_on = &nothing_on;
bool target_fences;
bool process_is_elsewhere, process_is_copy, process_asks_itself;

enum { UNSTARTED, STARTING, RECORDING, OFF };
static _Atomic int mode;
static uint32_t slot_index;

uint32_t process_index(void)
{
    return slot_index;
}

bool process_is_own(void)
{
    return slot_index != CHANNEL_NONE && channel_process(&target_view, slot_index)->pid ==
                                             (uint32_t)sys_call3(SYS_getpid, 0, 0, 0);
}

/* Whether process ids here equal the collector's. Looking that up in /proc is the slowest part of
 * attaching, so other evidence is used first. */
static bool begin_same_pid_namespace(const struct channel *channel, uint32_t parent)
{
    struct stat status;
    if (parent == CHANNEL_NONE && channel_owner() == channel->collector_pid)
        return true;
    /* A parent that is in another namespace has no id here. */
    if (parent != CHANNEL_NONE && !process_is_elsewhere &&
        channel_process(&target_view, parent)->pid == (uint32_t)sys_call3(SYS_getppid, 0, 0, 0))
        return true;
    return sys_call6(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/ns/pid", (long)&status, 0, 0, 0) ==
               0 &&
           status.st_ino == channel->pid_namespace;
}

bool process_map_on_page(void)
{
    struct on_page *page = unwind_pages_used(4096);
    if (!page || sys_call3(SYS_madvise, (long)page, 4096, MADV_WIPEONFORK) != 0)
        return false;
    target_on = page;
    return true;
}

/* Returns the process id, or 0 if it is not known. A confined process that attaches is a new fork,
 * whose only thread has the id of the process. If the fork was not made by the C library, that
 * still has the parent's id. */
static uint32_t begin_own_pid(uint32_t parent)
{
    if (!process_is_confined)
        return (uint32_t)sys_call3(SYS_getpid, 0, 0, 0);
    uint32_t id = thread_id();
    return id != channel_process(&target_view, parent)->pid ? id : 0;
}

/* Whether a thread of a process that the recorder is being attached to runs this: it is held, and
 * cannot wait for the collector. */
static bool begin_is_held(uint32_t parent)
{
#ifdef TTD_ATTACHED
    return parent == CHANNEL_NONE;
#else
    (void)parent;
    return false;
#endif
}

/* Whether it is the process that the recording began with. */
static bool process_is_first(uint32_t pid, uint32_t parent)
{
    return begin_is_held(parent) || pid == target_channel->launched_pid;
}

bool process_begin(uint32_t parent, uint64_t parent_sequence, uint64_t parent_steps)
{
    uint32_t pid = begin_own_pid(parent);
    if (pid == 0 || atomic_load(&target_channel->stopped) ||
        ((target_channel->flags & CHANNEL_NO_CHILDREN) && !process_is_first(pid, parent) &&
         !process_is_copy))
        return false;
    if (!chosen_begin()) {
        atomic_fetch_add(&target_channel->refused, 1);
        return false;
    }
    if (!process_is_confined && !process_is_copy)
        process_is_elsewhere = !begin_same_pid_namespace(target_channel, parent);
    slot_index = slot_claim(pid, parent, parent_sequence, parent_steps);
    if (slot_index == CHANNEL_NONE) {
        atomic_fetch_add(&target_channel->refused, !process_is_copy);
        return false;
    }
    if (process_is_copy) { /* the collector looks at it when it has ended */
        modules_forget_log();
        unwind_stop();
        target_on->on = 1;
        return true;
    }
    target_fences = process_is_confined ||
                    sys_call3(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) != 0;
    modules_begin(channel_process(&target_view, slot_index)->sequence);
    collector_wake();
    if (process_is_elsewhere && !process_is_confined && !begin_is_held(parent))
        slot_await_seen(slot_index);
    target_on->on = 1;
    return true;
}

/* Attaches the child of a fork. The parent's thread is copied as it was in the fork, and it gives
 * the position in the parent's trace where this process begins. */
static bool begin_attach_forked(void)
{
    stale_forget_foreign();
    const struct thread *suspended = island_forget();
    const struct thread *parent = suspended ? suspended : target_self;
    uint64_t sequence = parent ? parent->sequence : 0;
    uint64_t steps = parent ? parent->steps : 0;
    if (parent)
        stack_bounds_inherit(&parent->stack);
    target_self = NULL;
    fatal_watch_child();
    return process_begin(slot_index, sequence, steps);
}

bool process_records(void)
{
    int current_mode = atomic_load(&mode);
    if (current_mode == RECORDING && target_on->on != 0)
        return true;
    if (current_mode == RECORDING && target_on->refused != 0)
        return false;
    if (current_mode == OFF || current_mode == STARTING ||
        !atomic_compare_exchange_strong(&mode, &current_mode, STARTING))
        return false;
    /* The page reads 0 in the child of a fork, or if the collector is gone. */
    bool records = current_mode == UNSTARTED ? process_attach() : begin_attach_forked();
    atomic_store(&mode, records ? RECORDING : OFF);
    return records;
}

/* Finds the level of a call, as target_enter_slow() does. */
static struct thread *process_begin_level(uintptr_t frame, uint64_t base)
{
    if (!process_records())
        return NULL;
    stale_forget();
    struct thread *thread = target_self; /* a fork's child has just lost its parent's */
    if (!thread && island_suspended()) {
        thread = island_try_awake(((const uintptr_t *)frame)[1]);
        if (!thread)
            return NULL;
    }
    if (!thread) {
        thread = thread_attach(frame);
        if (!thread)
            atomic_fetch_add(&channel_process(&target_view, slot_index)->lost, 1);
        return thread;
    }
    return thread->guard == 0 ? thread : level_enter(thread, frame, base);
}

struct thread *target_enter_slow(uintptr_t frame, uint64_t base)
{
    const struct thread *self = stale_self();
    /* An acquisition within a skipped call is a part of it. */
    if (base == 0 && self && self->phase == PHASE_SKIP && frame < self->guard)
        return NULL;
    struct thread *level = process_begin_level(frame, base);
    if (!level)
        chosen_forget(base);
    return level;
}

/* Needed even if nothing was released, and so nothing recorded. */
void process_told_all(void)
{
    if (process_records())
        atomic_fetch_or(&channel_process(&target_view, slot_index)->notes, NOTE_TOLD_ALL);
}

void process_note(uint32_t note)
{
    slot_keep_notes(note & (NOTES_UNRECORDED | NOTE_FORWARDS | NOTE_BREAK | NOTE_USABLE_SIZES |
                            NOTE_STARTED | NOTE_PATCHED_WITHIN | NOTE_TRIED));
    if (slot_index != CHANNEL_NONE)
        atomic_fetch_or(&channel_process(&target_view, slot_index)->notes, note);
}

void process_executes(bool begins)
{
    if (process_is_confined || !process_is_own())
        return;
    _Atomic uint32_t *notes = &channel_process(&target_view, slot_index)->notes;
    if (begins)
        fatal_await_death();
    if (begins)
        atomic_fetch_or(notes, NOTE_EXECUTES);
    else
        atomic_fetch_and(notes, ~(uint32_t)NOTE_EXECUTES);
}

void process_forget(void)
{
    memset(target_on, 0, sizeof *target_on);
}

/*
 * Programs that confine themselves to some system calls (hooks/confine.c). From then on any other
 * call may kill the process, so the recorder makes none: it maps memory beforehand and spins where
 * it would wait for the collector. Records that would need a system call are lost and counted.
 */

/* Memory for threads that start later, and for stacks that get deeper. Pages that are never touched
 * cost only addresses. */
enum { RESERVE_BYTES = 8 * 1024 * 1024 };

bool process_is_confined;

/* Ends system calls for good, even if the attempt to confine fails: its result is not seen. */
void process_confine(void)
{
    if (process_is_confined)
        return;
    if (target_channel)
        channel_map_ahead();
    fatal_unwatch();
    unwind_confine(RESERVE_BYTES);
    process_is_confined = true;
}
