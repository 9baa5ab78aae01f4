/* SPDX-License-Identifier: MIT */
#include "snapshot/stop/borrow.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 4, RED_ZONE = 128 };

#define RETURN_NS UINT64_C(1000000000)
#define POLL_NS   20000

/* Results of an interrupted system call; the system makes it again. */
enum { RESTART_FIRST = 512, RESTART_LAST = 514, RESTART_BLOCK = 516 };

enum {
    SYSTEM_CALL_SIZE = 2,
    CODE_64_BITS = 0x33, /* segment */
    TRAP_FLAG = 0x100,
    STOP = 128 /* PTRACE_EVENT_STOP; not all headers have it */
};

/* How a thread stopped. */
enum stop {
    STOP_NONE, /* it did not, or it has ended */
    STOP_CALL, /* at the begin or the end of a system call */
    STOP_CREATED,
    STOP_INTERRUPTED,
    STOP_OF_GROUP, /* by job control */
    STOP_SIGNAL,   /* yet to be delivered */
};

static uint64_t borrow_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool borrow_peek(uint32_t tid, uint64_t address, void *data, size_t size)
{
    struct iovec local = {data, size}, remote = {(void *)(uintptr_t)address, size};
    return process_vm_readv((pid_t)tid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static bool borrow_get_registers(uint32_t tid, struct user_regs_struct *registers)
{
    struct iovec buffer = {registers, sizeof *registers};
    return ptrace(PTRACE_GETREGSET, (pid_t)tid, (void *)NT_PRSTATUS, &buffer) == 0;
}

static bool borrow_set_registers(uint32_t tid, const struct user_regs_struct *registers)
{
    struct user_regs_struct copy = *registers;
    struct iovec buffer = {&copy, sizeof copy};
    return ptrace(PTRACE_SETREGSET, (pid_t)tid, (void *)NT_PRSTATUS, &buffer) == 0;
}

/* The signals that a thread blocks, in the place of requests that not all headers have. */
enum { GET_BLOCKED = 0x420a, SET_BLOCKED = 0x420b };

static bool borrow_set_blocked(uint32_t tid, uint64_t blocked)
{
    return ptrace((enum __ptrace_request)SET_BLOCKED, (pid_t)tid, (void *)sizeof blocked,
                  &blocked) == 0;
}

/* Returns the signals that a thread blocks while it is borrowed: a timer's would come again and
 * again before its call. Signals that instructions cause would end the process if blocked. */
static uint64_t borrow_blocked_meanwhile(void)
{
    static const int caused[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
    uint64_t signals = UINT64_MAX;
    for (size_t i = 0; i < sizeof caused / sizeof *caused; i++)
        signals &= ~(UINT64_C(1) << (caused[i] - 1));
    return signals;
}

/* The registers of a thread, and the signals that it blocks. */
struct borrow_state {
    struct user_regs_struct registers;
    uint64_t blocked;
};

/* Puts a stopped thread where it was. Its registers come last: until then the code that it is in
 * would do so, if the recorder dies. */
static bool borrow_restore(uint32_t tid, const struct borrow_state *state)
{
    return borrow_set_blocked(tid, state->blocked) && borrow_set_registers(tid, &state->registers);
}

/* Waits until the thread stops. Sets `signal` to the signal of the stop. */
static enum stop await_stop(uint32_t tid, int *signal)
{
    const struct timespec moment = {.tv_nsec = POLL_NS};
    siginfo_t info = {0};
    for (uint64_t begin = borrow_now(); info.si_pid == 0; nanosleep(&moment, NULL)) {
        int flags = WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL;
        if (waitid(P_PID, tid, &info, flags) != 0 || borrow_now() - begin > RETURN_NS)
            return STOP_NONE;
    }
    if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
        return STOP_NONE;
    int event = info.si_status >> 8;
    *signal = info.si_status & 0xff;
    if (event == STOP)
        return *signal == SIGTRAP ? STOP_INTERRUPTED : STOP_OF_GROUP;
    if (event == PTRACE_EVENT_CLONE)
        return STOP_CREATED;
    return *signal == THREAD_CALL_STOP ? STOP_CALL : STOP_SIGNAL;
}

/* Whether nothing watches the system calls and the returns of a thread, but for a seccomp filter
 * that may be suspended. */
static bool borrow_is_unwatched(const struct threads *threads, uint32_t tid, bool *is_filtered)
{
    char path[64], line[256];
    bool is_free = false;
    snprintf(path, sizeof path, "/proc/%u/task/%u/status", threads->pid, tid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "Seccomp:", 8) == 0) {
            *is_filtered = strcmp(line, "Seccomp:\t0\n") != 0;
            is_free = threads->suspends_filters || !*is_filtered;
        }
        if (strncmp(line, "x86_Thread_features:", 20) == 0 && strstr(line, "shstk"))
            is_free = false;
    }
    if (file)
        fclose(file);
    return is_free;
}

/* Whether the thread is in a restartable sequence: it must not be taken away from there unnoticed.
 * A thread that is in a system call is in none. */
static bool borrow_is_in_sequence(uint32_t tid, const struct user_regs_struct *registers)
{
    enum { GET_CONFIGURATION = 0x420f, AT_SEQUENCE = 8 };
    struct {
        uint64_t address;
        uint32_t size, signature, flags, padding;
    } configuration;
    struct {
        uint32_t version, flags;
        uint64_t begin, size, abort;
    } sequence;
    uint64_t sequence_address;
    if ((long long)registers->orig_rax >= 0)
        return false;
    if (ptrace((enum __ptrace_request)GET_CONFIGURATION, (pid_t)tid, (void *)sizeof configuration,
               &configuration) < 0)
        return true;
    if (configuration.address == 0)
        return false;
    if (!borrow_peek(tid, configuration.address + AT_SEQUENCE, &sequence_address,
                     sizeof sequence_address))
        return true;
    return sequence_address != 0 &&
           (!borrow_peek(tid, sequence_address, &sequence, sizeof sequence) ||
            registers->rip - sequence.begin < sequence.size);
}

/* Puts the frame that the code returns by on the stack. An interrupted system call is then made
 * again, as the system would. Returns the stack pointer, or 0. */
static uint64_t borrow_push_frame(uint32_t tid, uint64_t stack_end,
                                  const struct borrow_state *state)
{
    const struct user_regs_struct *r = &state->registers;
    struct borrowed_frame frame = {state->blocked, r->rax, r->rdi,    r->rsi, r->rdx,
                                   r->r10,         r->r8,  r->r9,     r->rcx, r->r11,
                                   r->rip,         r->cs,  r->eflags, r->rsp, r->ss};
    long long error = -(long long)r->rax;
    if ((long long)r->orig_rax >= 0 &&
        ((error >= RESTART_FIRST && error <= RESTART_LAST) || error == RESTART_BLOCK)) {
        frame.rip -= SYSTEM_CALL_SIZE;
        frame.rax = error == RESTART_BLOCK ? SYS_restart_syscall : r->orig_rax;
    }
    if (stack_end == BORROWED_OWN_STACK)
        stack_end = (r->rsp - RED_ZONE) & -UINT64_C(16);
    uint64_t frame_address = stack_end - sizeof frame;
    struct iovec local = {&frame, sizeof frame},
                 remote = {(void *)(uintptr_t)frame_address, sizeof frame};
    bool is_put = process_vm_writev((pid_t)tid, &local, 1, &remote, 1, 0) == sizeof frame;
    return is_put ? frame_address : 0;
}

/* Puts a thread that has come back to where it was, in a stop where the system still makes
 * interrupted calls again. */
static enum borrow_result borrow_put_back(struct thread_state *thread,
                                          const struct borrow_state *before, bool is_at_call)
{
    int signal = 0;
    if (is_at_call) {
        ptrace(PTRACE_INTERRUPT, (pid_t)thread->tid, NULL, NULL);
        ptrace(PTRACE_CONT, (pid_t)thread->tid, NULL, NULL);
        enum stop stop = await_stop(thread->tid, &signal);
        if (stop == STOP_NONE)
            return BORROW_RUNS_ON;
        if (stop == STOP_SIGNAL)
            thread->signal = signal;
    }
    return borrow_restore(thread->tid, before) ? BORROW_DONE : BORROW_RUNS_ON;
}

/* Takes the signal that came before the call, and puts the thread back. A system that sends the
 * signal instead of the call sends it because of this call. */
static enum borrow_result borrow_give_way(struct thread_state *thread, int signal,
                                          const struct borrow_state *before)
{
    siginfo_t info = {0};
    ptrace(PTRACE_GETSIGINFO, (pid_t)thread->tid, NULL, &info);
    if (!(signal == SIGSYS && info.si_code > 0))
        thread->signal = signal;
    return borrow_put_back(thread, before, false) == BORROW_DONE ? BORROW_REFUSED : BORROW_RUNS_ON;
}

/* Follows the thread through the call. */
static enum borrow_result borrow_follow(struct thread_state *thread, struct borrowed_call *call,
                                        const struct borrow_state *before)
{
    pid_t tid = (pid_t)thread->tid;
    struct user_regs_struct registers;
    unsigned long created = 0;
    int signal = 0;
    for (bool has_begun = false;; has_begun = true) {
        if (ptrace(PTRACE_SYSCALL, tid, NULL, NULL) != 0)
            return BORROW_RUNS_ON;
        enum stop stop = await_stop(thread->tid, &signal);
        if (stop == STOP_CREATED && ptrace(PTRACE_GETEVENTMSG, tid, NULL, &created) == 0) {
            call->created = (uint32_t)created;
            continue;
        }
        if (stop == STOP_NONE || stop == STOP_CREATED)
            return BORROW_RUNS_ON;
        if (stop != STOP_CALL)
            return borrow_give_way(thread, stop == STOP_SIGNAL ? signal : 0, before);
        if (has_begun)
            break;
    }
    if (!borrow_get_registers(thread->tid, &registers))
        return BORROW_RUNS_ON;
    call->result = (int64_t)registers.rax;
    return borrow_put_back(thread, before, true);
}

/* Sets out with a thread: where it is to be, with these arguments. Sets `before` to its state.
 * Returns false if it must not: nothing has happened then. */
static bool borrow_set_out(const struct threads *threads, const struct thread_state *thread,
                           const struct borrowed_code *code, struct user_regs_struct *registers,
                           struct borrow_state *before)
{
    unsigned char instruction[SYSTEM_CALL_SIZE];
    int signal = 0;
    bool is_filtered = false;
    if (!thread->is_stopped || thread->has_ended || thread->signal != 0 ||
        await_stop(thread->tid, &signal) != STOP_INTERRUPTED ||
        !borrow_get_registers(thread->tid, &before->registers) ||
        before->registers.cs != CODE_64_BITS ||
        ptrace((enum __ptrace_request)GET_BLOCKED, (pid_t)thread->tid,
               (void *)sizeof before->blocked, &before->blocked) != 0 ||
        !borrow_is_unwatched(threads, thread->tid, &is_filtered) ||
        borrow_is_in_sequence(thread->tid, &before->registers) ||
        !borrow_peek(thread->tid, code->call, instruction, sizeof instruction) ||
        memcmp(instruction, "\x0f\x05", sizeof instruction) != 0)
        return false;
    struct user_regs_struct begin = before->registers;
    begin.rsp = borrow_push_frame(thread->tid, code->stack_end, before);
    begin.rip = registers->rip;
    begin.rax = registers->rax;
    begin.orig_rax = (unsigned long long)-1;
    begin.rdi = registers->rdi;
    begin.rsi = registers->rsi;
    begin.rdx = registers->rdx;
    begin.r10 = registers->r10;
    begin.r8 = registers->r8;
    begin.r9 = registers->r9;
    begin.eflags &= ~(unsigned long long)TRAP_FLAG;
    void *options = (void *)(intptr_t)(PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD |
                                       (is_filtered ? PTRACE_O_SUSPEND_SECCOMP : 0));
    return begin.rsp != 0 && ptrace(PTRACE_SETOPTIONS, (pid_t)thread->tid, NULL, options) == 0 &&
           borrow_set_registers(thread->tid, &begin) &&
           borrow_set_blocked(thread->tid, before->blocked | borrow_blocked_meanwhile());
}

enum borrow_result borrow_call(const struct threads *threads, struct thread_state *thread,
                               struct borrowed_call *call)
{
    struct borrow_state before;
    struct user_regs_struct registers = {
        .rip = call->makes_process ? call->code->copy : call->code->call,
        .rax = call->number,
        .rdi = call->arguments[0],
        .rsi = call->arguments[1],
        .rdx = call->arguments[2],
        .r10 = call->arguments[3],
        .r8 = call->arguments[4],
        .r9 = call->arguments[5],
    };
    if (!borrow_set_out(threads, thread, call->code, &registers, &before))
        return BORROW_REFUSED;
    thread->is_stopped = false;
    enum borrow_result result = borrow_follow(thread, call, &before);
    thread->is_stopped = result != BORROW_RUNS_ON;
    return result;
}

/* Whether a thread is still on its way back, from a call that a dead collector made it execute. */
static bool borrow_is_in_use(const struct threads *threads, const struct borrowed_code *code)
{
    for (size_t i = 0; i < threads->count; i++) {
        uint64_t stack_pointer = threads->items[i].registers[THREAD_STACK_POINTER];
        if (threads->items[i].is_stopped && stack_pointer >= code->stack_begin &&
            stack_pointer < code->stack_end)
            return true;
    }
    return false;
}

enum borrow_result borrow_by_any(struct threads *threads, struct borrowed_call *call)
{
    enum borrow_result result = BORROW_REFUSED;
    int tries = 0;
    if (borrow_is_in_use(threads, call->code))
        return result;
    for (size_t i = 0; i < threads->count && result == BORROW_REFUSED && tries < TRIES; i++) {
        tries += threads->items[i].is_stopped;
        result = borrow_call(threads, &threads->items[i], call);
    }
    threads->are_stopped &= result != BORROW_RUNS_ON;
    return result;
}

/* Whether the run has said that it is over. */
static bool borrow_run_is_over(uint32_t tid, const struct borrowed_run *run)
{
    uint32_t over = 0;
    return borrow_peek(tid, run->over, &over, sizeof over) && over == BORROWED_RUN_OVER;
}

/* Looks whether a thread has stopped, as await_stop() does, but does not wait. */
static enum stop look_for_stop(uint32_t tid, int *signal)
{
    siginfo_t info = {0};
    int flags = WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL;
    if (waitid(P_PID, tid, &info, flags) != 0 || info.si_pid == 0)
        return STOP_NONE;
    return await_stop(tid, signal);
}

/* Whether the thread still has the stack of the code. If not, it was not taken away in time and has
 * returned: to put it back would have it do again what it has done since. */
static bool borrow_is_there(uint32_t tid, const struct borrowed_code *code)
{
    struct user_regs_struct registers;
    return borrow_get_registers(tid, &registers) && registers.rsp >= code->stack_begin &&
           registers.rsp < code->stack_end;
}

/*
 * Follows the thread through a run. A signal that comes before all are blocked comes first; one
 * that comes when it is over is to be delivered where the thread was. In between only one that
 * cannot be blocked stops the thread, and is sent again.
 */
static enum borrow_result borrow_follow_run(const struct threads *threads,
                                            struct thread_state *thread,
                                            const struct borrowed_run *run,
                                            const struct borrow_state *before)
{
    const struct timespec moment = {.tv_nsec = POLL_NS};
    pid_t tid = (pid_t)thread->tid;
    bool is_to_stop = false;
    int signal = 0;
    enum stop stop = STOP_NONE;
    if (ptrace(PTRACE_CONT, tid, NULL, NULL) != 0)
        return BORROW_RUNS_ON;
    for (uint64_t begin = borrow_now(); !borrow_run_is_over(thread->tid, run);
         nanosleep(&moment, NULL)) {
        stop = look_for_stop(thread->tid, &signal);
        if (borrow_now() - begin > RETURN_NS || (stop == STOP_NONE && kill(tid, 0) != 0))
            return BORROW_RUNS_ON;
        if (stop == STOP_NONE || borrow_run_is_over(thread->tid, run))
            continue;
        if (stop == STOP_SIGNAL && signal != SIGSTOP)
            return borrow_give_way(thread, signal, before);
        /* Not for an interruption of ours from before. */
        is_to_stop |= stop == STOP_SIGNAL || stop == STOP_OF_GROUP;
        ptrace(PTRACE_CONT, tid, NULL, NULL);
    }
    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    stop = await_stop(thread->tid, &signal);
    if (stop == STOP_NONE || !borrow_is_there(thread->tid, run->code) ||
        !borrow_restore(thread->tid, before))
        return BORROW_RUNS_ON;
    if (stop == STOP_SIGNAL)
        thread->signal = signal;
    if (is_to_stop)
        syscall(SYS_tgkill, threads->pid, thread->tid, SIGSTOP);
    return BORROW_DONE;
}

enum borrow_result borrow_run(const struct threads *threads, struct thread_state *thread,
                              struct borrowed_run *run)
{
    struct borrow_state before;
    struct user_regs_struct registers = {.rip = run->entry};
    if (!borrow_set_out(threads, thread, run->code, &registers, &before))
        return BORROW_REFUSED;
    thread->is_stopped = false;
    enum borrow_result result = borrow_follow_run(threads, thread, run, &before);
    thread->is_stopped = result != BORROW_RUNS_ON;
    return result;
}
