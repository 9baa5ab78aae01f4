/* SPDX-License-Identifier: MIT */
/** Stamps of files: two equal stamps show that a file was not written to between them. */
#ifndef ANALYZER_CLI_STAMP_H
#define ANALYZER_CLI_STAMP_H

#include <stdbool.h>

#define STAMP_SIZE 160

/** A stamp: the identity of a file, its size, and the time of its last change; empty if unknown. A
 * copy of the file cannot be given the same stamp. */
struct stamp {
    char text[STAMP_SIZE];
};

struct stamp stamp_of(const char *path);

/** Whether both are known and equal: the file was not changed between them. */
bool stamp_is_same(const struct stamp *before, const struct stamp *after);

#endif
