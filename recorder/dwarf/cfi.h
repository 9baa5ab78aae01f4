/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_DWARF_CFI_H
#define RECORDER_DWARF_CFI_H

/*
 * Call frame information: finds the function around an address, and the row of rules that holds at
 * the address. Modules are untrusted: nothing outside of the segment that holds the information is
 * read, whatever it says.
 */

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#include "dwarf/cursor.h"
#include "dwarf/span.h"

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

/* How to find the value of a register in the caller. */
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
    uint32_t kind;
    int32_t value; /* an offset, a register, or the offset of an expression in the span */
};

/* The function around an address. */
struct cfi_function {
    struct cfi_span span;
    struct cursor common;   /* instructions of the CIE, which run first */
    struct cursor specific; /* instructions of the FDE */
    uintptr_t start;        /* of the code */
    uintptr_t size;
    uint64_t code_align;
    int64_t data_align;
    uint64_t ra_column;
    uint8_t encoding;     /* of code addresses */
    uintptr_t bias;       /* added to them */
    bool is_signal_frame; /* made by the kernel: the caller was interrupted, it made no call */
    bool is_augmented;
};

struct cfi_row {
    bool cfa_is_expr;
    uint32_t cfa_reg;
    int32_t cfa_offset; /* or the offset of the expression in the span */
    struct cfi_rule reg[CFI_REGS];
};

/* Rows that instructions can remember at a time. Compilers nest them one or two deep. */
#define CFI_REMEMBERED 6u

/* The last run of instructions: up to the row of `address`. */
struct cfi_run {
    const uint8_t *common;   /* where the instructions begin: identifies the function */
    const uint8_t *specific; /* likewise; NULL if no run can be continued */
    struct cursor next;      /* instruction */
    uintptr_t address;
    uintptr_t location; /* that the instructions have advanced to */
    unsigned depth;     /* rows that are remembered */
};

/* A record whose bytes are known to be there: a CIE or an FDE without its length. */
struct cfi_record {
    uintptr_t begin; /* of the length */
    struct cursor body;
};

/* The memory of a lookup: the stack of the program's thread may be too small for it. Zeros at
   first; the last run stays, so that the next one can continue it. */
struct cfi_lookup {
    void *process;                /* for modules.h; NULL if it is this one */
    struct dl_find_object object; /* addresses in that process */
    bool is_unsettled;            /* the module's file could not be read now, but may be later */
    struct cfi_function function;
    struct cfi_record fde;
    struct cfi_record cie;
    struct cfi_run run;
    struct cfi_row row;
    struct cfi_row initial;
    struct cfi_row remembered[CFI_REMEMBERED];
};

/* Sets lookup->function to the one that contains `address` in lookup->object. False if there is no
   valid information for it. */
bool cfi_find(struct cfi_lookup *lookup, uintptr_t address);

/* Sets lookup->row to the rules that hold at `address` in lookup->function. False if the
   information is corrupt or unsupported. */
bool cfi_row(struct cfi_lookup *lookup, uintptr_t address);

/* Forgets the last run. Called when modules may have been unloaded, since another one may be loaded
 * in their place. */
void cfi_forget(struct cfi_lookup *lookup);

/* Sets a cursor over the expression at `offset` in the span. */
void cfi_expression(const struct cfi_span *span, int32_t offset, struct cursor *cursor);

#pragma GCC visibility pop

#endif
