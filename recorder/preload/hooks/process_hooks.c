/* SPDX-License-Identifier: MIT */
/*
 * Hooks of the functions that execute a program: it is recorded too, whatever environment it gets.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/hooks/executing.h"

typedef int exec_function(const char *, char *const[], char *const[]);
typedef int fexecve_function(int, char *const[], char *const[]);
typedef int execveat_function(int, const char *, char *const[], char *const[], int);
typedef int dlclose_function(void *);
typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *,
                           const posix_spawnattr_t *, char *const[], char *const[]);

REAL(exec_function, execve, execve)
REAL(exec_function, execvpe, execvpe)
REAL(fexecve_function, fexecve, fexecve)
REAL(execveat_function, execveat, execveat)
REAL(spawn_function, posix_spawn, posix_spawn)
REAL(spawn_function, posix_spawnp, posix_spawnp)
REAL(dlclose_function, dlclose, dlclose)

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    enum program_kind kind = program_kind(AT_FDCWD, path);
    int lent = executing_lend(&kind);
    ENVIRONMENT(envp, kind, lent);
    executing_begins(kind);
    int result = find_execve()(path, argv, envp);
    executing_failed(kind);
    executing_take_back(lent);
    return result;
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    enum program_kind kind = program_kind_found(file);
    int lent = executing_lend(&kind);
    ENVIRONMENT(envp, kind, lent);
    executing_begins(kind);
    int result = find_execvpe()(file, argv, envp);
    executing_failed(kind);
    executing_take_back(lent);
    return result;
}

EXPORT int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

EXPORT int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

EXPORT int fexecve(int descriptor, char *const argv[], char *const envp[])
{
    enum program_kind kind = program_kind(descriptor, "");
    int lent = executing_lend(&kind);
    ENVIRONMENT(envp, kind, lent);
    executing_begins(kind);
    int result = find_fexecve()(descriptor, argv, envp);
    executing_failed(kind);
    executing_take_back(lent);
    return result;
}

EXPORT int execveat(int descriptor, const char *path, char *const argv[], char *const envp[],
                    int flags)
{
    enum program_kind kind = program_kind(descriptor, path);
    int lent = executing_lend(&kind);
    ENVIRONMENT(envp, kind, lent);
    executing_begins(kind);
    int result = find_execveat()(descriptor, path, argv, envp, flags);
    executing_failed(kind);
    executing_take_back(lent);
    return result;
}

/* Collects the arguments of the execl functions into `argv`; `list` then has the rest behind
 * them. */
#define COLLECT(argv, first, list)                                                                 \
    do {                                                                                           \
        size_t count_ = 1;                                                                         \
        va_start(list, first);                                                                     \
        while (va_arg(list, char *))                                                               \
            count_++;                                                                              \
        va_end(list);                                                                              \
        argv = alloca((count_ + 1) * sizeof *argv);                                                \
        memcpy(argv, &first, sizeof first);                                                        \
        va_start(list, first);                                                                     \
        for (size_t i_ = 1; (argv[i_] = va_arg(list, char *));)                                    \
            i_++;                                                                                  \
    } while (0)

EXPORT int execl(const char *path, const char *argument, ...)
{
    char **argv;
    va_list list;
    COLLECT(argv, argument, list);
    va_end(list);
    return execve(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *argument, ...)
{
    char **argv;
    va_list list;
    COLLECT(argv, argument, list);
    va_end(list);
    return execvpe(file, argv, environ);
}

EXPORT int execle(const char *path, const char *argument, ...)
{
    char **argv;
    va_list list;
    COLLECT(argv, argument, list);
    char *const *envp = va_arg(list, char *const *);
    va_end(list);
    return execve(path, argv, envp);
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    enum program_kind kind = program_kind(AT_FDCWD, path);
    int lent = executing_lend(&kind);
    ENVIRONMENT(envp, kind, lent);
    int result = find_posix_spawn()(pid, path, actions, attributes, argv, envp);
    program_count(kind, result == 0);
    executing_take_back(lent);
    return result;
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    enum program_kind kind = program_kind_found(file);
    int lent = executing_lend(&kind);
    ENVIRONMENT(envp, kind, lent);
    int result = find_posix_spawnp()(pid, file, actions, attributes, argv, envp);
    program_count(kind, result == 0);
    executing_take_back(lent);
    return result;
}

/* Has nothing to do with processes, but is the same kind of hook. dlopen must not be wrapped. */
EXPORT int dlclose(void *handle)
{
    int result = find_dlclose()(handle);
    struct thread *thread = target_enter(0);
    if (thread) {
        target_phase(thread, PHASE_RECORD);
        modules_closed();
        target_leave(thread);
    }
    return result;
}

/*
 * Notes a call and jumps to dlmopen, which must not be wrapped. Modules of another namespace have a
 * C library, and so a heap, of their own, whose calls are not recorded.
 */
void *real_dlmopen __attribute__((visibility("hidden")));
void *dlmopen_function(long namespace, const char *name, int mode) __asm__("dlmopen");
REAL_LATER(real_dlmopen, "dlmopen", dlmopen_function)

void note_namespace(long namespace) __attribute__((used, visibility("hidden")));

void note_namespace(long namespace)
{
    if (!real_dlmopen)
        real_dlmopen = dlsym(RTLD_NEXT, "dlmopen");
    if (namespace != LM_ID_BASE)
        process_note(NOTE_NAMESPACE);
}

__asm__(".text\n"
        ".globl dlmopen\n"
        ".type dlmopen, @function\n"
        "dlmopen:\n"
        ".cfi_startproc\n"
        "pushq %rdi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "pushq %rsi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "pushq %rdx\n"
        ".cfi_adjust_cfa_offset 8\n"
        "call note_namespace\n"
        "popq %rdx\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %rsi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %rdi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "jmp *real_dlmopen(%rip)\n"
        ".cfi_endproc\n"
        ".size dlmopen, .-dlmopen\n"
        ".previous\n");
