/* SPDX-License-Identifier: MIT */
/** What tells that a file is the same as before, byte for byte, without reading it. */
#ifndef ANALYZER_CLI_STAMP_H
#define ANALYZER_CLI_STAMP_H

#include <stdbool.h>

#define STAMP_SIZE 160

/** Which file it is, its size, and when it was last changed; empty where that is not known. Nobody
 * can give a copy the same. */
typedef struct stamp {
    char text[STAMP_SIZE];
} stamp;

stamp stamp_of(const char *path);

/** Whether both are known, and of a file that was not changed from one to the other. */
bool stamp_is_same(const stamp *before, const stamp *after);

#endif
