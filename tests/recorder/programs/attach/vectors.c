/* SPDX-License-Identifier: MIT */
/* Keeps values in vector registers, and looks all the time whether they are still there. Ends with
 * 0 on SIGTERM, and with 1 once one has changed. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>

static volatile sig_atomic_t is_over;

static void end(int number)
{
    is_over = number;
}

int main(void)
{
    static const uint64_t values[2] = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)};
    unsigned mask = 0xffff;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    signal(SIGTERM, end);
    printf("ready\n");
    fflush(stdout);
    while (!is_over && mask == 0xffff)
        __asm__ volatile("movdqu %1, %%xmm0\n\t"
                         "movdqa %%xmm0, %%xmm1\n\t"
                         "movdqa %%xmm0, %%xmm2\n\t"
                         "movdqa %%xmm0, %%xmm3\n\t"
                         "movl $100000, %%ecx\n"
                         "1:\tpcmpeqb %%xmm0, %%xmm1\n\t"
                         "pcmpeqb %%xmm0, %%xmm2\n\t"
                         "pcmpeqb %%xmm0, %%xmm3\n\t"
                         "pand %%xmm2, %%xmm1\n\t"
                         "pand %%xmm3, %%xmm1\n\t"
                         "pmovmskb %%xmm1, %0\n\t"
                         "movdqa %%xmm0, %%xmm1\n\t"
                         "movdqa %%xmm0, %%xmm2\n\t"
                         "movdqa %%xmm0, %%xmm3\n\t"
                         "cmpl $0xffff, %0\n\t"
                         "jne 2f\n\t"
                         "decl %%ecx\n\t"
                         "jnz 1b\n\t"
                         "movdqu %1, %%xmm1\n\t"
                         "pcmpeqb %%xmm0, %%xmm1\n\t"
                         "pmovmskb %%xmm1, %0\n"
                         "2:"
                         : "=&r"(mask)
                         : "m"(values)
                         : "ecx", "xmm0", "xmm1", "xmm2", "xmm3", "cc", "memory");
    return mask != 0xffff;
}
