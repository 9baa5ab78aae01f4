/* SPDX-License-Identifier: MIT */
/*
 * Hooks of the functions that execute a program: it is recorded too, whatever environment it gets.
 * The child of a vfork may run them, in its parent's memory: all new data is on the stack.
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

#include "../../sanitizer.h"
#include "../process/environment.h"
#include "hooks.h"
#include "../system/sys.h"

enum { VARIABLES_MAX = 1 << 16, PATH_SIZE = 4096 };

static bool read_at(int file, void *buffer, size_t size, uint64_t offset)
{
    return sys_call6(SYS_pread64, file, (long)buffer, (long)size, (long)offset, 0, 0) == (long)size;
}

/* Whether the file is a program that cannot run with this library, and is not recorded therefore.
 * An empty path means the file of the descriptor `directory`. */
static bool refuses_us(int directory, const char *path)
{
    char name[32];
    if (process_preload() == NULL || process_is_confined)
        return false;
    /* The loader would complain in a program that cannot see this library. */
    if (sys_call3(SYS_access, (long)process_library(), R_OK, 0) != 0) {
        atomic_fetch_add(&target_channel->refused, 1);
        return true;
    }
    bool is_open = *path == '\0';
    long file = is_open ? directory
                        : sys_call6(SYS_openat, directory, (long)path,
                                    O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
    if (file < 0)
        return false;
    bool refuses = sanitizer_needed((int)file, read_at, name);
    if (!is_open)
        sys_call3(SYS_close, file, 0, 0);
    if (refuses)
        atomic_fetch_add(&target_channel->refused, 1);
    return refuses;
}

/* Does what refuses_us() does, for a program that is searched for in PATH. */
static bool found_refuses_us(const char *name)
{
    char path[PATH_SIZE];
    const char *directories = getenv("PATH");
    size_t size = strlen(name);
    if (strchr(name, '/') != NULL)
        return refuses_us(AT_FDCWD, name);
    for (; directories != NULL; directories = *directories == ':' ? directories + 1 : NULL) {
        size_t length = strcspn(directories, ":");
        if (length + size + 2 <= sizeof path) {
            memcpy(path, directories, length);
            path[length] = '/';
            memcpy(path + length + (length != 0), name, size + 1);
            if (access(path, X_OK) == 0)
                return refuses_us(AT_FDCWD, path);
        }
        directories += length;
    }
    return false;
}

/* Replaces `environment` by one that lives as long as the function that this is expanded in. */
#define ENVIRONMENT(environment, refuses)                                                          \
    do {                                                                                           \
        size_t count_ = environment_count(environment);                                            \
        bool refuses_ = (refuses);                                                                 \
        bool changes_ = refuses_ ? environment != NULL : !environment_is_ours(environment);        \
        if (changes_ && count_ < VARIABLES_MAX) {                                                  \
            char **copy_ = alloca((count_ + 3) * sizeof *copy_);                                   \
            char *joined_ = alloca(environment_joined_size(environment));                          \
            if (refuses_)                                                                          \
                environment_strip(environment, copy_, joined_);                                    \
            else                                                                                   \
                environment_extend(environment, copy_, joined_);                                   \
            environment = copy_;                                                                   \
        }                                                                                          \
    } while (0)

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
    ENVIRONMENT(envp, refuses_us(AT_FDCWD, path));
    process_executes(true);
    int result = find_execve()(path, argv, envp);
    process_executes(false);
    return result;
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    ENVIRONMENT(envp, found_refuses_us(file));
    process_executes(true);
    int result = find_execvpe()(file, argv, envp);
    process_executes(false);
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
    ENVIRONMENT(envp, refuses_us(descriptor, ""));
    process_executes(true);
    int result = find_fexecve()(descriptor, argv, envp);
    process_executes(false);
    return result;
}

EXPORT int execveat(int descriptor, const char *path, char *const argv[], char *const envp[],
                    int flags)
{
    ENVIRONMENT(envp, refuses_us(descriptor, path));
    process_executes(true);
    int result = find_execveat()(descriptor, path, argv, envp, flags);
    process_executes(false);
    return result;
}

/* Collects the arguments of the execl functions into `argv`; `list` then has what follows them. */
#define COLLECT(argv, first, list)                                                                 \
    do {                                                                                           \
        size_t count_ = 1;                                                                         \
        va_start(list, first);                                                                     \
        while (va_arg(list, char *) != NULL)                                                       \
            count_++;                                                                              \
        va_end(list);                                                                              \
        argv = alloca((count_ + 1) * sizeof *argv);                                                \
        memcpy(argv, &first, sizeof first);                                                        \
        va_start(list, first);                                                                     \
        for (size_t i_ = 1; (argv[i_] = va_arg(list, char *)) != NULL;)                            \
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
    ENVIRONMENT(envp, refuses_us(AT_FDCWD, path));
    return find_posix_spawn()(pid, path, actions, attributes, argv, envp);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    ENVIRONMENT(envp, found_refuses_us(file));
    return find_posix_spawnp()(pid, file, actions, attributes, argv, envp);
}

/* Has nothing to do with processes, but is the same kind of hook. dlopen must not be wrapped. */
EXPORT int dlclose(void *handle)
{
    int result = find_dlclose()(handle);
    struct thread *thread = target_enter(0);
    if (thread != NULL) {
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
    if (real_dlmopen == NULL)
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
