/* SPDX-License-Identifier: MIT */
/**
 * How a process of the program asks the collector for a snapshot of its memory, and how it
 * describes this memory. Part of the channel: others include channel.h.
 */
#ifndef RECORDER_CHANNEL_SNAPSHOT_H
#define RECORDER_CHANNEL_SNAPSHOT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

/* System calls that the collector makes threads of the recorded process execute. */

/**
 * Code in the recorded process: a thread that the collector holds executes one system call by it.
 * The thread enters with the number and the arguments in its registers, and with a struct
 * borrowed_frame on top of its stack; its registers are restored from there. It has signals blocked
 * meanwhile, but for those that its own instructions cause.
 */
struct borrowed_code {
    uint64_t copy;        /* entry for a call that makes a process; that ends at once */
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

/** The thread's own stack is used, below the part that its function may use: a handler of a signal
 * (it may come once the collector has died) has room there as always. */
enum { BORROWED_OWN_STACK = 1 };

/**
 * A request for a snapshot, one for each process: see channel_request(). A thread that ends the
 * process goes from NONE to ASKED, once it has written the rest, and waits on `state` as a futex,
 * until the collector answers something else, or for a limited time: it then withdraws the request,
 * ASKED to NONE, and the process goes on. So the collector answers by a compare-exchange, before it
 * completes the snapshot in the trace: of a withdrawn request there is none. It expects the memory
 * of the process to vanish at any time. A process asks at most once in its life, not counting
 * SNAPSHOT_DENIED.
 */
enum snapshot_state {
    SNAPSHOT_NONE,
    SNAPSHOT_ASKED,
    SNAPSHOT_TAKEN,
    SNAPSHOT_REFUSED,
    /** The system does not let the collector look into the process. The thread permits it, if it
       can, and asks once more, now with `has_permitted` set: then this is no answer. */
    SNAPSHOT_DENIED
};

enum {
    SNAPSHOT_REGISTERS = 17, /* DWARF numbers 0 to 16 of x86-64; 16 is the program counter */
    SNAPSHOT_FRAMES = 256,
    SNAPSHOT_FRAMES_OUTERMOST = 32 /* of these, if there are more frames */
};

struct snapshot_request {
    alignas(64) _Atomic uint32_t state; /* enum snapshot_state */
    uint32_t tid;                       /* the thread that asks, and waits */
    uint32_t reason;                    /* enum ttd_snapshot_reason */
    uint32_t contents;                  /* sum of enum ttd_snapshot_contents */
    uint32_t has_permitted;             /* see SNAPSHOT_DENIED */
    /** The first word of the thread's stack that counts: everything below belongs to frames of the
     * C library and of the recorder. */
    uint64_t stack_pointer;
    uint64_t thread_pointer;  /* the base of fs */
    uint64_t coroutine_start; /* the return address of functions that makecontext() starts */
    /** Registers as they were at `stack_pointer`: bit n of `registers_valid` for DWARF number n. */
    uint64_t registers_valid;
    uint64_t registers[SNAPSHOT_REGISTERS];
    /** The address of the first struct own_memory of the process: set from its begin on. */
    uint64_t own_memory;
    struct borrowed_code borrowed; /* likewise */
    /** The fatal signal: its number (0 for none), si_code and si_addr. */
    uint32_t signal;
    int32_t code;
    uint64_t fault_address;
    /** The frames from `stack_pointer` on, innermost first: where each goes on, as in stacks of
       calls; and its canonical frame address, 0 if that is not known (the outermost frame). Frame i
       occupies [CFA of i - 1, CFA of i), and frame 0 begins at `stack_pointer`. */
    uint32_t frame_count;
    uint64_t frame_pcs[SNAPSHOT_FRAMES];
    uint64_t frame_cfas[SNAPSHOT_FRAMES];
};

/** Memory that the recorder has mapped for itself, in the recorded process: no pointer within it is
 * the program's. A list; entries of size 0 are unused. */
enum { OWN_RANGES = 255 };

struct own_memory {
    _Atomic uint64_t next; /* address of the next part of the list, or 0 */
    uint64_t reserved;
    struct own_range {
        _Atomic uint64_t begin;
        _Atomic uint64_t size;
    } ranges[OWN_RANGES];
};

#endif
