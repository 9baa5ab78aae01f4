/* SPDX-License-Identifier: MIT */
/* Hooks of the functions by which a program confines itself to some system calls. */
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "preload/channel/target.h"
#include "preload/threads/recorded_thread.h"
#include "preload/attached/attached_parts.h"

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
 * syscall(), through which libseccomp confines. In assembly, and without a frame where it goes on,
 * because the call may return twice, or never: the trampoline is in r11 here. A failed attempt to
 * execute a program leaves a note that it was executed.
 */
extern const unsigned char patched_syscall[] __attribute__((visibility("hidden")));
PATCHED_ROW(ATTACHED_IN_LIBC, syscall, ATTACHED_IN_R11)

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
