/* SPDX-License-Identifier: MIT */
/* Pointers in suspended stacks and saved registers: setjmp(), coroutines, signal handlers. */
#include <setjmp.h>
#include <signal.h>
#include <sys/ucontext.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"

static jmp_buf buffer;

CASE(setjmp_plain)
{
    hide_block();
    clear_stack();
    __asm__ volatile("mov %0, %%r14\n\tnot %%r14\n\tmov %%rsp, %%rbx\n\tand $-16, %%rsp\n\t"
                     "lea %1, %%rdi\n\tcall _setjmp@PLT\n\tmov %%rbx, %%rsp\n\txor %%r14d, %%r14d"
                     :
                     : "m"(hidden), "m"(buffer)
                     : "rax", "rbx", "rcx", "rdx", "rdi", "rsi", "r8", "r9", "r10", "r11", "r14",
                       "memory");
}

/* The C library mangles the base pointer that it saves, so nobody finds it there. */
CASE(setjmp_mangled)
{
    hide_block();
    clear_stack();
    __asm__ volatile("mov %0, %%rax\n\tnot %%rax\n\tmov %%rsp, %%rbx\n\tmov %%rbp, %%r14\n\t"
                     "lea %1, %%rdi\n\tand $-16, %%rsp\n\tmov %%rax, %%rbp\n\txor %%eax, %%eax\n\t"
                     "call _setjmp@PLT\n\tmov %%r14, %%rbp\n\tmov %%rbx, %%rsp"
                     :
                     : "m"(hidden), "m"(buffer)
                     : "rax", "rbx", "rcx", "rdx", "rdi", "rsi", "r8", "r9", "r10", "r11", "r14",
                       "memory");
}

static ucontext_t outside, inside;

static void *NOINLINE hidden_block(void)
{
    hide_block();
    clear_stack();
    return (void *)~hidden;
}

static void coroutine(void)
{
    void *volatile held = hidden_block();

    swapcontext(&inside, &outside);
    kept[0] = held;
}

static void start_coroutine(void *stack, size_t size)
{
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = size;
    inside.uc_link = NULL;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
}

CASE(coroutine_suspended)
{
    start_coroutine(map(256 << 10), 256 << 10);
    memset(&inside, 0, sizeof inside);
}

CASE(coroutine_on_block)
{
    void *stack = block(240 << 10);

    start_coroutine(stack, 240 << 10);
    memset(&inside, 0, sizeof inside);
    kept[0] = stack;
}

static void coroutine_exit(void)
{
    memset(&outside, 0, sizeof outside);
    exit(0);
}

/* The stack of main is suspended, and holds the block. */
CASE(coroutine_exits)
{
    void *volatile held;

    getcontext(&inside);
    inside.uc_stack.ss_sp = map(256 << 10);
    inside.uc_stack.ss_size = 256 << 10;
    makecontext(&inside, coroutine_exit, 0);
    held = hidden_block();
    swapcontext(&outside, &inside);
    kept[0] = held;
}

static void handler(int number)
{
    (void)number;
    _exit(0);
}

static void NOINLINE raise_deep(void)
{
    void *volatile held = hidden_block();

    raise(SIGUSR1);
    kept[0] = held;
}

/* The frame that holds the block lies below the stack that the handler runs on. */
CASE(handler_on_local_array)
{
    char memory[64 << 10];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};

    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise_deep();
}

static void NOINLINE switch_deep(void)
{
    void *volatile held = hidden_block();

    swapcontext(&outside, &inside);
    kept[0] = held;
}

/* Likewise. */
CASE(coroutine_on_local_array)
{
    char memory[64 << 10];

    getcontext(&inside);
    inside.uc_stack.ss_sp = memory;
    inside.uc_stack.ss_size = sizeof memory;
    makecontext(&inside, coroutine_exit, 0);
    switch_deep();
}

/* The handler runs on a stack of its own while main's holds the block. */
CASE(handler_on_own_stack)
{
    stack_t stack = {.ss_sp = map(64 << 10), .ss_size = 64 << 10};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    void *volatile held;

    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    held = hidden_block();
    raise(SIGUSR1);
    kept[0] = held;
}
