/* SPDX-License-Identifier: MIT */
/*
 * Threads that signals interrupt as they begin. The first handler jumps out of whatever it has
 * interrupted outside of the program and of the C library, as of a hook of the recorder.
 */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { THREADS = 1000, CALLS = 20, MANY_CALLS = 1000000 };

struct range {
    uintptr_t begin, end;
};

static struct range program, libc;
static atomic_uint jumps;
static __thread sigjmp_buf place;
static __thread volatile sig_atomic_t is_armed;

static int look_at(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    struct range range = {UINTPTR_MAX, 0};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD)
            continue;
        range.begin = begin < range.begin ? begin : range.begin;
        range.end = begin + segment->p_memsz > range.end ? begin + segment->p_memsz : range.end;
    }
    if (info->dlpi_name[0] == '\0')
        program = range;
    else if (strstr(info->dlpi_name, "libc.so"))
        libc = range;
    return 0;
}

static int has(struct range range, uintptr_t address)
{
    return address >= range.begin && address < range.end;
}

/* No function of the C library is left half done: none calls the recorder here. */
static void handle(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    uintptr_t pc = (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    if (!is_armed || has(libc, pc) || has(program, pc))
        return;
    is_armed = 0;
    atomic_fetch_add(&jumps, 1);
    siglongjmp(place, 1);
}

static void allocate(size_t size)
{
    void *volatile block = malloc(size);
    free(block);
}

/* Has a signal come after some time; timer_create() would allocate. */
static void set_timer(long nanoseconds)
{
    int timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    const struct itimerspec time = {.it_value.tv_nsec = nanoseconds};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) == 0)
        syscall(SYS_timer_settime, timer, 0, &time, NULL);
}

static void *begin(void *number)
{
    if (sigsetjmp(place, 1) == 0) {
        is_armed = 1;
        set_timer(1000 + 20 * (long)(intptr_t)number);
        for (int i = 0; i < CALLS; i++)
            allocate(100);
    }
    is_armed = 0;
    for (int i = 0; i < CALLS; i++)
        allocate(200);
    return NULL;
}

int main(void)
{
    const struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART};
    dl_iterate_phdr(look_at, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (intptr_t i = 0; i < THREADS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, begin, (void *)i);
        pthread_join(thread, NULL);
    }
    /* More than fits into all buffers: the recorder must have taken what the threads have done. */
    for (int i = 0; i < MANY_CALLS; i++)
        allocate(300);
    printf("%u\n", jumps);
}
