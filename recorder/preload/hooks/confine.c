/* SPDX-License-Identifier: MIT */
/* Hooks of the functions that a program confines itself with to some system calls. */
#include <errno.h>
#include <linux/prctl.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "preload/channel/target.h"
#include "preload/system/sys.h"
#include "preload/threads/recorded_thread.h"

EXPORT int prctl(int option, ...)
{
    va_list list;
    long arguments[4];
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        arguments[i] = va_arg(list, long);
    va_end(list);
    if (option == PR_SET_SECCOMP)
        process_confine();
    long result =
        sys_call6(SYS_prctl, option, arguments[0], arguments[1], arguments[2], arguments[3], 0);
    if (option == PR_SET_NAME && result == 0)
        thread_rename(0, (const char *)arguments[0]);
    if (result >= 0 || result < -4095)
        return (int)result;
    errno = (int)-result;
    return -1;
}

/* Called by syscall(), below, for the system calls that confine. */
__attribute__((used)) static void confine_confining_call(long number, long option)
{
    if (number == SYS_seccomp || option == PR_SET_SECCOMP)
        process_confine();
}

__attribute__((used)) static long confine_failed_call(long result)
{
    errno = (int)-result;
    return -1;
}

/* Does the work of syscall() for a system call that executes a program: it returns only if it
 * fails. */
__attribute__((used)) static long confine_executing_call(long number, long a, long b, long c,
                                                         long d, long e)
{
    process_executes(true);
    long result = sys_call6(number, a, b, c, d, e, 0);
    process_executes(false);
    return confine_failed_call(result);
}

/* Does the work of syscall() for the system call that ends the process. */
__attribute__((used)) static long confine_ending_call(long number, long status)
{
    (void)number;
    _exit((int)status);
}

/*
 * syscall(): libseccomp confines through it. It is in assembly because the call may be a vfork:
 * that returns twice: there must be no frame of this library on the stack.
 */
__asm__(".pushsection .text\n"
        ".globl syscall\n"
        ".type syscall, @function\n"
        "syscall:\n"
        "    .cfi_startproc\n"
        "    cmpq $157, %rdi\n" /* SYS_prctl */
        "    je 2f\n"
        "    cmpq $317, %rdi\n" /* SYS_seccomp */
        "    je 2f\n"
        "    cmpq $59, %rdi\n" /* SYS_execve */
        "    je confine_executing_call\n"
        "    cmpq $322, %rdi\n" /* SYS_execveat */
        "    je confine_executing_call\n"
        "    cmpq $231, %rdi\n" /* SYS_exit_group */
        "    je confine_ending_call\n"
        "    cmpq $13, %rdi\n" /* SYS_rt_sigaction */
        "    je sigaction_call\n"
        "1:  movq %rdi, %rax\n"
        "    movq %rsi, %rdi\n"
        "    movq %rdx, %rsi\n"
        "    movq %rcx, %rdx\n"
        "    movq %r8, %r10\n"
        "    movq %r9, %r8\n"
        "    movq 8(%rsp), %r9\n"
        "    syscall\n"
        "    cmpq $-4095, %rax\n"
        "    jae 3f\n"
        "    ret\n"
        "2:  pushq %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rdx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rcx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %r8\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %r9\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    subq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    call confine_confining_call\n"
        "    addq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %r9\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %r8\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rcx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rdx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    jmp 1b\n"
        "3:  movq %rax, %rdi\n"
        "    jmp confine_failed_call\n"
        "    .cfi_endproc\n"
        ".size syscall, . - syscall\n"
        ".popsection\n");
_Static_assert(SYS_prctl == 157 && SYS_seccomp == 317 && SYS_execve == 59 && SYS_execveat == 322 &&
                   SYS_exit_group == 231 && SYS_rt_sigaction == 13,
               "as in syscall() above");
