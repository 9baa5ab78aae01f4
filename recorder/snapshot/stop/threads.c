/* SPDX-License-Identifier: MIT */
#include "snapshot/stop/threads.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arrays.h"

/* Result of a system call that is to be made again unless a handler of a signal has run. */
#define RESTART_NO_HANDLER 514

/* Flags of the processor. A call keeps them; no instruction sets the two of MARK without the third:
 * so they distinguish a repeated call from a new one like it. */
#define PARITY UINT64_C(0x04)
#define MARK   UINT64_C(0xc0) /* zero and sign */

#define NO_LIMIT UINT64_MAX

/* The place of a call's time limit among its arguments. */
enum limit {
    LIMIT_NONE,
    LIMIT_MILLISECONDS, /* 4th argument */
    LIMIT_TIME_3,       /* address in the 3rd argument, and so on */
    LIMIT_TIME_4,
    LIMIT_TIME_5,
    LIMIT_RECEIVE, /* option of the socket */
    LIMIT_SEND,
    LIMIT_RING,
};

struct call {
    uint16_t number;
    uint8_t limit;
    uint8_t error; /* when the time has passed */
};

static const struct call known_calls[] = {
    {SYS_epoll_wait, LIMIT_MILLISECONDS, 0},
    {SYS_epoll_pwait, LIMIT_MILLISECONDS, 0},
    {SYS_epoll_pwait2, LIMIT_TIME_4, 0},
    {SYS_rt_sigtimedwait, LIMIT_TIME_3, EAGAIN},
    {SYS_semop, LIMIT_NONE, 0},
    {SYS_semtimedop, LIMIT_TIME_4, EAGAIN},
    {SYS_io_getevents, LIMIT_TIME_5, 0},
    {SYS_io_pgetevents, LIMIT_TIME_5, 0},
    {SYS_io_uring_enter, LIMIT_RING, ETIME},
    {SYS_read, LIMIT_RECEIVE, EAGAIN},
    {SYS_readv, LIMIT_RECEIVE, EAGAIN},
    {SYS_recvfrom, LIMIT_RECEIVE, EAGAIN},
    {SYS_recvmsg, LIMIT_RECEIVE, EAGAIN},
    {SYS_recvmmsg, LIMIT_RECEIVE, EAGAIN},
    {SYS_accept, LIMIT_RECEIVE, EAGAIN},
    {SYS_accept4, LIMIT_RECEIVE, EAGAIN},
    {SYS_write, LIMIT_SEND, EAGAIN},
    {SYS_writev, LIMIT_SEND, EAGAIN},
    {SYS_sendto, LIMIT_SEND, EAGAIN},
    {SYS_sendmsg, LIMIT_SEND, EAGAIN},
    {SYS_sendmmsg, LIMIT_SEND, EAGAIN},
    {SYS_connect, LIMIT_SEND, EINPROGRESS},
};

static const struct call *threads_find_call(uint64_t number)
{
    for (size_t i = 0; i < sizeof known_calls / sizeof *known_calls; i++)
        if (known_calls[i].number == number)
            return &known_calls[i];
    return NULL;
}

static bool threads_read_memory(uint32_t tid, uint64_t address, void *data, size_t size)
{
    struct iovec local = {data, size}, remote = {(void *)(uintptr_t)address, size};
    return process_vm_readv((pid_t)tid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static uint64_t threads_limit_at(uint32_t tid, uint64_t address)
{
    struct timespec time;
    if (address == 0 || !threads_read_memory(tid, address, &time, sizeof time))
        return NO_LIMIT;
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t threads_limit_of_ring(uint32_t tid, const struct user_regs_struct *registers)
{
    struct io_uring_getevents_arg argument;
    if (!(registers->r10 & IORING_ENTER_EXT_ARG) ||
        !threads_read_memory(tid, registers->r8, &argument, sizeof argument))
        return NO_LIMIT;
    return threads_limit_at(tid, argument.ts);
}

static uint64_t threads_limit_of_socket(uint32_t pid, uint64_t descriptor, int option)
{
    struct timeval time = {0};
    socklen_t size = sizeof time;
    int process = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    int copy = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, (int)descriptor, 0) : -1;
    bool is_limited = copy >= 0 && getsockopt(copy, SOL_SOCKET, option, &time, &size) == 0 &&
                      (time.tv_sec != 0 || time.tv_usec != 0);
    if (copy >= 0)
        close(copy);
    if (process >= 0)
        close(process);
    return is_limited ? (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000
                      : NO_LIMIT;
}

/* Returns the time limit of a call in nanoseconds. */
static uint64_t threads_limit_of(const struct call *call, uint32_t pid, uint32_t tid,
                                 const struct user_regs_struct *registers)
{
    switch ((enum limit)call->limit) {
    case LIMIT_NONE:
        break;
    case LIMIT_MILLISECONDS:
        return (int)registers->r10 >= 0 ? registers->r10 * 1000000u : NO_LIMIT;
    case LIMIT_TIME_3:
        return threads_limit_at(tid, registers->rdx);
    case LIMIT_TIME_4:
        return threads_limit_at(tid, registers->r10);
    case LIMIT_TIME_5:
        return threads_limit_at(tid, registers->r8);
    case LIMIT_RECEIVE:
        return threads_limit_of_socket(pid, registers->rdi, SO_RCVTIMEO);
    case LIMIT_SEND:
        return threads_limit_of_socket(pid, registers->rdi, SO_SNDTIMEO);
    case LIMIT_RING:
        return threads_limit_of_ring(tid, registers);
    }
    return NO_LIMIT;
}

/* Returns when a stop first interrupted the thread's call: now, unless it was made again.
 */
static uint64_t threads_begin_of(struct interrupted_calls *calls, uint32_t tid, uint64_t now,
                                 bool is_again)
{
    size_t i = 0;
    while (i < calls->count && calls->items[i].tid != tid)
        i++;
    if (i < calls->count && is_again)
        return calls->items[i].since;
    void *items = array_grow(calls->items, i, &calls->capacity, sizeof *calls->items);
    if (!items)
        return now;
    calls->items = items;
    calls->count += i == calls->count;
    calls->items[i] = (struct interrupted_call){tid, now};
    return now;
}

bool interrupted_call_resume(struct interrupted_calls *calls, uint32_t pid, uint32_t tid,
                             uint64_t now, struct user_regs_struct *registers)
{
    const struct call *call =
        (long long)registers->rax == -EINTR ? threads_find_call(registers->orig_rax) : NULL;
    if (!call)
        return false;
    bool is_again = (registers->eflags & (MARK | PARITY)) == MARK;
    uint64_t waited = now - threads_begin_of(calls, tid, now, is_again);
    registers->eflags = (registers->eflags & ~PARITY) | MARK;
    registers->rax = (unsigned long long)-RESTART_NO_HANDLER;
    if (is_again && waited >= threads_limit_of(call, pid, tid, registers)) {
        registers->eflags |= PARITY;
        registers->rax = (unsigned long long)-(long long)call->error;
    }
    return true;
}

void interrupted_calls_free(struct interrupted_calls *calls)
{
    free(calls->items);
    *calls = (struct interrupted_calls){0};
}

#define STOP_NS        UINT64_C(1000000000)
#define STOP_UNABLE_NS UINT64_C(150000000) /* for one that waits and cannot be interrupted */
#define POLL_NS        20000

static uint64_t threads_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Has the calling thread wake as soon as a pause is over: stopped threads wait for it. Otherwise
 * the system adds 50 microseconds to pauses of 20. */
static void threads_pause_exactly(void)
{
    prctl(PR_SET_TIMERSLACK, 1UL);
}

void threads_hurry(struct threads *threads)
{
    enum { MOST_URGENT = -20 };
    if (threads->hurries)
        return;
    threads->hurries = true;
    threads->niceness = getpriority(PRIO_PROCESS, 0);
    setpriority(PRIO_PROCESS, 0, MOST_URGENT);
}

static void threads_calm_down(struct threads *threads)
{
    threads->hurries = false;
    setpriority(PRIO_PROCESS, 0, threads->niceness);
}

static int threads_compare_tids(const void *left, const void *right)
{
    uint32_t a = ((const struct thread_state *)left)->tid;
    uint32_t b = ((const struct thread_state *)right)->tid;
    return a < b ? -1 : a > b;
}

/* Reads the line of the system about a thread. Returns the state, which the other fields follow;
 * NULL if there is no such thread. */
static const char *threads_read_stat(uint32_t pid, uint32_t tid, char line[512])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/task/%u/stat", pid, tid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, line, 511) : -1;
    if (file >= 0)
        close(file);
    line[size > 0 ? size : 0] = '\0';
    /* The name may have anything in it. */
    const char *name_end = strrchr(line, ')');
    return name_end && strlen(name_end) > 2 ? name_end + 2 : NULL;
}

char threads_state_of(uint32_t pid, uint32_t tid)
{
    char line[512];
    const char *state = threads_read_stat(pid, tid, line);
    return state ? *state : 0;
}

bool threads_is_ending(uint32_t pid, uint32_t tid)
{
    enum { FLAGS_EXITING = 4 }; /* PF_EXITING of the kernel */
    char line[512];
    unsigned flags = 0;
    const char *state = threads_read_stat(pid, tid, line);
    return !state || *state == 'Z' || *state == 'X' ||
           (sscanf(state, "%*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & FLAGS_EXITING);
}

/* Begins to trace a thread, which goes on until threads_interrupt(). */
static void seize(const struct threads *threads, struct thread_state *thread)
{
    thread->is_seized = ptrace(PTRACE_SEIZE, (pid_t)thread->tid, NULL, NULL) == 0;
    thread->has_ended = !thread->is_seized && threads_is_ending(threads->pid, thread->tid);
}

static void threads_interrupt(struct threads *threads, const struct thread_state *thread)
{
    if (threads->begin == 0)
        threads->begin = threads_now();
    if (thread->is_seized)
        ptrace(PTRACE_INTERRUPT, (pid_t)thread->tid, NULL, NULL);
}

/* Returns the new entry of a thread; NULL if it is known, or if there is no memory. */
static struct thread_state *threads_add(struct threads *threads, size_t sorted, uint32_t tid)
{
    struct thread_state key = {.tid = tid};
    if (sorted != 0 &&
        bsearch(&key, threads->items, sorted, sizeof *threads->items, threads_compare_tids))
        return NULL;
    void *items =
        array_grow(threads->items, threads->count, &threads->capacity, sizeof *threads->items);
    if (!items) {
        threads->are_stopped = false;
        return NULL;
    }
    threads->items = items;
    threads->items[threads->count] = key;
    return &threads->items[threads->count++];
}

/* Stops threads that are not known yet: it takes longer to seize a thread than to interrupt it, so
 * none is interrupted before all are seized. Returns whether there were any. */
static bool seize_new(struct threads *threads)
{
    char path[64];
    size_t sorted = threads->count;
    snprintf(path, sizeof path, "/proc/%u/task", threads->pid);
    DIR *directory = opendir(path);
    if (!directory) {
        threads->are_stopped = false;
        return false;
    }
    for (const struct dirent *entry; (entry = readdir(directory));) {
        uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        struct thread_state *thread =
            tid != 0 && tid != threads->except ? threads_add(threads, sorted, tid) : NULL;
        if (thread)
            seize(threads, thread);
    }
    closedir(directory);
    for (size_t i = sorted; i < threads->count; i++)
        threads_interrupt(threads, &threads->items[i]);
    if (threads->count > sorted)
        qsort(threads->items, threads->count, sizeof *threads->items, threads_compare_tids);
    return threads->count > sorted;
}

static void threads_read_registers(const struct threads *threads, struct thread_state *thread)
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
 * belong to a child of this process; but the status of another process's child must be taken, so
 * that its parent gets it.
 */
static bool threads_is_settled(const struct threads *threads, struct thread_state *thread)
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
    /* Else the number of the event is in the bits above: the stop that was asked for; or a thread
     * that was borrowed is late, and stops at its call. */
    if (info.si_status >> 8 == 0 && info.si_status != THREAD_CALL_STOP)
        thread->signal = info.si_status & 0x7f;
    thread->is_paused =
        info.si_status >> 8 == PTRACE_EVENT_STOP && (info.si_status & 0xff) != SIGTRAP;
    threads_read_registers(threads, thread);
    return true;
}

/* Waits until a seized thread has stopped or ended, but not for ever. */
static void threads_settle(const struct threads *threads, struct thread_state *thread,
                           uint64_t begin)
{
    struct timespec moment = {.tv_nsec = POLL_NS};
    while (!threads_is_settled(threads, thread)) {
        uint64_t waited = threads_now() - begin;
        if (waited > STOP_NS ||
            (waited > STOP_UNABLE_NS && threads_state_of(threads->pid, thread->tid) == 'D'))
            return;
        nanosleep(&moment, NULL);
    }
}

/* Returns how many threads a process has; 0 if there is no such process. A directory has two links,
 * and one more for each directory in it: here, for each thread. */
static size_t threads_count(uint32_t pid)
{
    char path[64];
    struct stat tasks;
    snprintf(path, sizeof path, "/proc/%u/task", pid);
    return stat(path, &tasks) == 0 && tasks.st_nlink > 2 ? tasks.st_nlink - 2 : 0;
}

bool threads_is_alone(uint32_t pid, uint32_t tid)
{
    /* A first thread that has ended stays there, so the only one is the first. */
    return tid == pid && threads_count(pid) == 1;
}

bool threads_are_all(const struct threads *threads)
{
    for (size_t i = 0; i < threads->count; i++)
        if (!threads->items[i].is_stopped)
            return false;
    return threads->except == 0 && threads->count == threads_count(threads->pid);
}

/* Waits for the threads that are known to stop, and stops those that are not known yet. */
static void stop_all(struct threads *threads)
{
    uint64_t begin = threads_now();
    do
        for (size_t i = 0; i < threads->count; i++)
            threads_settle(threads, &threads->items[i], begin);
    while (!threads_is_alone(threads->pid, threads->except) && !threads_are_all(threads) &&
           seize_new(threads) && threads_now() - begin < STOP_NS);
    for (size_t i = 0; i < threads->count; i++)
        threads->are_stopped &= threads->items[i].is_stopped || threads->items[i].has_ended;
}

void threads_stop(struct threads *threads, uint32_t pid, uint32_t except, uint32_t child,
                  struct interrupted_calls *interrupted)
{
    *threads = (struct threads){.pid = pid,
                                .except = except,
                                .child = child,
                                .interrupted = interrupted,
                                .are_stopped = true};
    threads_pause_exactly();
    threads_hurry(threads);
    stop_all(threads);
    threads_calm_down(threads);
}

void threads_let_on(struct thread_state *thread)
{
    if (thread->is_paused ||
        ptrace(PTRACE_CONT, (pid_t)thread->tid, NULL, (void *)(intptr_t)thread->signal) != 0)
        return;
    thread->is_stopped = thread->is_looked_at = false;
    thread->signal = 0;
}

void threads_stop_again(struct threads *threads, long pause)
{
    const struct timespec moment = {.tv_nsec = pause};
    nanosleep(&moment, NULL);
    for (size_t i = 0; i < threads->count; i++)
        if (!threads->items[i].is_stopped)
            threads_interrupt(threads, &threads->items[i]);
    stop_all(threads);
}

/* Stops up to `most` threads: those that wait, or any. */
static void stop_some(struct threads *threads, size_t most, bool are_waiting)
{
    char path[64];
    size_t sorted = threads->count;
    snprintf(path, sizeof path, "/proc/%u/task", threads->pid);
    DIR *directory = opendir(path);
    if (!directory)
        return;
    for (const struct dirent *entry; threads->count < most && (entry = readdir(directory));) {
        uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        /* A stop interrupts the call in which a thread waits. */
        if (tid == 0 || (are_waiting && threads_state_of(threads->pid, tid) != 'S'))
            continue;
        struct thread_state *thread = threads_add(threads, sorted, tid);
        if (!thread)
            continue;
        seize(threads, thread);
        threads_interrupt(threads, thread);
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
    threads_pause_exactly();
    stop_some(threads, SOME, true);
    if (threads->count == 0)
        stop_some(threads, SOME, false);
    for (size_t i = 0; i < threads->count; i++)
        threads->are_stopped |= threads->items[i].is_stopped;
}

bool threads_adopt(struct threads *threads, uint32_t child, struct interrupted_calls *interrupted)
{
    *threads = (struct threads){
        .pid = child, .child = child, .interrupted = interrupted, .are_stopped = true};
    threads_pause_exactly();
    struct thread_state *thread = threads_add(threads, 0, child);
    if (!thread)
        return false;
    thread->is_seized = true;
    threads_read_registers(threads, thread);
    return true;
}

void threads_release(struct threads *threads)
{
    threads_hurry(threads);
    for (size_t i = 0; i < threads->count; i++) {
        struct thread_state *thread = &threads->items[i];
        if (!thread->is_seized || thread->has_ended)
            continue;
        /* One that has not stopped yet may stop at any moment for a signal, which would be lost
         * here: the system frees it with its signal when the calling thread ends. */
        if (threads_is_settled(threads, thread) && thread->is_stopped)
            ptrace(PTRACE_DETACH, (pid_t)thread->tid, NULL, (void *)(intptr_t)thread->signal);
    }
    threads_calm_down(threads);
    free(threads->items);
    *threads = (struct threads){0};
}
