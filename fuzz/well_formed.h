/* SPDX-License-Identifier: MIT */
/** Whether what the programs write is what it says it is, by readers that share no code with them.
 */
#ifndef FUZZ_WELL_FORMED_H
#define FUZZ_WELL_FORMED_H

#include <stddef.h>

/* Each returns NULL, or what is wrong: static text. */

/** UTF-8 without control characters other than the end of a line. */
const char *well_formed_text(const char *data, size_t size);

/** JSON objects, one after the other. */
const char *well_formed_json(const char *data, size_t size);

/** Rows of equally many cells; quotes are closed, and no cell is a formula. */
const char *well_formed_csv(const char *data, size_t size);

/** Lines that end with a space and a number. */
const char *well_formed_folded(const char *data, size_t size);

#endif
