/* SPDX-License-Identifier: MIT */
/*
 * Code that the collector makes a held thread execute: one system call, after which the thread is
 * again where it was, with all its registers. The collector puts them back itself; that this code
 * would do so as well lets the program go on even if the collector dies meanwhile.
 */
#include "borrowed.h"

#include <stdalign.h>

/* Room for a signal handler, which runs here only if the collector has died. */
enum { STACK_SIZE = 64 * 1024 };

static alignas(64) unsigned char stack[STACK_SIZE];

extern const unsigned char borrowed_copy[], borrowed_call[];

/* The stack has a struct borrowed_frame. A copy of the process never returns. */
__asm__(".pushsection .text.borrowed, \"ax\", @progbits\n"
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
        "2:  popq %rax\n"
        "    popq %rdi\n"
        "    popq %rsi\n"
        "    popq %rdx\n"
        "    popq %r10\n"
        "    popq %r8\n"
        "    popq %rcx\n"
        "    popq %r11\n"
        "    iretq\n"
        ".popsection\n");

void borrowed_publish(struct borrowed_code *code)
{
    code->copy = (uintptr_t)borrowed_copy;
    code->call = (uintptr_t)borrowed_call;
    code->stack_begin = (uintptr_t)stack;
    code->stack_end = (uintptr_t)stack + sizeof stack;
}
