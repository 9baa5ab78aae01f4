/* SPDX-License-Identifier: MIT */
/*
 * Hooks of functions that do not allocate, in a library that is attached to a running process. The
 * last argument of each is the function behind it, added by the gate (attached.h).
 */
#undef _dl_find_object /* that of the loader */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/hooks/executing.h"
#include "preload/attached/attached_parts.h"
#include "preload/channel/target.h"
#include "preload/threads/recorded_thread.h"
#include "preload/end/exit_end.h"
#include "preload/system/sys.h"
#include "preload/threads/island.h"
#include "preload/threads/levels.h"

/* Asks for a snapshot at the end of the process, in _exit(): exit() calls that last. */

/* Asks for a snapshot before the process ends. */
static void attached_end(void)
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

/* Unwinders find the frames of hooks by it: exceptions pass them. */
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

/* The child of a vfork shares the depth with its parent and does not come back. Every function of
 * the C library that executes a program gets here. */
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

/* Hooks of the functions that a program confines itself with to some system calls. */

PATCHED_IN(ATTACHED_IN_LIBC, int, prctl, 5,
           (int option, long a, long b, long c, long d,
            int (*real_prctl)(int, long, long, long, long)))
{
    attached_depth++;
    if (option == PR_SET_SECCOMP)
        process_confine();
    int result = real_prctl(option, a, b, c, d);
    attached_depth--;
    return result;
}

__attribute__((used)) static void attached_confining(long number, long option)
{
    if (number == SYS_seccomp || option == PR_SET_SECCOMP)
        process_confine();
}

__attribute__((used)) static void attached_executing(void)
{
    process_executes(true);
}

__attribute__((used)) static void attached_ending(void)
{
    attached_end();
}

/*
 * syscall(): libseccomp confines through it. In assembly, and without a frame where it goes on,
 * because the call may return twice, or never: the trampoline is in r11 here. A failed attempt to
 * execute a program leaves a note that it was executed.
 */
extern const unsigned char patched_syscall[] __attribute__((visibility("hidden")));
PATCHED_ROW(ATTACHED_IN_LIBC, 0, syscall, ATTACHED_IN_R11)

#define PUSH(name) "    pushq %" name "\n    .cfi_adjust_cfa_offset 8\n"
#define POP(name)  "    popq %" name "\n    .cfi_adjust_cfa_offset -8\n"

__asm__(".pushsection .text\n"
        ".globl patched_syscall\n"
        ".hidden patched_syscall\n"
        ".type patched_syscall, @function\n"
        "patched_syscall:\n"
        "    .cfi_startproc\n"
        "    leaq attached_confining(%rip), %r10\n"
        "    cmpq $157, %rdi\n" /* SYS_prctl */
        "    je 2f\n"
        "    cmpq $317, %rdi\n" /* SYS_seccomp */
        "    je 2f\n"
        "    leaq attached_executing(%rip), %r10\n"
        "    cmpq $59, %rdi\n" /* SYS_execve */
        "    je 2f\n"
        "    cmpq $322, %rdi\n" /* SYS_execveat */
        "    je 2f\n"
        "    leaq attached_ending(%rip), %r10\n"
        "    cmpq $231, %rdi\n" /* SYS_exit_group */
        "    je 2f\n"
        "1:  jmp *%r11\n"
        "2:\n" PUSH("rdi") PUSH("rsi") PUSH("rdx") PUSH("rcx") PUSH("r8") PUSH("r9")
            PUSH("r11") "    call *%r10\n" POP("r11") POP("r9") POP("r8") POP("rcx") POP("rdx")
                POP("rsi") POP("rdi") "    jmp 1b\n"
                                      "    .cfi_endproc\n"
                                      ".size patched_syscall, . - patched_syscall\n"
                                      ".popsection\n");
_Static_assert(SYS_prctl == 157 && SYS_seccomp == 317 && SYS_execve == 59 && SYS_execveat == 322 &&
                   SYS_exit_group == 231,
               "as in patched_syscall above");
