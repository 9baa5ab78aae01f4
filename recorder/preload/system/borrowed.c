/* SPDX-License-Identifier: MIT */
/*
 * Code that the collector makes a held thread execute: one system call; after it the thread is
 * again where it was, with all its registers. The collector puts them back itself; that this code
 * would do so as well lets the program go on even if the collector dies meanwhile.
 */
#include "preload/system/borrowed.h"

#include <signal.h>
#include <stdalign.h>
#include <sys/syscall.h>

alignas(64) unsigned char borrowed_stack[BORROWED_STACK_SIZE];

/* The stack has a struct borrowed_frame. A copy of the process never returns. */
__asm__(".pushsection .text.borrowed, \"ax\", @progbits\n"
        ".globl borrowed_copy, borrowed_call\n"
        ".hidden borrowed_copy, borrowed_call\n"
        "borrowed_copy:\n"
        "    syscall\n"
        "    testq %rax, %rax\n"
        "    jnz 2f\n"
        "1:  movl $231, %eax\n" /* exit_group */
        "    xorl %edi, %edi\n"
        "    syscall\n"
        "    jmp 1b\n"
        "borrowed_call:\n"
        "    syscall\n"
        "2:  movl $14, %eax\n" /* SYS_rt_sigprocmask */
        "    movl $2, %edi\n"  /* SIG_SETMASK */
        "    movq %rsp, %rsi\n"
        "    xorl %edx, %edx\n"
        "    movl $8, %r10d\n"
        "    syscall\n"
        "    popq %rax\n"
        "    popq %rax\n"
        "    popq %rdi\n"
        "    popq %rsi\n"
        "    popq %rdx\n"
        "    popq %r10\n"
        "    popq %r8\n"
        "    popq %r9\n"
        "    popq %rcx\n"
        "    popq %r11\n"
        "    iretq\n"
        ".popsection\n");
_Static_assert(SYS_rt_sigprocmask == 14 && SIG_SETMASK == 2, "as in borrowed_call above");

void borrowed_publish(struct borrowed_code *code)
{
    *code = (struct borrowed_code)BORROWED_CODE;
}
