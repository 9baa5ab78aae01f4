/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_DWARF_STEP_H
#define RECORDER_DWARF_STEP_H

/* A step from a frame to its caller, and the words of the process that it reads. */

#include <stdbool.h>
#include <stdint.h>

#include "dwarf/cfi.h"

#pragma GCC visibility push(hidden)

/** The memory that one walk may read. */
struct unwind_mem {
    uintptr_t own_low; /* of the thread's own stack; read without asking */
    uintptr_t own_high;
    uintptr_t probed_low; /* of other pages that this walk found to be readable */
    uintptr_t probed_high;
    bool is_foreign; /* other memory than the thread's own stack was read */
    void *process;   /* for unwind_read_elsewhere() */
};

/** All words are elsewhere: none is read without asking. */
#define UNWIND_MEM_PROBED                                                                          \
    (struct unwind_mem)                                                                            \
    {                                                                                              \
        .own_low = UINTPTR_MAX, .own_high = sizeof(uintptr_t)                                      \
    }

/** Like unwind_read(), for an address outside of the thread's own stack. Each program that follows
 * frames has its own. */
bool unwind_read_elsewhere(struct unwind_mem *mem, uintptr_t address, uintptr_t *value);

/** Reads the word at `address` into `*value`. False, and `*value` untouched, if it cannot be read.
 */
static inline bool unwind_read(struct unwind_mem *mem, uintptr_t address, uintptr_t *value)
{
    if (__builtin_expect(address < mem->own_low || address > mem->own_high - sizeof *value, 0))
        return unwind_read_elsewhere(mem, address, value);
    *value = *(const uintptr_t *)address; /* x86 reads unaligned words */
    return true;
}

#pragma GCC visibility pop

/* The general path: one step outwards by the full rules, with all registers. */

#pragma GCC visibility push(hidden)

/** The most words whose reading one step can log. */
#define UNWIND_STEP_READS 12

/** Registers that are the state of a walk. */
#define STEP_STATE_REGS (1u << CFI_RSP | 1u << CFI_RBP | 1u << CFI_RA)

/** Registers that every function keeps for its caller, by the ABI; and the address. */
#define STEP_CALLEE_SAVED (STEP_STATE_REGS | 1u << CFI_RBX | 0xfu << CFI_R12)

/** The registers of a frame. reg[CFI_RA] is the address as it is reported: one more than the
   address of the instruction if the frame was interrupted. */
struct step_regs {
    uintptr_t reg[CFI_REGS];
    uint32_t known; /* a bit for each register whose value is known */
};

struct step_read {
    uintptr_t addr;
    uintptr_t value;
};

/** The words and registers that a step finds pc, sp and rbp by. */
struct step_log {
    uint32_t count; /* words read; above UNWIND_STEP_READS some are missing */
    struct step_read reads[UNWIND_STEP_READS];
    uint32_t used;        /* registers used */
    bool is_signal_frame; /* the frame was made by the kernel, to call a signal handler */
};

enum step_result {
    STEP_DONE,
    STEP_END,     /* the outermost frame */
    STEP_UNKNOWN, /* needs a register that is not known */
    STEP_BAD,     /* no or corrupt information, or memory that cannot be read */
};

struct unwind_scratch;

/** Replaces the registers of a frame by its caller's, and logs the step in scratch->log. `regs`
 * stay as they are unless it returns STEP_DONE. */
enum step_result unwind_step(struct step_regs *regs, struct unwind_mem *mem,
                             struct unwind_scratch *scratch);

/** Sets the registers of the function that this is inlined into. */
static inline __attribute__((always_inline)) void step_regs_here(struct step_regs *regs)
{
    __asm__ volatile("movq %%rbx, %c[rbx](%[r])\n\t"
                     "movq %%rbp, %c[rbp](%[r])\n\t"
                     "movq %%rsp, %c[rsp](%[r])\n\t"
                     "movq %%r12, %c[r12](%[r])\n\t"
                     "movq %%r13, %c[r13](%[r])\n\t"
                     "movq %%r14, %c[r14](%[r])\n\t"
                     "movq %%r15, %c[r15](%[r])\n\t"
                     "leaq 1f(%%rip), %%rax\n"
                     "1:\tmovq %%rax, %c[ra](%[r])"
                     :
                     : [r] "r"(&regs->reg[0]), [rbx] "i"(8 * CFI_RBX), [rbp] "i"(8 * CFI_RBP),
                       [rsp] "i"(8 * CFI_RSP), [r12] "i"(8 * 12), [r13] "i"(8 * 13),
                       [r14] "i"(8 * 14), [r15] "i"(8 * 15), [ra] "i"(8 * CFI_RA)
                     : "rax", "memory");
    regs->known = STEP_CALLEE_SAVED;
}

/** Completes the state of a walk after a step: an unknown rbp is 0: it finds no frame. Compiled
 * rules take every register of the state for known. */
static inline void step_settle_state(struct step_regs *regs)
{
    if ((regs->known >> CFI_RBP & 1) == 0)
        regs->reg[CFI_RBP] = 0;
    regs->known |= STEP_STATE_REGS;
}

#pragma GCC visibility pop

#endif
