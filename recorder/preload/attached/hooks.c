/* SPDX-License-Identifier: MIT */
/*
 * Hooks of functions that do not allocate, in a library that is attached to a process which runs.
 * The last argument of each is the function behind it, which the gate has added (attached.h).
 */
#undef _dl_find_object /* that of the loader */
#include <dlfcn.h>
#include <unistd.h>

#include "../system/sys.h"
#include "attached.h"

/* Unwinders find the frames of hooks by it, which exceptions pass. */
PATCHED_IN(ATTACHED_IN_LOADER, int, _dl_find_object, 2,
           (void *address, struct dl_find_object *object,
            int (*behind)(void *, struct dl_find_object *)))
{
    HOOK_FRAME();
    if ((uintptr_t)address - attached.begin < attached.end - attached.begin)
        return attached_find_object(address, object);
    return behind(address, object);
}

PATCHED_IN(ATTACHED_IN_LIBC, int, dlclose, 1, (void *handle, int (*real_dlclose)(void *)))
{
    attached_depth++;
    int result = real_dlclose(handle);
    struct thread *thread = target_enter(0);
    if (thread != NULL) {
        target_phase(thread, PHASE_RECORD);
        modules_closed();
        target_leave(thread);
    }
    attached_depth--;
    return result;
}

/* Counts a child without a trace of its own that executes a program, which is not recorded. */
static void count_child(int count)
{
    if (!(target_channel->flags & CHANNEL_NO_CHILDREN))
        atomic_fetch_add(&target_channel->refused, (unsigned)count);
}

/* Images that are executed are not recorded, since the library that is loaded would have to be
 * found there. The child of a vfork, which shares the depth with its parent, does not come back. */
#define EXECUTES(name, count, parameters, arguments)                                               \
    PATCHED_IN(ATTACHED_IN_LIBC, int, name, count, parameters)                                     \
    {                                                                                              \
        if (!process_is_own()) {                                                                   \
            count_child(1);                                                                        \
            int failure = real_##name arguments;                                                   \
            count_child(-1);                                                                       \
            return failure;                                                                        \
        }                                                                                          \
        attached_depth++;                                                                          \
        process_executes(true);                                                                    \
        int result = real_##name arguments;                                                        \
        process_executes(false);                                                                   \
        attached_depth--;                                                                          \
        return result;                                                                             \
    }

EXECUTES(execve, 3,
         (const char *path, char *const argv[], char *const envp[],
          int (*real_execve)(const char *, char *const[], char *const[])),
         (path, argv, envp))
EXECUTES(fexecve, 3,
         (int file, char *const argv[], char *const envp[],
          int (*real_fexecve)(int, char *const[], char *const[])),
         (file, argv, envp))
EXECUTES(execveat, 5,
         (int directory, const char *path, char *const argv[], char *const envp[], int flags,
          int (*real_execveat)(int, const char *, char *const[], char *const[], int)),
         (directory, path, argv, envp, flags))

PATCHED_IN(ATTACHED_IN_LIBC, void, _exit, 1, (int status, void (*real__exit)(int)))
{
    attached_end();
    real__exit(status);
}
