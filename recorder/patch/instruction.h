/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_PATCH_INSTRUCTION_H
#define RECORDER_PATCH_INSTRUCTION_H

/*
 * The size of one x86-64 instruction, and its parts that depend on its place. Pure: no I/O, no
 * memory but the arguments; used in the recorded process and from outside.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INSTRUCTION_MAX = 15 };

/** Where the processor goes on after an instruction. */
enum instruction_flow {
    FLOW_NEXT,          /* behind it */
    FLOW_JUMP,          /* at a target that the instruction has: jmp */
    FLOW_BRANCH,        /* there or behind it, by the flags: je */
    FLOW_COUNTER,       /* there or behind it, by rcx: loop, jrcxz */
    FLOW_CALL,          /* there, and then behind it */
    FLOW_CALL_INDIRECT, /* at an address in a register or in memory, and then behind it */
    FLOW_END,           /* nowhere that is known: ret, an indirect jmp, ud2 */
    FLOW_FIXED,         /* behind it, but it means something else at another place: int3, xbegin */
};

struct instruction {
    uint8_t size;
    uint8_t opcode_at;     /* offset of the last byte of the opcode */
    uint8_t modrm_at;      /* offset of the ModRM byte; 0 without one */
    uint8_t relative_at;   /* offset of a number that counts from the end of the instruction: the
                              target of a jump or the displacement from rip; 0 without one */
    uint8_t relative_size; /* its bytes, 1 or 4 */
    enum instruction_flow flow;
};

#pragma GCC visibility push(hidden)

/**
 * Decodes the instruction that begins at `bytes`; `size` bytes may be read. False, and the result
 * untouched, if it is no instruction that compilers and assemblers make, or is not all there.
 */
bool instruction_decode(const uint8_t *bytes, size_t size, struct instruction *instruction);

/** Returns the address that the relative number of an instruction at `address` means. */
uint64_t instruction_target(const struct instruction *instruction, const uint8_t *bytes,
                            uint64_t address);

#pragma GCC visibility pop

/*
 * Whether callers of a function must expect that it changes every register that functions may
 * change. A compiler that sees both (-fipa-ra of gcc) may leave values in registers that the
 * function does not touch; a hook would. Where it calls a function that the compiler did not see,
 * callers expect everything. Pure, but for the reader of the code.
 */

#pragma GCC visibility push(hidden)

/** Returns how many bytes of code there are at an address (INSTRUCTION_MAX are enough), and sets
 * `code` to them; 0 for none. */
typedef size_t clobbers_code(void *context, uint64_t address, const uint8_t **code);

/** Searches the code that can be reached from `entry` by jumps and calls for a call through a
 * pointer or through a table of addresses. Returns false if none was found, in a reasonable time.
 */
bool clobbers_all(uint64_t entry, clobbers_code *code, void *context);

#pragma GCC visibility pop

#endif
