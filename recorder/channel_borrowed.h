/* SPDX-License-Identifier: MIT */
/* System calls that the collector makes threads of the recorded process execute. */
#ifndef RECORDER_CHANNEL_BORROWED_H
#define RECORDER_CHANNEL_BORROWED_H

#include <stdint.h>

/*
 * Code in the recorded process by which a thread that the collector holds executes one system call.
 * The thread enters with the number and the arguments in its registers, and with a struct
 * borrowed_frame on top of its stack, from which its registers are restored. It has signals blocked
 * meanwhile, but for those that its own instructions cause.
 */
struct borrowed_code {
    uint64_t copy;        /* entry for a call that makes a process, which ends at once */
    uint64_t call;        /* entry for any other call */
    uint64_t stack_begin; /* of a stack that nothing else uses */
    uint64_t stack_end;   /* 0: there is no such code; or BORROWED_OWN_STACK */
};

struct borrowed_frame {
    uint64_t blocked; /* signals that the thread blocks */
    uint64_t rax, rdi, rsi, rdx, r10, r8, r9, rcx, r11;
    uint64_t rip, cs, flags, rsp, ss;
};

enum { BORROWED_RUN_OVER = 1 };

/* The thread's own stack is used, below the part that its function may use: a handler of a signal,
 * which may come once the collector has died, has room there as it always has. */
enum { BORROWED_OWN_STACK = 1 };

#endif
