/* SPDX-License-Identifier: MIT */
/* Prints how much of the stack allocation functions need, in bytes, the first time and when they
 * have been called before: a line for each of a few ways to call them, in a thread that paints its
 * stack before each call. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAINTED = 32 * 1024, PAINT = 0xa5, REPEATS = 20 };

static char report[4096];

/* So many bytes below the caller's frame were written to by `function`. */
__attribute__((noinline)) static size_t depth_of(void (*function)(void))
{
    volatile char *top;
    __asm__ volatile("movq %%rsp, %0" : "=r"(top));
    volatile char *least = top - PAINTED;
    for (volatile char *byte = least; byte < top; byte++)
        *byte = (char)PAINT;
    function();
    while (least < top && *least == (char)PAINT)
        least++;
    return (size_t)(top - least);
}

static void tell(const char *what, void (*function)(void))
{
    size_t first = depth_of(function), again = 0;
    for (int i = 0; i < REPEATS; i++)
        again = depth_of(function);
    size_t used = strlen(report);
    snprintf(report + used, sizeof report - used, "%s: %zu, then %zu\n", what, first, again);
}

static void *volatile kept;

static void allocate(void)
{
    kept = malloc(100);
    free(kept);
}

static void reallocate(void)
{
    kept = realloc(calloc(1, 10), 200);
    free(kept);
}

static void align(void)
{
    void *block;
    if (posix_memalign(&block, 64, 100) == 0)
        free(block);
}

/* From so far down that the frames have to be looked at, and remembered, in more than one step. */
__attribute__((noinline)) static void descend(int levels)
{
    if (levels > 0)
        descend(levels - 1);
    else
        allocate();
    __asm__ volatile("" ::: "memory");
}

static void deep(void)
{
    descend(80);
}

/* From a frame that says where its caller's registers are by an expression, and from one whose
 * caller is found by way of another register. */
void call_by_expression(void (*function)(void));
void call_by_register(void (*function)(void));
__asm__(".text\n"
        ".globl call_by_expression\n"
        "call_by_expression:\n"
        "    .cfi_startproc\n"
        "    subq $24, %rsp\n"
        "    .cfi_escape 0x0f, 0x03, 0x77, 0x20, 0x96\n" /* CFA: rsp + 32, and a nop */
        "    call *%rdi\n"
        "    addq $24, %rsp\n"
        "    .cfi_def_cfa rsp, 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".globl call_by_register\n"
        "call_by_register:\n"
        "    .cfi_startproc\n"
        "    pushq %r12\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset r12, -16\n"
        "    leaq 16(%rsp), %r12\n"
        "    .cfi_def_cfa r12, 0\n"
        "    call *%rdi\n"
        "    popq %r12\n"
        "    .cfi_def_cfa rsp, 8\n"
        "    ret\n"
        "    .cfi_endproc\n");

static void by_expression(void)
{
    call_by_expression(allocate);
}

static void by_register(void)
{
    call_by_register(allocate);
}

static void handle(int number)
{
    (void)number;
    tell("handler", allocate);
}

static void *work(void *unused)
{
    tell("malloc", allocate);
    tell("realloc", reallocate);
    tell("posix_memalign", align);
    tell("deep", deep);
    tell("expression", by_expression);
    tell("register", by_register);
    raise(SIGUSR1);
    return unused;
}

int main(void)
{
    pthread_t thread;
    stack_t own = {.ss_size = 2 * PAINTED};
    struct sigaction action = {.sa_handler = handle};
    own.ss_sp = mmap(NULL, own.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&own, NULL);
    sigaction(SIGUSR1, &action, NULL);
    if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    fputs(report, stdout);
    return 0;
}
