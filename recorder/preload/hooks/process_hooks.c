/* SPDX-License-Identifier: MIT */
/*
 * Hooks of the functions that act on the process. First those that execute a program: it is
 * recorded too, whatever environment it gets.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/hooks/executing.h"
#include "preload/hooks/hooks.h"
#include "preload/process/program.h"
#include "preload/system/sys.h"

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
EXPORT HOOK_CODE int dlclose(void *handle)
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
 * Notes a call and jumps to dlmopen: that must not be wrapped. Modules of another namespace have a
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

/*
 * The program break. The C library's allocator moves it by a name of its own, so calls of these
 * functions are the program's: it has memory there that looks like the allocator's.
 */

REAL(__typeof__(sbrk), sbrk, NULL)
REAL(__typeof__(brk), brk, NULL)

EXPORT void *sbrk(intptr_t increment)
{
    if (increment != 0)
        process_note(NOTE_BREAK);
    return find_sbrk()(increment);
}

EXPORT int brk(void *address)
{
    process_note(NOTE_BREAK);
    return find_brk()(address);
}

/* Names that the program gives its threads, as soon as it does: some live for less time than the
 * collector needs to look at them. See prctl() as well. */

typedef int setname_function(pthread_t, const char *);

REAL(setname_function, pthread_setname_np, NULL)

EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
    int result = find_pthread_setname_np()(thread, name);
    if (result == 0)
        thread_rename((uint64_t)thread, name);
    return result;
}

/*
 * Hooks of the functions that execute a shell with the environment as it is. Where no path leads to
 * the channel any more, that names the descriptor that this process got it by; the shell is given
 * one of the same number, or counted.
 */

typedef int system_function(const char *);
typedef FILE *popen_function(const char *, const char *);

REAL(system_function, system, system)
REAL(popen_function, popen, popen)

/* Returns a descriptor for a shell that cannot reach the channel by itself; -1 if it needs none. */
static int process_shell_lend(void)
{
    if (!process_preload() || process_is_confined || channel_is_reachable())
        return -1;
    const char *value = getenv(CHANNEL_ENV);
    const char *text = value ? strchr(value, '=') : NULL;
    int number = text ? atoi(text + 1) : -1; /* of the descriptor in the environment */
    int lent = number >= 0 ? channel_lend() : -1;
    if (lent >= 0 && lent != number) {
        long moved = sys_call3(SYS_fcntl, lent, F_DUPFD, number);
        sys_call3(SYS_close, lent, 0, 0);
        lent = (int)moved;
    }
    if (lent >= 0 && lent != number) /* the program uses that number */
        sys_call3(SYS_close, lent, 0, 0);
    if (lent >= 0 && lent == number)
        return lent;
    program_count(PROGRAM_CUT_OFF, 1);
    return -1;
}

EXPORT int system(const char *command)
{
    int lent = command ? process_shell_lend() : -1;
    int result = find_system()(command);
    if (lent >= 0)
        sys_call3(SYS_close, lent, 0, 0);
    return result;
}

EXPORT HOOK_CODE FILE *popen(const char *command, const char *type)
{
    int lent = process_shell_lend();
    FILE *result = find_popen()(command, type);
    if (lent >= 0)
        sys_call3(SYS_close, lent, 0, 0);
    return result;
}
