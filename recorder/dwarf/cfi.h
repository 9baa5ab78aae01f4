/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_DWARF_CFI_H
#define RECORDER_DWARF_CFI_H

/* Call frame information: the memory that has it, .debug_frame, and the rules for an address. */

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dwarf/dwarf.h"

/** Memory that call frame information is read from: the segment of a module that holds it. [low,
 * high) may be read. */
struct cfi_span {
    uintptr_t low;
    uintptr_t high;
    bool is_fetched; /* by span_fetch(); otherwise the memory is this process's, and all is there */
    void *process;   /* for span_fetch() */
};

#pragma GCC visibility push(hidden)

/**
 * Returns a cursor over [address, address + size) within the span; one that is bad if some of it
 * cannot be read. Bytes that were copied stay until the next step. Each program that follows frames
 * has its own.
 */
struct cursor span_fetch(const struct cfi_span *span, uintptr_t address, size_t size);

#pragma GCC visibility pop

static inline __attribute__((always_inline)) struct cursor
span_cursor(const struct cfi_span *span, uintptr_t address, size_t size)
{
    struct cursor cursor = {0};
    if (address < span->low || address > span->high || size > span->high - address) {
        cursor.is_bad = true;
        return cursor;
    }
    if (span->is_fetched)
        return span_fetch(span, address, size);
    cursor.next = (const uint8_t *)address;
    cursor.end = cursor.next + size;
    return cursor;
}

/*
 * Call frame information without a table, listed from the module's file: the section .debug_frame,
 * for debuggers, which no segment has; or .eh_frame of a module without .eh_frame_hdr, as of
 * programs that are linked statically: that is read in memory. The file is untrusted.
 */

/** The id of a CIE, in the place where an FDE has the offset of its CIE. */
#define DEBUG_FRAME_CIE 0xffffffffu

struct debug_fde {
    uint64_t code;   /* where its function begins, by the addresses in the file */
    uint32_t offset; /* in the section */
};

/** A copy of the section of one module. */
struct debug_frame {
    uint64_t loaded; /* address of .eh_frame, by the addresses in the file; 0: it is .debug_frame */
    const uint8_t *bytes;   /* NULL for .eh_frame, once it is listed */
    size_t size;            /* below 4 GB */
    struct debug_fde *fdes; /* sorted by code */
    size_t fde_count;
};

#pragma GCC visibility push(hidden)

/** Returns the number of FDEs whose code is in [low, high), and puts them, sorted, into frame->fdes
   unless that is NULL. Reads at most `frame->size` bytes, whatever they say. */
size_t debug_frame_list(struct debug_frame *frame, uint64_t low, uint64_t high);

struct cfi_lookup;

/** Does so for a copy of .eh_frame. `lookup` is memory for it. */
size_t eh_frame_list(struct debug_frame *frame, struct cfi_lookup *lookup, uint64_t low,
                     uint64_t high);

/** Sets `*offset` to the last FDE that does not begin after `code`. False if there is none. */
bool debug_frame_search(const struct debug_frame *frame, uint64_t code, uint32_t *offset);

#pragma GCC visibility pop

/*
 * Call frame information: finds the function around an address, and the row of rules that holds at
 * the address. Modules are untrusted: nothing outside of the segment that holds the information is
 * read, whatever it says.
 */

#pragma GCC visibility push(hidden)

/** DWARF register numbers. */
enum {
    CFI_RBX = 3,
    CFI_RBP = 6,
    CFI_RSP = 7,
    CFI_R12 = 12,
    CFI_R15 = 15,
    CFI_RA = 16,
    CFI_REGS = 17,
};

/** How to find the value of a register in the caller. */
enum cfi_how {
    CFI_SAME,
    CFI_UNDEFINED,
    CFI_OFFSET,     /* in memory, at the CFA + value */
    CFI_VAL_OFFSET, /* is the CFA + value */
    CFI_EXPR,       /* in memory, at the address that the expression gives */
    CFI_VAL_EXPR,   /* is the value of the expression */
    CFI_REGISTER,   /* is in register `value` */
};

struct cfi_rule {
    uint32_t kind;
    int32_t value; /* an offset, a register, or the offset of an expression in the span */
};

/** The function around an address. */
struct cfi_function {
    struct cfi_span span;
    struct cursor common;   /* instructions of the CIE; they run first */
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

/** Rows that instructions can remember at a time. Compilers nest them one or two deep. */
#define CFI_REMEMBERED 6u

/** The last run of instructions: up to the row of `address`. */
struct cfi_run {
    const uint8_t *common;   /* where the instructions begin: identifies the function */
    const uint8_t *specific; /* likewise; NULL if no run can be continued */
    struct cursor next;      /* instruction */
    uintptr_t address;
    uintptr_t location; /* that the instructions have advanced to */
    unsigned depth;     /* rows that are remembered */
};

/** A record whose bytes are known to be there: a CIE or an FDE without its length. */
struct cfi_record {
    uintptr_t begin; /* of the length */
    struct cursor body;
};

/** The memory of a lookup: the stack of the program's thread may be too small for it. Zeros at
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

/** Sets lookup->function to the one that contains `address` in lookup->object. False if there is no
   valid information for it. */
bool cfi_find(struct cfi_lookup *lookup, uintptr_t address);

/** Sets lookup->row to the rules that hold at `address` in lookup->function. False if the
   information is corrupt or unsupported. */
bool cfi_row(struct cfi_lookup *lookup, uintptr_t address);

/** Forgets the last run. Called when modules may have been unloaded, since another one may be
 * loaded in their place. */
void cfi_forget(struct cfi_lookup *lookup);

/** Sets a cursor over the expression at `offset` in the span. */
void cfi_expression(const struct cfi_span *span, int32_t offset, struct cursor *cursor);

#pragma GCC visibility pop

/*
 * The modules of the process whose frames are followed. Each program that follows frames has its
 * own functions for that: the preload library is in that process, the collector is not.
 */

#pragma GCC visibility push(hidden)

/** Sets lookup->object to the module that has `address`. False if there is none. */
bool modules_find(struct cfi_lookup *lookup, uintptr_t address);

/**
 * Returns the readable segment around `address`. For a program that the kernel mapped in pieces,
 * lookup->object is only one segment, and seldom the one that holds `address`.
 */
struct cfi_span modules_segment(const struct cfi_lookup *lookup, uintptr_t address);

/**
 * Returns the section .debug_frame of lookup->object, NULL if it is not known, and sets `*bias` to
 * the difference of its addresses in the process to those in the file. Called for an address that
 * its segments do not cover.
 */
const struct debug_frame *modules_debug_frame(struct cfi_lookup *lookup, uintptr_t *bias);

#pragma GCC visibility pop

#endif
