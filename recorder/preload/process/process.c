/* SPDX-License-Identifier: MIT */
/* Attaches the process to the channel, and notices forks and the end of the process. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../end/end.h"
#include "../end/fatal.h"
#include "../system/real.h"
#include "../system/replaced.h"
#include "../system/sys.h"
#include "../threads/levels.h"
#include "../system/memory.h"
#include "../threads/island.h"

static struct on_page nothing_on;
struct on_page *target_on = &nothing_on;
bool target_fences;
bool process_is_copy, process_asks_itself;

enum { UNSTARTED, STARTING, RECORDING, OFF };
static _Atomic int mode;
static uint32_t slot_index;

/* NAME=VALUE, for the processes that this one starts. */
static char preload_variable[4200];
static char channel_variable[96];

uint32_t process_index(void)
{
    return slot_index;
}

bool process_is_own(void)
{
    return slot_index != CHANNEL_NONE && channel_process(&target_view, slot_index)->pid ==
                                             (uint32_t)sys_call3(SYS_getpid, 0, 0, 0);
}

const char *process_library(void)
{
    return preload_variable[0] ? strchr(preload_variable, '=') + 1 : NULL;
}

const char *process_preload(void)
{
    return preload_variable[0] ? preload_variable : NULL;
}

const char *process_channel(void)
{
    return channel_variable[0] ? channel_variable : NULL;
}

/* Finds a variable in the kernel's copy of the environment, before the C library has set `environ`.
 */
static const char *environment_from_kernel(const char *name, char *buffer, size_t size)
{
    size_t count = 0, length = strlen(name);
    long file =
        sys_call6(SYS_openat, AT_FDCWD, (long)"/proc/self/environ", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file < 0)
        return NULL;
    /* One variable after the other; one that is longer than the buffer is not ours. */
    char c;
    const char *value = NULL;
    while (value == NULL && sys_call3(SYS_read, file, (long)&c, 1) == 1) {
        if (count < size)
            buffer[count++] = c;
        if (c != '\0')
            continue;
        if (count > length && count < size && buffer[length] == '=' &&
            memcmp(buffer, name, length) == 0)
            value = buffer + length + 1;
        count = 0;
    }
    sys_call3(SYS_close, file, 0, 0);
    return value;
}

/* Whether process ids here are those of the collector. Looking that up in /proc is the slowest part
 * of attaching, so other evidence is used first. */
static bool same_pid_namespace(const struct channel *channel, uint32_t parent)
{
    struct stat status;
    if (parent == CHANNEL_NONE && channel_owner() == channel->collector_pid)
        return true;
    if (process_asks_itself)
        return true;
    if (process_is_copy &&
        channel_process(&target_view, parent)->pid == (uint32_t)sys_call3(SYS_getppid, 0, 0, 0))
        return true;
    return sys_call6(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/ns/pid", (long)&status, 0, 0, 0) ==
               0 &&
           status.st_ino == channel->pid_namespace;
}

/* Maps a page that a fork wipes. Without it a child would write into its parent's chunks. */
static struct on_page *map_on_page(void)
{
    struct on_page *page = unwind_pages_used(4096);
    if (page == NULL || sys_call3(SYS_madvise, (long)page, 4096, MADV_WIPEONFORK) != 0)
        return NULL;
    return page;
}

/* Returns the process id, or 0 if it is not known. A confined process that attaches is a new fork,
 * whose only thread has the id of the process. If the fork was not made by the C library, that
 * still has the parent's id. */
static uint32_t own_pid(uint32_t parent)
{
    if (!process_is_confined)
        return (uint32_t)sys_call3(SYS_getpid, 0, 0, 0);
    uint32_t id = thread_id();
    return id != channel_process(&target_view, parent)->pid ? id : 0;
}

/* Begins to record this process, new or forked. */
static bool begin_recording(uint32_t parent, uint64_t parent_sequence, uint64_t parent_steps)
{
    uint32_t pid = own_pid(parent);
    if (pid == 0 || atomic_load(&target_channel->stopped) ||
        ((target_channel->flags & CHANNEL_NO_CHILDREN) && pid != target_channel->launched_pid &&
         !process_is_copy))
        return false;
    if (process_is_confined || same_pid_namespace(target_channel, parent))
        slot_index = slot_claim(pid, parent, parent_sequence, parent_steps);
    else
        slot_index = CHANNEL_NONE;
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
    target_on->on = 1;
    return true;
}

static void remember_environment(const char *channel_path, const char *preload)
{
    static const char channel_name[] = CHANNEL_ENV "=", preload_name[] = "LD_PRELOAD=";
    if (strlen(channel_path) + sizeof channel_name > sizeof channel_variable)
        return;
    strcat(strcpy(channel_variable, channel_name), channel_path);
    /* Only this library, which comes first: the program may drop the others. */
    size_t size = preload != NULL ? strcspn(preload, ": ") : 0;
    if (size != 0 && size + sizeof preload_name <= sizeof preload_variable)
        strncat(strcpy(preload_variable, preload_name), preload, size);
}

/* Whether valgrind runs the process: it would report what this library does. Instructions without
 * an effect ask that, where nobody answers the result is 0. */
static bool is_in_valgrind(void)
{
    enum { RUNNING_ON_VALGRIND = 0x1001 };
    const volatile uint64_t question[6] = {RUNNING_ON_VALGRIND};
    uint64_t answer = 0;
    __asm__ volatile("rolq $3, %%rdi\n\t"
                     "rolq $13, %%rdi\n\t"
                     "rolq $61, %%rdi\n\t"
                     "rolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(&question[0])
                     : "cc", "memory");
    return answer != 0;
}

static bool attach(void)
{
    static char kernel_channel[96], kernel_preload[4200];
    bool early = environ == NULL;
    const char *path =
        early ? environment_from_kernel(CHANNEL_ENV, kernel_channel, sizeof kernel_channel)
              : getenv(CHANNEL_ENV);
    if (path == NULL || !channel_attach(path))
        return false;
    if (is_in_valgrind()) {
        atomic_fetch_add(&target_channel->refused, 1);
        return false;
    }
    struct on_page *page = map_on_page();
    if (page == NULL)
        return false;
    target_on = page;
    arguments_find();
    remember_environment(
        path, early ? environment_from_kernel("LD_PRELOAD", kernel_preload, sizeof kernel_preload)
                    : getenv("LD_PRELOAD"));
    return begin_recording(CHANNEL_NONE, 0, 0);
}

/* Attaches the child of a fork. The parent's thread is copied as it was in the fork, which tells
 * where in the parent's trace this process begins. */
static bool attach_forked(void)
{
    const struct thread *suspended = island_forget();
    const struct thread *parent = suspended != NULL ? suspended : target_self;
    uint64_t sequence = parent != NULL ? parent->sequence : 0;
    uint64_t steps = parent != NULL ? parent->steps : 0;
    if (parent != NULL)
        stack_bounds_inherit(&parent->stack);
    target_self = NULL;
    fatal_watch_child();
    return begin_recording(slot_index, sequence, steps);
}

static bool process_records(void)
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
    bool records = current_mode == UNSTARTED ? attach() : attach_forked();
    atomic_store(&mode, records ? RECORDING : OFF);
    return records;
}

struct thread *target_enter_slow(uintptr_t frame, uint64_t base)
{
    if (!process_records())
        return NULL;
    struct thread *thread = target_self; /* a fork's child has just lost its parent's */
    if (thread == NULL && island_suspended() != NULL) {
        thread = island_try_awake();
        if (thread == NULL)
            return NULL;
    }
    if (thread == NULL) {
        thread = thread_attach(frame);
        if (thread == NULL)
            atomic_fetch_add(&channel_process(&target_view, slot_index)->lost, 1);
        return thread;
    }
    return thread->guard == 0 ? thread : level_enter(thread, frame, base);
}

/* Needed even if nothing was released, and so nothing recorded. */
void process_told_all(void)
{
    if (process_records())
        atomic_fetch_or(&channel_process(&target_view, slot_index)->notes, NOTE_TOLD_ALL);
}

void process_note(uint32_t note)
{
    slot_keep_notes(note & (NOTES_UNRECORDED | NOTE_FORWARDS | NOTE_BREAK | NOTE_USABLE_SIZES));
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

/* Notes that the program has functions of its own that allocate or release. Their calls are seen
 * where they reach the C library. */
static void note_replaced(void)
{
    if (replaced_any)
        process_note(runtime_tries_functions() ? NOTE_FORWARDS : NOTE_FOREIGN_MALLOC);
}

void process_forget(void)
{
    memset(target_on, 0, sizeof *target_on);
}

/* Makes a fork wipe the page where the system that the program sees does not: qemu says that it
   will, and does not. */
static void wipe_in_forks_of_guest(void)
{
    if (channel_process(&target_view, slot_index)->flags & PROCESS_GUEST)
        pthread_atfork(NULL, NULL, process_forget);
}

/* Attaches at the start, so that a program that never allocates is recorded as well. */
__attribute__((constructor)) static void start(void)
{
    struct thread *thread = real_ready() ? target_enter(0) : NULL;
    if (thread != NULL)
        target_phase(thread, PHASE_RECORD);
    real_find_later();
    if (thread == NULL)
        return;
    real_redirect();
    note_replaced();
    wipe_in_forks_of_guest();
    end_register();
    fatal_watch();
    entries_redirect();
    target_leave(thread);
}
