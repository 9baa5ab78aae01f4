/* SPDX-License-Identifier: MIT */
/* Stopping the threads of a live child, and letting them go on as if nothing had happened. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "snapshot/stop/threads.h"

enum { RUNNERS = 8, COUNTERS = 0, RESULT = 60, TIDS = 32, SIGNALS = 61, MARK = 0x5ca1ab1e };

static volatile struct child_shared *child_shared;
static struct interrupted_calls interrupted;

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Counts for ever, with a mark in a register. */
static void *count_up(void *argument)
{
    volatile uint64_t *counter = &child_shared->values[COUNTERS + *(int *)argument];
    register uint64_t mark __asm__("r12") = MARK;
    while (!child_shared->may_go) {
        ++*counter;
        __asm__ volatile("" : "+r"(mark));
    }
    return NULL;
}

/* Waits for nothing, until something is written or the call fails. */
static void *wait_for_event(void *argument)
{
    struct epoll_event event;
    int *ends = argument, set = epoll_create1(0);
    event.events = EPOLLIN;
    epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
    child_shared->values[TIDS] = (uint64_t)syscall(SYS_gettid);
    int count = epoll_wait(set, &event, 1, -1);
    child_shared->values[RESULT] = count == 1 ? 1 : (uint64_t)errno + 100;
    return NULL;
}

static void note_signal(int number)
{
    (void)number;
    child_shared->values[SIGNALS]++;
}

static void run_threads(volatile struct child_shared *shared)
{
    pthread_t threads[RUNNERS + 1];
    int ends[2], numbers[RUNNERS];
    child_shared = shared;
    signal(SIGUSR1, note_signal);
    if (pipe(ends) != 0)
        _exit(1);
    for (int i = 0; i < RUNNERS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, count_up, &numbers[i]);
    }
    pthread_create(&threads[RUNNERS], NULL, wait_for_event, ends);
    for (int i = 0; i < RUNNERS; i++)
        while (shared->values[COUNTERS + i] == 0)
            pause_ms(1);
    while (shared->values[TIDS] == 0)
        pause_ms(1);
    pause_ms(20);
    child_wait(shared);
    if (write(ends[1], "", 1) != 1)
        _exit(2);
    for (int i = 0; i <= RUNNERS; i++)
        pthread_join(threads[i], NULL);
    _exit(shared->values[RESULT] == 1 ? 7 : (int)shared->values[RESULT]);
}

static void check_running(struct child *child)
{
    uint64_t before[RUNNERS];
    for (int i = 0; i < RUNNERS; i++)
        before[i] = child->shared->values[COUNTERS + i];
    for (int i = 0; i < RUNNERS; i++)
        while (child->shared->values[COUNTERS + i] == before[i])
            pause_ms(1);
}

Test(threads, stop_and_go_on, .timeout = 60)
{
    struct child child = child_start(run_threads);
    for (int round = 0; round < 20; round++) {
        struct threads threads;
        uint64_t before[RUNNERS];
        unsigned marks = 0;
        threads_stop(&threads, (uint32_t)child.pid, 0, (uint32_t)child.pid, &interrupted);
        cr_assert(threads.are_stopped);
        cr_assert(threads.count == RUNNERS + 2, "%zu", threads.count);
        for (int i = 0; i < RUNNERS; i++)
            before[i] = child.shared->values[COUNTERS + i];
        if (round == 3)
            syscall(SYS_tgkill, child.pid, child.pid, SIGUSR1); /* not to one that waits */
        pause_ms(5);
        for (int i = 0; i < RUNNERS; i++)
            cr_assert(before[i] == child.shared->values[COUNTERS + i]);
        for (size_t i = 0; i < threads.count; i++) {
            cr_assert(threads.items[i].is_stopped && threads.items[i].thread_pointer != 0);
            marks += threads.items[i].registers[12] == MARK;
        }
        cr_assert(marks == RUNNERS, "%u", marks);
        threads_release(&threads);
        check_running(&child);
    }
    int status = child_end(&child);
    /* The call that waited has not noticed, and the signal has arrived once. */
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%x", (unsigned)status);
    cr_assert(child.shared->values[SIGNALS] == 1);
}

Test(threads, one_is_left_out, .timeout = 60)
{
    struct child child = child_start(run_threads);
    struct threads threads;
    threads_stop(&threads, (uint32_t)child.pid, (uint32_t)child.shared->values[TIDS],
                 (uint32_t)child.pid, &interrupted);
    cr_assert(threads.are_stopped && threads.count == RUNNERS + 1);
    for (size_t i = 0; i < threads.count; i++)
        cr_assert(threads.items[i].tid != child.shared->values[TIDS]);
    threads_release(&threads);
    cr_assert(WEXITSTATUS(child_end(&child)) == 7);
}

Test(threads, one_alone_needs_no_stop, .timeout = 60)
{
    struct child many = child_start(run_threads), one = child_start(child_wait);
    struct threads threads;
    cr_assert(!threads_is_alone((uint32_t)many.pid, (uint32_t)many.pid));
    cr_assert(threads_is_alone((uint32_t)one.pid, (uint32_t)one.pid));
    cr_assert(!threads_is_alone((uint32_t)one.pid, (uint32_t)many.pid));
    threads_stop(&threads, (uint32_t)one.pid, (uint32_t)one.pid, (uint32_t)one.pid, &interrupted);
    cr_assert(threads.are_stopped && threads.count == 0);
    threads_release(&threads);
    child_end(&many);
    cr_assert(WEXITSTATUS(child_end(&one)) == 0);
}

/* Threads that come and go all the time. */
static void *do_nothing(void *argument)
{
    return argument;
}

static void *breed(void *unused)
{
    pthread_t thread;
    while (!child_shared->may_go)
        if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
            pthread_join(thread, NULL);
    return unused;
}

static void run_breeders(volatile struct child_shared *shared)
{
    pthread_t threads[2];
    child_shared = shared;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, breed, NULL);
    child_wait(shared);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    _exit(7);
}

Test(threads, come_and_go_meanwhile, .timeout = 60)
{
    struct child child = child_start(run_breeders);
    for (int round = 0; round < 100; round++) {
        struct threads threads;
        threads_stop(&threads, (uint32_t)child.pid, 0, (uint32_t)child.pid, &interrupted);
        cr_assert(threads.are_stopped);
        threads_release(&threads);
    }
    cr_assert(WEXITSTATUS(child_end(&child)) == 7);
}

/* Stops a process and kills it. The system lets go what is left when this thread ends. */
static void *stop_and_kill(void *argument)
{
    const struct child *child = argument;
    struct threads threads;
    threads_stop(&threads, (uint32_t)child->pid, 0, (uint32_t)child->pid, &interrupted);
    kill(child->pid, SIGKILL);
    threads_release(&threads);
    return NULL;
}

Test(threads, a_status_is_left_to_wait_for, .timeout = 60)
{
    struct child child = child_start(run_breeders);
    pthread_t thread;
    cr_assert(pthread_create(&thread, NULL, stop_and_kill, &child) == 0);
    pthread_join(thread, NULL);
    int status;
    cr_assert(waitpid(child.pid, &status, 0) == child.pid);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* A process that is traced by another one keeps it. */
Test(threads, a_debugger_keeps_its_process, .timeout = 60)
{
    struct child child = child_start(run_threads);
    volatile struct child_shared *shared = child.shared;
    pid_t debugger = fork();
    if (debugger == 0) {
        shared->values[RESULT + 2] = ptrace(PTRACE_SEIZE, child.pid, NULL, NULL) == 0 ? 1 : 2;
        for (;;)
            pause_ms(100);
    }
    while (shared->values[RESULT + 2] == 0)
        pause_ms(1);
    cr_assert(shared->values[RESULT + 2] == 1);
    struct threads threads;
    threads_stop(&threads, (uint32_t)child.pid, 0, (uint32_t)child.pid, &interrupted);
    cr_assert(!threads.are_stopped);
    threads_release(&threads);
    check_running(&child);
    kill(debugger, SIGKILL);
    cr_assert(waitpid(debugger, NULL, 0) == debugger);
    cr_assert(WEXITSTATUS(child_end(&child)) == 7);
}
