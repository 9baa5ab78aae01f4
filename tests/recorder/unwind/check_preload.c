/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

/*
 * A preload library that captures the stack at every malloc, calloc, realloc and free, and
 * compares it with libunwind's. After a mismatch the program's exit status is 99.
 *
 * UNWIND_CHECK=0 measures instead of comparing; 3 only captures and 4 does not even that, so that
 * the times of whole programs can be compared. If UNWIND_REPORT names a file, a line is appended
 * to it at exit.
 */

#include "preload/unwind/unwind.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <x86intrin.h>

/* Shows that the library is there: programs that are made for it look for this symbol. */
__attribute__((visibility("default"))) const int unwind_check_loaded = 1;

#define EXPORT     __attribute__((visibility("default")))
#define SHOWN_MAX  3
#define WHOLE_EACH 1000 /* now and then the whole stack is asked for */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *p);
extern void *__libc_stack_end;

/* The stack as someone who only sees the deltas knows it. */
struct thread {
    bool busy;
    unsigned long events;
    uint32_t depth;
    uintptr_t stack[UNWIND_MAX_FRAMES];
    struct unwinder *unwinder;
};

static __thread struct thread *self __attribute__((tls_model("initial-exec")));
static __thread bool starting __attribute__((tls_model("initial-exec")));
static _Atomic unsigned long events, frames, added, mismatches, skipped, cycles, objects;
static _Atomic int shown;
static unsigned histogram[4096]; /* of cycles; approximate with several threads */
static int mode = -1;

static void *pages(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void found(const struct dl_find_object *object)
{
    (void)object;
    objects++;
}

static void find_stack(uintptr_t *low, uintptr_t *high, bool *grows)
{
    pthread_attr_t attr;
    void *addr;
    size_t size;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    *grows = getpid() == gettid();
    if (*grows) {
        *low = here;
        *high = ((uintptr_t)__libc_stack_end & ~(uintptr_t)4095) + 4096;
        return;
    }
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &addr, &size);
    pthread_attr_destroy(&attr);
    *low = (uintptr_t)addr;
    *high = *low + size;
}

static struct thread *start(void)
{
    uintptr_t low;
    uintptr_t high;
    bool grows;
    if (starting)
        return NULL;
    starting = true;
    if (mode < 0) {
        const char *check = getenv("UNWIND_CHECK");
        unwind_setup(found, NULL);
        mode = check ? atoi(check) : 1;
    }
    struct thread *t = pages(sizeof(*t));
    t->unwinder = pages(unwinder_size());
    find_stack(&low, &high, &grows);
    unwinder_init(t->unwinder, low, high, grows);
    self = t;
    return t;
}

static void show(const struct thread *t, const uintptr_t *expected, uint32_t n, bool truncated)
{
    char line[400];
    Dl_info info;
    if (atomic_fetch_add(&shown, 1) >= SHOWN_MAX)
        return;
    int size = snprintf(line, sizeof(line), "mismatch: %u frames, libunwind %u%s\n", t->depth, n,
                        truncated ? ", truncated" : "");
    (void)!write(2, line, (size_t)size);
    for (uint32_t i = 0; i < t->depth || i < n; i++) {
        uintptr_t a = i < t->depth ? t->stack[t->depth - 1 - i] : 0;
        uintptr_t b = i < n ? expected[i] : 0;
        memset(&info, 0, sizeof(info));
        dladdr((void *)((b != 0 ? b : a) - 1), &info);
        size = snprintf(line, sizeof(line), "%c %3u %012lx %012lx %s %s+%lx\n", a == b ? ' ' : '!',
                        i, a, b, info.dli_sname ? info.dli_sname : "",
                        info.dli_fname ? info.dli_fname : "",
                        (b != 0 ? b : a) - (uintptr_t)info.dli_fbase);
        (void)!write(2, line, (size_t)size < sizeof(line) ? (size_t)size : sizeof(line));
    }
}

static uint32_t walk_libunwind(const struct unwind_regs *regs, uintptr_t *out, uint32_t max,
                               bool *odd)
{
    unw_context_t context;
    unw_cursor_t cursor;
    unw_word_t ip = 0;
    unw_word_t sp = 0;
    uint32_t n = 0;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    *odd = false;
    do {
        unw_get_reg(&cursor, UNW_REG_IP, &ip);
        unw_get_reg(&cursor, UNW_REG_SP, &sp);
    } while ((ip != regs->pc || sp != regs->sp) && unw_step(&cursor) > 0);
    if (ip != regs->pc || sp != regs->sp)
        return 0;
    while (n < max && ip != 0) {
        /* The cursor says so at the interrupted frame, not at the one that the kernel made. */
        out[n++] = ip + (unw_is_signal_frame(&cursor) > 0 ? 1 : 0);
        unw_proc_info_t info;
        /* libunwind makes up a function of one byte where it knows none. */
        *odd |= unw_get_proc_info(&cursor, &info) != 0 || info.end_ip - info.start_ip == 1;
        if (unw_step(&cursor) <= 0)
            break;
        unw_get_reg(&cursor, UNW_REG_IP, &ip);
    }
    return n;
}

static void compare(struct thread *t, const struct unwind_regs *regs, bool truncated)
{
    static __thread uintptr_t *expected __attribute__((tls_model("initial-exec")));
    bool odd;
    if (!expected)
        expected = pages(2 * UNWIND_MAX_FRAMES * sizeof(*expected));
    uint32_t n = walk_libunwind(regs, expected, truncated ? t->depth : 2 * UNWIND_MAX_FRAMES, &odd);
    bool same = n <= t->depth;
    for (uint32_t i = 0; i < n && same; i++)
        same = expected[i] == t->stack[t->depth - 1 - i];
    if (same && n == t->depth)
        return;
    if (same && odd) { /* it forgets the other registers at code without information */
        skipped++;
        return;
    }
    mismatches++;
    show(t, expected, n, truncated);
}

static void event(const struct unwind_regs *regs)
{
    struct thread *t = self;
    struct unwind_delta d;
    if (!t)
        t = start();
    if (!t || t->busy)
        return;
    t->busy = true;
    if (mode == 0) {
        unsigned long before = __rdtsc();
        unwinder_capture(t->unwinder, regs, &d);
        unsigned long spent = __rdtsc() - before;
        if (spent < 4096) { /* more: we were interrupted */
            histogram[spent]++;
            cycles += spent;
        }
        events++;
        frames += d.kept + d.added;
        added += d.added;
    } else if (mode == 3) {
        unwinder_capture(t->unwinder, regs, &d);
    } else if (mode != 4) {
        if (++t->events % WHOLE_EACH == 0)
            unwinder_reset(t->unwinder);
        unwinder_capture(t->unwinder, regs, &d);
        events++;
        frames += d.kept + d.added;
        added += d.added;
        if (d.kept > t->depth || d.kept + d.added > UNWIND_MAX_FRAMES)
            mismatches++;
        memcpy(t->stack + d.kept, d.frames + d.kept, d.added * sizeof(*d.frames));
        t->depth = d.kept + d.added;
        compare(t, regs, d.truncated);
    }
    t->busy = false;
}

static inline __attribute__((always_inline)) void hook(void)
{
    struct unwind_regs regs;
    unwind_here(&regs);
    event(&regs);
}

EXPORT void *malloc(size_t size)
{
    hook();
    return __libc_malloc(size);
}

EXPORT void *calloc(size_t n, size_t size)
{
    hook();
    return __libc_calloc(n, size);
}

EXPORT void *realloc(void *p, size_t size)
{
    hook();
    return __libc_realloc(p, size);
}

EXPORT void free(void *p)
{
    hook();
    __libc_free(p);
}

static unsigned median(void)
{
    unsigned long n = 0;
    unsigned i = 0;
    for (; i < 4096 && n <= events / 2; i++)
        n += histogram[i];
    return i;
}

static void write_report(const char *name)
{
    char line[400];
    int size = snprintf(line, sizeof(line),
                        "events %lu mismatches %lu skipped %lu frames %.1f added %.2f objects %lu "
                        "cycles %.0f median %u %s\n",
                        events, mismatches, skipped, (double)frames / (double)events,
                        (double)added / (double)events, objects, (double)cycles / (double)events,
                        median(), program_invocation_short_name);
    int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
    (void)!write(fd, line, (size_t)size);
    close(fd);
}

__attribute__((destructor)) static void report(void)
{
    const char *name = getenv("UNWIND_REPORT");
    if (name && events != 0)
        write_report(name);
    if (mismatches != 0)
        _exit(99);
}
