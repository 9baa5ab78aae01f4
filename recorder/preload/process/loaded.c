/* SPDX-License-Identifier: MIT */
/* Attaches a process whose loader has loaded this library: by its environment. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "preload/end/exit_end.h"
#include "preload/end/fatal_signal.h"
#include "preload/system/real.h"
#include "preload/system/replaced.h"
#include "preload/system/sys.h"
#include "preload/threads/levels.h"
#include "preload/process/process_begin.h"

/* NAME=VALUE, for the processes that this one starts. */
static char preload_variable[4200];
static char channel_variable[96];

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
static const char *loaded_environment_from_kernel(const char *name, char *buffer, size_t size)
{
    size_t count = 0, length = strlen(name);
    long file =
        sys_call6(SYS_openat, AT_FDCWD, (long)"/proc/self/environ", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file < 0)
        return NULL;
    /* One variable after the other; one that is longer than the buffer is not ours. */
    char c;
    const char *value = NULL;
    while (!value && sys_call3(SYS_read, file, (long)&c, 1) == 1) {
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

static void loaded_remember_environment(const char *channel_path, const char *preload)
{
    static const char channel_name[] = CHANNEL_ENV "=", preload_name[] = "LD_PRELOAD=";
    if (strlen(channel_path) + sizeof channel_name > sizeof channel_variable)
        return;
    strcat(strcpy(channel_variable, channel_name), channel_path);
    /* Only this library, the first one: the program may drop the others. */
    size_t size = preload ? strcspn(preload, ": ") : 0;
    if (size != 0 && size + sizeof preload_name <= sizeof preload_variable)
        strncat(strcpy(preload_variable, preload_name), preload, size);
}

/* Whether valgrind runs the process: it would report this library's accesses. Instructions without
 * an effect ask that, where nobody answers the result is 0. */
static bool loaded_is_in_valgrind(void)
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

bool process_attach(void)
{
    static char kernel_channel[96], kernel_preload[4200];
    bool early = !environ;
    const char *path =
        early ? loaded_environment_from_kernel(CHANNEL_ENV, kernel_channel, sizeof kernel_channel)
              : getenv(CHANNEL_ENV);
    if (!path || !channel_attach(path))
        return false;
    if (loaded_is_in_valgrind()) {
        atomic_fetch_add(&target_channel->refused, 1);
        return false;
    }
    if (!process_map_on_page())
        return false;
    arguments_find();
    loaded_remember_environment(
        channel_place(),
        early ? loaded_environment_from_kernel("LD_PRELOAD", kernel_preload, sizeof kernel_preload)
              : getenv("LD_PRELOAD"));
    return process_begin(CHANNEL_NONE, 0, 0);
}

/* Leads the calls of functions that allocate or release and that the program has of its own to the
 * hooks, unless they reach the C library, where they are seen. */
static void loaded_note_replaced(void)
{
    if (replaced_any && runtime_tries_functions())
        process_note(NOTE_FORWARDS | NOTE_TRIED);
    else if (replaced_any)
        process_note(replaced_patch() ? NOTE_PATCHED : NOTE_FOREIGN_MALLOC);
    if (patch_within())
        process_note(NOTE_PATCHED | NOTE_PATCHED_WITHIN);
    process_note(NOTE_STARTED);
}

/* Attaches at the start, so that a program that never allocates is recorded as well. */
__attribute__((constructor)) static void loaded_start(void)
{
    struct thread *thread = real_ready() ? target_enter(0) : NULL;
    if (thread)
        target_phase(thread, PHASE_RECORD);
    real_find_later();
    if (!thread)
        return;
    real_redirect();
    loaded_note_replaced();
    /* Makes a fork wipe the page where the system that the program sees does not: qemu says that it
     * will, and does not. */
    if (channel_process(&target_view, process_index())->flags & PROCESS_GUEST)
        pthread_atfork(NULL, NULL, process_forget);
    end_register();
    fatal_watch();
    entries_redirect();
    target_leave(thread);
}
