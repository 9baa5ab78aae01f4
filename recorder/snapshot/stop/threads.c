/* SPDX-License-Identifier: MIT */
#include "snapshot/stop/threads.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "arrays.h"

#define STOP_NS        UINT64_C(1000000000)
#define STOP_UNABLE_NS UINT64_C(150000000) /* for one that waits and cannot be interrupted */
#define POLL_NS        20000

static uint64_t threads_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int threads_compare_tids(const void *left, const void *right)
{
    uint32_t a = ((const struct thread_state *)left)->tid;
    uint32_t b = ((const struct thread_state *)right)->tid;
    return a < b ? -1 : a > b;
}

/* Returns the state of a thread as the system names it, such as 'S'; 0 if there is no such thread.
 */
static char state_of(const struct threads *threads, uint32_t tid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%u/task/%u/stat", threads->pid, tid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t size = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[size] = '\0';
    const char *name_end = strrchr(line, ')');
    return name_end != NULL && strlen(name_end) > 2 ? name_end[2] : 0;
}

static bool is_dead(const struct threads *threads, uint32_t tid)
{
    char state = state_of(threads, tid);
    return state == 0 || state == 'Z' || state == 'X';
}

static void seize(const struct threads *threads, struct thread_state *thread)
{
    pid_t tid = (pid_t)thread->tid;
    thread->is_seized = ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0;
    if (thread->is_seized)
        ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    else
        thread->has_ended = is_dead(threads, thread->tid);
}

/* Returns the new entry of a thread; NULL if it is known, or if there is no memory. */
static struct thread_state *threads_add(struct threads *threads, size_t sorted, uint32_t tid)
{
    struct thread_state key = {.tid = tid};
    if (sorted != 0 &&
        bsearch(&key, threads->items, sorted, sizeof *threads->items, threads_compare_tids) != NULL)
        return NULL;
    void *items =
        array_grow(threads->items, threads->count, &threads->capacity, sizeof *threads->items);
    if (items == NULL) {
        threads->are_stopped = false;
        return NULL;
    }
    threads->items = items;
    threads->items[threads->count] = key;
    return &threads->items[threads->count++];
}

/* Seizes threads that are not known yet. Returns whether there were any. */
static bool seize_new(struct threads *threads)
{
    char path[64];
    size_t sorted = threads->count;
    snprintf(path, sizeof path, "/proc/%u/task", threads->pid);
    DIR *directory = opendir(path);
    if (directory == NULL) {
        threads->are_stopped = false;
        return false;
    }
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        struct thread_state *thread =
            tid != 0 && tid != threads->except ? threads_add(threads, sorted, tid) : NULL;
        if (thread != NULL)
            seize(threads, thread);
    }
    closedir(directory);
    if (threads->count > sorted)
        qsort(threads->items, threads->count, sizeof *threads->items, threads_compare_tids);
    return threads->count > sorted;
}

static void read_registers(const struct threads *threads, struct thread_state *thread)
{
    struct user_regs_struct r;
    struct iovec buffer = {&r, sizeof r};
    pid_t tid = (pid_t)thread->tid;
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &buffer) != 0)
        return;
    const uint64_t registers[THREAD_REGISTERS] = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi,
                                                  r.rbp, r.rsp, r.r8,  r.r9,  r.r10, r.r11,
                                                  r.r12, r.r13, r.r14, r.r15, r.rip};
    memcpy(thread->registers, registers, sizeof registers);
    thread->thread_pointer = r.fs_base;
    thread->is_stopped = true;
    if (thread->signal == 0 &&
        interrupted_call_resume(threads->interrupted, threads->pid, thread->tid, threads_now(), &r))
        ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &buffer);
}

/*
 * Looks whether a seized thread has stopped or ended. Its status is left to wait for, since it may
 * be that of a child of this process; but that of another process's child must be taken, so that
 * its parent gets it.
 */
static bool is_settled(const struct threads *threads, struct thread_state *thread)
{
    siginfo_t info = {0};
    int flags = WEXITED | WSTOPPED | WNOHANG | __WALL;
    if (!thread->is_seized || thread->is_stopped || thread->has_ended)
        return true;
    if (waitid(P_PID, thread->tid, &info, flags | WNOWAIT) != 0) {
        thread->has_ended = true;
        return true;
    }
    if (info.si_pid == 0)
        return false;
    if (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED) {
        thread->has_ended = true;
        if (thread->tid != threads->child)
            waitid(P_PID, thread->tid, &info, flags);
        return true;
    }
    /* Else the number of the event is in the bits above: the stop that was asked for. */
    if (info.si_status >> 8 == 0)
        thread->signal = info.si_status & 0x7f;
    read_registers(threads, thread);
    return true;
}

/* Waits until a seized thread has stopped or ended, but not for ever. */
static void threads_settle(const struct threads *threads, struct thread_state *thread,
                           uint64_t begin)
{
    struct timespec moment = {.tv_nsec = POLL_NS};
    while (!is_settled(threads, thread)) {
        uint64_t waited = threads_now() - begin;
        if (waited > STOP_NS || (waited > STOP_UNABLE_NS && state_of(threads, thread->tid) == 'D'))
            return;
        nanosleep(&moment, NULL);
    }
}

bool threads_is_alone(uint32_t pid, uint32_t tid)
{
    char path[64];
    struct stat tasks;
    snprintf(path, sizeof path, "/proc/%u/task", pid);
    /* A directory has two links, and one more for each directory in it: here, for each thread. A
     * first thread that has ended stays there, so the only one is the first. */
    return tid == pid && stat(path, &tasks) == 0 && tasks.st_nlink == 2 + 1;
}

void threads_stop(struct threads *threads, uint32_t pid, uint32_t except, uint32_t child,
                  struct interrupted_calls *interrupted)
{
    *threads = (struct threads){.pid = pid,
                                .except = except,
                                .child = child,
                                .interrupted = interrupted,
                                .are_stopped = true};
    uint64_t begin = threads_now();
    while (!threads_is_alone(pid, except) && seize_new(threads) && threads_now() - begin < STOP_NS)
        for (size_t i = 0; i < threads->count; i++)
            threads_settle(threads, &threads->items[i], begin);
    for (size_t i = 0; i < threads->count; i++)
        threads->are_stopped &= threads->items[i].is_stopped || threads->items[i].has_ended;
}

/* Whether a thread waits in a call that a stop interrupts. */
static bool is_waiting(const struct threads *threads, uint32_t tid)
{
    return state_of(threads, tid) == 'S';
}

/* Stops up to `most` threads: those that wait, or any. */
static void stop_some(struct threads *threads, size_t most, bool are_waiting)
{
    char path[64];
    size_t sorted = threads->count;
    snprintf(path, sizeof path, "/proc/%u/task", threads->pid);
    DIR *directory = opendir(path);
    if (directory == NULL)
        return;
    for (const struct dirent *entry;
         threads->count < most && (entry = readdir(directory)) != NULL;) {
        uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (tid == 0 || (are_waiting && !is_waiting(threads, tid)))
            continue;
        struct thread_state *thread = threads_add(threads, sorted, tid);
        if (thread == NULL)
            continue;
        seize(threads, thread);
        threads_settle(threads, thread, threads_now());
    }
    closedir(directory);
}

void threads_stop_some(struct threads *threads, uint32_t pid, uint32_t child,
                       struct interrupted_calls *interrupted)
{
    enum { SOME = 3 };
    *threads =
        (struct threads){.pid = pid, .child = child, .interrupted = interrupted, .are_some = true};
    stop_some(threads, SOME, true);
    if (threads->count == 0)
        stop_some(threads, SOME, false);
    for (size_t i = 0; i < threads->count; i++)
        threads->are_stopped |= threads->items[i].is_stopped;
}

void threads_release(struct threads *threads)
{
    for (size_t i = 0; i < threads->count; i++) {
        struct thread_state *thread = &threads->items[i];
        if (!thread->is_seized || thread->has_ended)
            continue;
        is_settled(threads, thread); /* it may have stopped since */
        ptrace(PTRACE_DETACH, (pid_t)thread->tid, NULL, (void *)(intptr_t)thread->signal);
    }
    free(threads->items);
    *threads = (struct threads){0};
}
