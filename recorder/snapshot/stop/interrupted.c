/* SPDX-License-Identifier: MIT */
#include "snapshot/stop/interrupted.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "arrays.h"

/* Result of a system call that is to be made again unless a handler of a signal has run. */
#define RESTART_NO_HANDLER 514

/* Flags of the processor. A call keeps them; no instruction sets the two of MARK without the third:
 * so they tell a call that is made again from a new one like it. */
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

static const struct call *find_call(uint64_t number)
{
    for (size_t i = 0; i < sizeof known_calls / sizeof *known_calls; i++)
        if (known_calls[i].number == number)
            return &known_calls[i];
    return NULL;
}

static bool read_memory(uint32_t tid, uint64_t address, void *data, size_t size)
{
    struct iovec local = {data, size}, remote = {(void *)(uintptr_t)address, size};
    return process_vm_readv((pid_t)tid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static uint64_t limit_at(uint32_t tid, uint64_t address)
{
    struct timespec time;
    if (address == 0 || !read_memory(tid, address, &time, sizeof time))
        return NO_LIMIT;
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t limit_of_ring(uint32_t tid, const struct user_regs_struct *registers)
{
    struct io_uring_getevents_arg argument;
    if (!(registers->r10 & IORING_ENTER_EXT_ARG) ||
        !read_memory(tid, registers->r8, &argument, sizeof argument))
        return NO_LIMIT;
    return limit_at(tid, argument.ts);
}

static uint64_t limit_of_socket(uint32_t pid, uint64_t descriptor, int option)
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
static uint64_t limit_of(const struct call *call, uint32_t pid, uint32_t tid,
                         const struct user_regs_struct *registers)
{
    switch ((enum limit)call->limit) {
    case LIMIT_NONE:
        break;
    case LIMIT_MILLISECONDS:
        return (int)registers->r10 >= 0 ? registers->r10 * 1000000u : NO_LIMIT;
    case LIMIT_TIME_3:
        return limit_at(tid, registers->rdx);
    case LIMIT_TIME_4:
        return limit_at(tid, registers->r10);
    case LIMIT_TIME_5:
        return limit_at(tid, registers->r8);
    case LIMIT_RECEIVE:
        return limit_of_socket(pid, registers->rdi, SO_RCVTIMEO);
    case LIMIT_SEND:
        return limit_of_socket(pid, registers->rdi, SO_SNDTIMEO);
    case LIMIT_RING:
        return limit_of_ring(tid, registers);
    }
    return NO_LIMIT;
}

/* Returns when a stop first interrupted the thread's call, which is now, unless it was made again.
 */
static uint64_t begin_of(struct interrupted_calls *calls, uint32_t tid, uint64_t now, bool is_again)
{
    size_t i = 0;
    while (i < calls->count && calls->items[i].tid != tid)
        i++;
    if (i < calls->count && is_again)
        return calls->items[i].since;
    void *items = array_grow(calls->items, i, &calls->capacity, sizeof *calls->items);
    if (items == NULL)
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
        (long long)registers->rax == -EINTR ? find_call(registers->orig_rax) : NULL;
    if (call == NULL)
        return false;
    bool is_again = (registers->eflags & (MARK | PARITY)) == MARK;
    uint64_t waited = now - begin_of(calls, tid, now, is_again);
    registers->eflags = (registers->eflags & ~PARITY) | MARK;
    registers->rax = (unsigned long long)-RESTART_NO_HANDLER;
    if (is_again && waited >= limit_of(call, pid, tid, registers)) {
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
