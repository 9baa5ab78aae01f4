/* SPDX-License-Identifier: MIT */
/* Allocates on stacks that are 8 bytes off, as hand-written coroutines have them: in the first
 * thread and in another one, at many depths, from a signal handler. Compiled without vector
 * registers, as such a program is that survives it. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { STACK_SIZE = 1 << 20, DEPTH = 200 };

/* Calls a function on the stack that ends at `top`. */
void call_on(void (*function)(void), void *top);
__asm__(".text\n"
        ".globl call_on\n"
        ".type call_on, @function\n"
        "call_on:\n"
        "    .cfi_startproc\n"
        "    pushq %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset rbp, -16\n"
        "    movq %rsp, %rbp\n"
        "    .cfi_def_cfa_register rbp\n"
        "    movq %rsi, %rsp\n"
        "    call *%rdi\n"
        "    movq %rbp, %rsp\n"
        "    popq %rbp\n"
        "    .cfi_def_cfa rsp, 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size call_on, . - call_on\n");

__attribute__((noinline)) static void descend(int levels)
{
    if (levels > 0)
        descend(levels - 1);
    else
        free(malloc(33));
    __asm__ volatile("" ::: "memory");
}

static void work(void)
{
    void *volatile block = calloc(1, 20);
    block = realloc(block, 300);
    free(block);
    free(aligned_alloc(64, 64));
    free(memalign(64, 64));
    for (int depth = 1; depth < DEPTH; depth++)
        descend(depth);
}

static void handle(int number)
{
    (void)number;
    work();
}

static void work_and_raise(void)
{
    work();
    raise(SIGUSR1);
}

static void *misaligned(void *unused)
{
    free(malloc(1)); /* the C library begins an arena with vector registers */
    char *stack =
        mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    call_on(work_and_raise, stack + STACK_SIZE - 64 - sizeof(uintptr_t));
    return unused;
}

int main(void)
{
    pthread_t thread;
    signal(SIGUSR1, handle);
    misaligned(NULL);
    return pthread_create(&thread, NULL, misaligned, NULL) != 0 || pthread_join(thread, NULL) != 0;
}
