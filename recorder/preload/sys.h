/* SPDX-License-Identifier: MIT */
/* System calls without the C library: no errno, no cancellation, no locks. */
#ifndef TTD_PRELOAD_SYS_H
#define TTD_PRELOAD_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

static inline long sys_call6(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static inline long sys_call3(long number, long a, long b, long c)
{
    return sys_call6(number, a, b, c, 0, 0, 0);
}

/* Zeroed private memory that is never returned; NULL if there is none. */
void *sys_map(size_t size);

#endif
