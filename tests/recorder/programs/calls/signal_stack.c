/* SPDX-License-Identifier: MIT */
/*
 * Allocates in handlers of signals that run on a stack of 4,096 bytes, with a page behind it that
 * cannot be touched, while the registers of AVX-512 are in use: the system saves them there. Prints
 * how much of the stack was used at most. Exits with 77 where there are no such registers.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK = 4096, PAGE = 4096, PAINT = 0xa5, TIMES = 100 };

static void *volatile kept;

static void from_one_place(int number)
{
    (void)number;
    kept = malloc(100);
    free(kept);
}

static void from_another(int number)
{
    (void)number;
    kept = calloc(1, 3000);
    kept = realloc(kept, 5000);
    free(kept);
}

/* Raises a signal while the registers have values. */
__attribute__((noinline)) static void interrupt_vectors(int number)
{
    long result = SYS_kill;
    __asm__ volatile("vpternlogd $0xff, %%zmm1, %%zmm1, %%zmm1\n\t"
                     "vpternlogd $0xff, %%zmm31, %%zmm31, %%zmm31\n\t"
                     "kxnorw %%k1, %%k1, %%k1\n\t"
                     "syscall\n\t"
                     "vzeroupper"
                     : "+a"(result)
                     : "D"(getpid()), "S"(number)
                     : "rcx", "r11", "memory");
}

int main(void)
{
    if (!__builtin_cpu_supports("avx512f"))
        return 77;
    char *pages =
        mmap(NULL, PAGE + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages, PAGE, PROT_NONE) != 0)
        return 1;
    stack_t stack = {.ss_sp = pages + PAGE, .ss_size = STACK};
    if (sigaltstack(&stack, NULL) != 0)
        return 77; /* the system saves more than that */
    memset(stack.ss_sp, PAINT, STACK);
    struct sigaction action = {.sa_handler = from_one_place, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = from_another;
    sigaction(SIGUSR2, &action, NULL);
    kept = malloc(10); /* the C library sets itself up */
    free(kept);
    for (int i = 0; i < TIMES; i++) {
        interrupt_vectors(SIGUSR1);
        interrupt_vectors(SIGUSR2);
    }
    size_t unused = 0;
    while (unused < STACK && (unsigned char)pages[PAGE + unused] == PAINT)
        unused++;
    printf("%zu\n", STACK - unused);
    return 0;
}
