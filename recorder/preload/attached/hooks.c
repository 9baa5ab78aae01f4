/* SPDX-License-Identifier: MIT */
/*
 * Hooks of functions that do not allocate, in a library that is attached to a process which runs.
 * The last argument of each is the function behind it, which the gate has added (attached.h).
 */
#undef _dl_find_object /* that of the loader */
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "preload/hooks/executing.h"
#include "preload/attached/attached_parts.h"

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
    if (thread) {
        target_phase(thread, PHASE_RECORD);
        modules_closed();
        target_leave(thread);
    }
    attached_depth--;
    return result;
}

/* The child of a vfork, which shares the depth with its parent, does not come back. Every function
 * of the C library that executes a program gets here. */
#define EXECUTES(name, count, directory, file, parameters, arguments)                              \
    PATCHED_IN(ATTACHED_IN_LIBC, int, name, count, parameters)                                     \
    {                                                                                              \
        bool is_own = process_is_own();                                                            \
        attached_depth += is_own;                                                                  \
        enum program_kind kind = program_kind(directory, file);                                    \
        int lent = executing_lend(&kind);                                                          \
        ENVIRONMENT(envp, kind, lent);                                                             \
        executing_begins(kind);                                                                    \
        int result = real_##name arguments;                                                        \
        executing_failed(kind);                                                                    \
        executing_take_back(lent);                                                                 \
        attached_depth -= is_own;                                                                  \
        return result;                                                                             \
    }

EXECUTES(execve, 3, AT_FDCWD, path,
         (const char *path, char *const argv[], char *const envp[],
          int (*real_execve)(const char *, char *const[], char *const[])),
         (path, argv, envp))
EXECUTES(fexecve, 3, file, "",
         (int file, char *const argv[], char *const envp[],
          int (*real_fexecve)(int, char *const[], char *const[])),
         (file, argv, envp))
EXECUTES(execveat, 5, directory, path,
         (int directory, const char *path, char *const argv[], char *const envp[], int flags,
          int (*real_execveat)(int, const char *, char *const[], char *const[], int)),
         (directory, path, argv, envp, flags))

PATCHED_IN(ATTACHED_IN_LIBC, void, _exit, 1, (int status, void (*real__exit)(int)))
{
    attached_end();
    real__exit(status);
}
