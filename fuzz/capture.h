/* SPDX-License-Identifier: MIT */
/** Captures the standard output and standard error of code under test. */
#ifndef FUZZ_CAPTURE_H
#define FUZZ_CAPTURE_H

#include <stddef.h>

/** Returns an empty directory of this process, which is removed at exit if it is empty then. */
const char *capture_directory(void);

/** Redirects both to files. */
void capture_begin(void);

/** Ends the redirection. Reports of sanitizers are never redirected. */
void capture_end(void);

/** Returns the output on descriptor 1 or 2 since the last call, to be freed. */
char *capture_take(int descriptor, size_t *size);

#endif
