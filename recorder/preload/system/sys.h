/* SPDX-License-Identifier: MIT */
/** System calls without the C library: no errno, no cancellation, no locks. */
#ifndef RECORDER_PRELOAD_SYSTEM_SYS_H
#define RECORDER_PRELOAD_SYSTEM_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

/** Declares a variable of another file of this library; it is then reached without a table. */
#define HIDDEN __attribute__((visibility("hidden")))

/** The kernel's struct sigaction, as SYS_rt_sigaction takes it. */
struct sys_sigaction {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

/** The number and six arguments. NOLINTNEXTLINE(readability-function-size) */
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

/** Opens the list of mappings. That of a process whose first thread has ended is empty; the calling
 * thread's is not. Returns a negative errno on failure. */
static inline long sys_open_maps(void)
{
    enum { CURRENT = -100 /* AT_FDCWD */, CLOSED_ON_EXEC = 02000000 /* O_CLOEXEC */ };
    char first;
    long file = sys_call6(SYS_openat, CURRENT, (long)"/proc/self/maps", CLOSED_ON_EXEC, 0, 0, 0);
    if (file < 0 || sys_call6(SYS_pread64, file, (long)&first, sizeof first, 0, 0, 0) > 0)
        return file;
    sys_call3(SYS_close, file, 0, 0);
    return sys_call6(SYS_openat, CURRENT, (long)"/proc/thread-self/maps", CLOSED_ON_EXEC, 0, 0, 0);
}

/** CLOCK_MONOTONIC in nanoseconds; 0 if there is none. */
static inline uint64_t sys_clock(void)
{
    struct timespec now;
    if (sys_call3(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0) != 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
