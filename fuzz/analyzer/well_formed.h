/* SPDX-License-Identifier: MIT */
/** Syntax checks of the programs' output, by parsers that share no code with them. */
#ifndef FUZZ_WELL_FORMED_H
#define FUZZ_WELL_FORMED_H

#include <stddef.h>

/* Each returns NULL, or a static text about the fault. */

/** Checks for UTF-8 without control characters other than newline. */
const char *well_formed_text(const char *data, size_t size);

/** Checks for a sequence of JSON objects. */
const char *well_formed_json(const char *data, size_t size);

/** Checks for CSV: rows of equally many cells, closed quotes, no cell that is a formula. */
const char *well_formed_csv(const char *data, size_t size);

/** Checks for folded stacks: lines that end with a space and a number. */
const char *well_formed_folded(const char *data, size_t size);

#endif
