/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_DWARF_DEBUG_FRAME_H
#define RECORDER_DWARF_DEBUG_FRAME_H

/*
 * The section .debug_frame: call frame information for debuggers. No segment has it, so it is read
 * from the module's file, and it has no table. The file is untrusted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The id of a CIE, in the place where an FDE has the offset of its CIE. */
#define DEBUG_FRAME_CIE 0xffffffffu

struct debug_fde {
    uint64_t code;   /* where its function begins, by the addresses in the file */
    uint32_t offset; /* in the section */
};

/* A copy of the section of one module. */
struct debug_frame {
    const uint8_t *bytes;
    size_t size;            /* below 4 GB */
    struct debug_fde *fdes; /* sorted by code */
    size_t fde_count;
};

#pragma GCC visibility push(hidden)

/* Returns the number of FDEs whose code is in [low, high), and puts them, sorted, into frame->fdes
   unless that is NULL. Reads at most `frame->size` bytes, whatever they say. */
size_t debug_frame_list(struct debug_frame *frame, uint64_t low, uint64_t high);

/* Sets `*offset` to the last FDE that does not begin after `code`. False if there is none. */
bool debug_frame_search(const struct debug_frame *frame, uint64_t code, uint32_t *offset);

#pragma GCC visibility pop

#endif
