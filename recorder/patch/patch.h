/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_PATCH_PATCH_H
#define RECORDER_PATCH_PATCH_H

/*
 * A function whose first bytes are replaced by a jump elsewhere, and the trampoline: it does the
 * same as these bytes did and then goes on in the function. Pure, as instruction.h is: the caller
 * reads and writes the memory, while no other thread runs.
 *
 * A trampoline leaves the stack as the function would: a call in it pushes the return address in
 * the function. So no return address is ever in a trampoline, and unwind information of the
 * function holds there for the program counter that patch_pc_back() gives. Shadow stacks would not
 * allow that.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PATCH_JUMP_SIZE = 5,
    PATCH_MOVED_MAX = PATCH_JUMP_SIZE - 1 + 15, /* bytes of the instructions that are replaced */
    PATCH_TRAMPOLINE_MAX = 64,
    PATCH_STUB_SIZE = 14,
    PATCH_GATE_SIZE = 10 + PATCH_STUB_SIZE,
    PATCH_GATE_ARGUMENTS = 5,
    PATCH_POINTS_MAX = 16,
    PATCH_SCAN_MAX = 1 << 16, /* bytes of a function that are searched for jumps */
};

enum patch_status {
    PATCH_OK,
    PATCH_UNKNOWN,   /* an instruction that cannot be decoded */
    PATCH_SHORT,     /* the function ends before five bytes, and no padding follows */
    PATCH_JUMPED_TO, /* a jump leads to bytes that would be replaced */
    PATCH_FIXED,     /* an instruction that means something else at another place */
    PATCH_FAR,       /* something is more than 2 GB away from where it must be reached */
};

/** A place in the trampoline where all is as at `pc` in the program without it. */
struct patch_point {
    uint64_t pc;
    uint8_t offset;      /* in the trampoline */
    bool is_instruction; /* of a moved instruction */
};

struct patch {
    uint64_t entry;                     /* address of the function */
    uint64_t trampoline;                /* address of the trampoline */
    uint8_t jump[PATCH_JUMP_SIZE];      /* stands at the entry */
    uint8_t original[PATCH_JUMP_SIZE];  /* stood there */
    uint8_t code[PATCH_TRAMPOLINE_MAX]; /* stands in the trampoline */
    uint8_t code_size;
    uint8_t point_count;
    struct patch_point points[PATCH_POINTS_MAX];
};

/** Where a program counter is, and where it is to be moved. */
enum patch_place {
    PATCH_ELSEWHERE, /* it need not be moved */
    PATCH_MOVED,
    PATCH_BETWEEN, /* there is no such place now: the thread has to run a little first */
};

#pragma GCC visibility push(hidden)

/**
 * Makes the patch of a function at `entry`, whose bytes, as they are without it, are at `bytes`:
 * `size` of them, to its end or the end of its padding. Calls are to go to `destination`, within 2
 * GB of the entry, as `trampoline` is; that has room for PATCH_TRAMPOLINE_MAX bytes. On failure
 * `patch` is undefined.
 */
enum patch_status patch_make(struct patch *patch, uint64_t entry, const uint8_t *bytes, size_t size,
                             uint64_t destination, uint64_t trampoline);

/** Returns why there is no patch, as the end of a sentence. */
const char *patch_reason(enum patch_status status);

/** Moves the program counter of a thread that was stopped before the function was patched. A thread
 * at the entry has not begun the call: it stays. */
enum patch_place patch_pc_forward(const struct patch *patch, uint64_t *pc);

/** Moves the counter of a thread that was stopped in the trampoline to its place in the function.
 */
enum patch_place patch_pc_back(const struct patch *patch, uint64_t *pc);

/** Writes a jump to any address; changes no register: a destination near a function for code that
 * is far from it. */
void patch_stub(uint8_t stub[PATCH_STUB_SIZE], uint64_t address);

/** Writes a stub that passes `argument` as an argument more than the `count` integers that the
 * function has, at most PATCH_GATE_ARGUMENTS: so one hook serves many functions. */
void patch_gate(uint8_t gate[PATCH_GATE_SIZE], unsigned count, uint64_t argument, uint64_t address);

#pragma GCC visibility pop

#endif
