/* SPDX-License-Identifier: MIT */
/** Stamps of files: two that are the same tell that a file was not written to between them. */
#ifndef ANALYZER_CLI_STAMP_H
#define ANALYZER_CLI_STAMP_H

#include <stdbool.h>

#define STAMP_SIZE 160

/** The identity of a file, its size, and the time of its last change; empty if unknown. A copy
 * cannot be given the same. */
struct stamp {
    char text[STAMP_SIZE];
};

struct stamp stamp_of(const char *path);

/** Whether both are known, and of a file that was not changed from one to the other. */
bool stamp_is_same(const struct stamp *before, const struct stamp *after);

#endif
