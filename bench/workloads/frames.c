/* SPDX-License-Identifier: MIT */
/*
 * Allocates below frames that the unwinder steps from in a less common way. The argument selects
 * them: `realigned`, `registers` (the CFA is an offset of r12), `unknown` (a chain of frame
 * pointers without call frame information) or `elsewhere` (a signal stack).
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 2000, DEPTH = 8, STACK_SIZE = 1 << 16 };
#define NOINLINE __attribute__((noinline, noclone))

/* Calls function(depth); the CFA is rsp plus 16, known as r12 plus 16 only. */
void call_by_r12(void (*function)(int), int depth);
__asm__(".text\n"
        ".type call_by_r12, @function\n"
        "call_by_r12:\n"
        ".cfi_startproc\n"
        "push %r12\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %r12, 0\n"
        "mov %rsp, %r12\n"
        ".cfi_def_cfa_register %r12\n"
        "mov %rdi, %rax\n"
        "mov %esi, %edi\n"
        "sub $8, %rsp\n"
        "and $-16, %rsp\n"
        "call *%rax\n"
        "mov %r12, %rsp\n"
        ".cfi_def_cfa_register %rsp\n"
        "pop %r12\n"
        ".cfi_adjust_cfa_offset -8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size call_by_r12, .-call_by_r12\n");

/* Calls function(1) below `depth` frames that have a frame pointer and no call frame information.
 */
void call_unknown(void (*function)(int), int depth);
__asm__(".type call_unknown, @function\n"
        "call_unknown:\n"
        "push %rbp\n"
        "mov %rsp, %rbp\n"
        "dec %esi\n"
        "jle 1f\n"
        "call call_unknown\n"
        "pop %rbp\n"
        "ret\n"
        "1: mov $1, %esi\n"
        "xchg %rdi, %rsi\n"
        "call *%rsi\n"
        "pop %rbp\n"
        "ret\n"
        ".size call_unknown, .-call_unknown\n");

/* Call sites that alternate, at a depth that varies: the stack is never quite that of before. */
static NOINLINE void allocate(int depth)
{
    if (depth > 0) {
        allocate(depth - 1);
        free(malloc(24));
    } else {
        void *block = malloc(16);
        free(realloc(block, 32));
    }
    __asm__ volatile("");
}

static NOINLINE void allocate_realigned(int depth)
{
    char text[depth + 1];
    char block[64] __attribute__((aligned(64)));

    memset(text, 0, (size_t)depth + 1);
    __asm__ volatile("" : : "r"(block), "r"(text) : "memory");
    if (depth > 0)
        allocate_realigned(depth - 1);
    allocate(1);
    __asm__ volatile("" : : "r"(block) : "memory");
}

static NOINLINE void allocate_by_r12(int depth)
{
    call_by_r12(allocate, depth);
    __asm__ volatile("");
}

/* A chain of frame pointers that comes to known code. */
__attribute__((optimize("no-omit-frame-pointer"))) static NOINLINE void allocate_unknown(int depth)
{
    call_unknown(allocate, 8 * depth);
    __asm__ volatile("");
}

static void on_signal(int signal)
{
    (void)signal;
    allocate(DEPTH);
}

static void allocate_elsewhere(int depth)
{
    (void)depth;
    raise(SIGUSR1);
}

static void use_signal_stack(void)
{
    static char stack[STACK_SIZE];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaltstack(&alternate, NULL);
    sigaction(SIGUSR1, &action, NULL);
}

/* Calls function(DEPTH) from a stack pointer that depends on `shift`, so that no frame is as
 * before. */
static NOINLINE void call_shifted(void (*function)(int depth), size_t shift)
{
    char pad[shift];
    __asm__ volatile("" : : "r"(pad) : "memory");
    function(DEPTH);
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*function)(int depth);
    } kinds[] = {
        {"realigned", allocate_realigned},
        {"registers", allocate_by_r12},
        {"unknown", allocate_unknown},
        {"elsewhere", allocate_elsewhere},
    };
    use_signal_stack();
    free(malloc(16)); /* the thread is met on its own stack */
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (argc < 2 || strcmp(argv[1], kinds[i].name) != 0)
            continue;
        for (int round = 0; round < ROUNDS; round++)
            call_shifted(kinds[i].function, 16 + 32 * ((size_t)round % 2));
        return 0;
    }
    return 2;
}
