/* SPDX-License-Identifier: MIT */
/* System calls without the C library: no errno, no cancellation, no locks. */
#ifndef TTD_PRELOAD_SYSTEM_SYS_H
#define TTD_PRELOAD_SYSTEM_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

/* The kernel's struct sigaction, as SYS_rt_sigaction takes it. */
struct sys_sigaction {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

/* The number and six arguments. NOLINTNEXTLINE(readability-function-size) */
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

/* CLOCK_MONOTONIC in nanoseconds; 0 if there is none. */
static inline uint64_t sys_clock(void)
{
    struct timespec now;
    if (sys_call3(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0) != 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
