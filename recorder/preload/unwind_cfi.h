/* SPDX-License-Identifier: MIT */
#ifndef TTD_PRELOAD_UNWIND_CFI_H
#define TTD_PRELOAD_UNWIND_CFI_H

/*
 * Call frame information: from an address to the row of rules that holds there. Modules are
 * untrusted: nothing outside of the segment that holds the information is read, whatever it says.
 */

#include "unwind_cursor.h"

#include <dlfcn.h>

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* DWARF register numbers. */
enum {
    CFI_RBX = 3,
    CFI_RBP = 6,
    CFI_RSP = 7,
    CFI_R12 = 12,
    CFI_R15 = 15,
    CFI_RA = 16,
    CFI_REGS = 17,
};

/* How to find what a register held in the caller. */
enum cfi_how {
    CFI_SAME,
    CFI_UNDEFINED,
    CFI_OFFSET,     /* in memory, at the CFA + value */
    CFI_VAL_OFFSET, /* is the CFA + value */
    CFI_EXPR,       /* in memory, at the address that the expression gives */
    CFI_VAL_EXPR,   /* is what the expression gives */
    CFI_REGISTER,   /* is in register `value` */
};

struct cfi_rule {
    uint32_t how;
    int32_t value; /* an offset, a register, or the place of an expression in the span */
};

/* Memory that CFI is read from. With `needs_probe`, its pages may not all be there. */
struct cfi_span {
    uintptr_t low;
    uintptr_t high;
    bool needs_probe;
};

/* The function around an address. */
struct cfi_function {
    struct cfi_span span;
    struct cursor common;   /* instructions that every function of this kind starts with */
    struct cursor specific; /* its own */
    uintptr_t start;        /* of the code */
    uintptr_t size;
    uint64_t code_align;
    int64_t data_align;
    uint64_t ra_column;
    uint8_t encoding;     /* of code addresses */
    bool is_signal_frame; /* a frame made by the kernel: the caller was interrupted, not calling */
    bool is_augmented;
};

struct cfi_row {
    bool cfa_is_expr;
    uint32_t cfa_reg;
    int32_t cfa_offset; /* or the place of the expression */
    struct cfi_rule reg[CFI_REGS];
};

#define CFI_REMEMBERED 6u

/* How far the instructions of a function have been run: up to the row of `addr`. */
struct cfi_run {
    const uint8_t *common;   /* where its instructions begin: which function it is */
    const uint8_t *specific; /* likewise; NULL if there is none to go on with */
    struct cursor next;      /* instruction */
    uintptr_t address;
    uintptr_t location; /* that the instructions have advanced to */
    unsigned depth;
};

/* A lookup under way. Not on the stack of the program's thread, which may be a small one. Zeros at
   first; the last run stays, to go on from there. */
struct cfi_lookup {
    struct dl_find_object object;
    struct cfi_function function;
    struct cfi_run run;
    struct cfi_row row;
    struct cfi_row initial;
    struct cfi_row remembered[CFI_REMEMBERED];
};

/* To be called once, before the others. */
void cfi_setup(void);

/* Sets l->function to the one that contains `addr` in l->object. False if that has no valid
   information. */
bool cfi_find(struct cfi_lookup *lookup, uintptr_t address);

/* Sets l->row to the rules that hold at `addr` in l->function. False if the information is corrupt
   or unsupported. */
bool cfi_row(struct cfi_lookup *lookup, uintptr_t address);

/* To be called when modules may have been unloaded: others may be in their place. */
void cfi_forget(struct cfi_lookup *lookup);

/* A cursor over the expression at `place`. */
struct cursor cfi_expression(const struct cfi_span *span, int32_t place);

#pragma GCC visibility pop

#endif
