/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_PATCH_CLOBBERS_H
#define RECORDER_PATCH_CLOBBERS_H

/*
 * Whether callers of a function must expect that it changes every register that functions may
 * change. A compiler that sees both (-fipa-ra of gcc) may leave values in registers that the
 * function does not touch; a hook would. Where it calls a function that the compiler did not see,
 * callers expect everything. Pure, but for the reader of the code.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Returns how many bytes of code there are at an address, of which INSTRUCTION_MAX are enough, and
 * sets `code` to them; 0 for none. */
typedef size_t clobbers_code(void *context, uint64_t address, const uint8_t **code);

/* Searches the code that can be reached from `entry` by jumps and calls for a call through a
 * pointer or through a table of addresses. Returns false if none was found, in a reasonable time.
 */
bool clobbers_all(uint64_t entry, clobbers_code *code, void *context);

#pragma GCC visibility pop

#endif
