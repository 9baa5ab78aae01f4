/* SPDX-License-Identifier: MIT */
/*
 * Where an output of a given name goes: one rule for all programs. Only a regular file is replaced,
 * the one that a symbolic link leads to if the name is one; everything else, such as a pipe or a
 * device, is written to as it is, and never removed or renamed.
 */
#ifndef TTD_COMMON_PLACE_H
#define TTD_COMMON_PLACE_H

#include <stdbool.h>

struct place {
    char *path; /* the file to be made or replaced; NULL if `descriptor` is to be written to */
    int descriptor;
    bool exists; /* the file is there */
};

/*
 * Finds the place of an output. What is no regular file is opened, with its own descriptor; a file
 * that is our standard output or error is written to through that. Returns 0; or an errno value,
 * and leaves `place` alone: EISDIR for a directory, ENOENT for a link that leads nowhere.
 */
int place_find(const char *name, struct place *place);

/* Releases the path. The descriptor is the caller's. */
void place_free(struct place *place);

#endif
