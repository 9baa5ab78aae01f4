/* SPDX-License-Identifier: MIT */
/** What code under test writes to standard output and standard error. */
#ifndef FUZZ_CAPTURE_H
#define FUZZ_CAPTURE_H

#include <stddef.h>

/** A directory of this process alone, empty, and removed with it if it is empty then. */
const char *capture_directory(void);

/** From here on, both go to files. */
void capture_begin(void);

/** They go where they went before; reports of sanitizers do all the time. */
void capture_end(void);

/** What was written to descriptor 1 or 2 since the last call: to be freed. */
char *capture_take(int descriptor, size_t *size);

#endif
