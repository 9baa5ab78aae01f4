/* SPDX-License-Identifier: MIT */
/*
 * Resolves the name of an output to a file or a descriptor, by one rule for all programs: only a
 * regular file is replaced, and where the name is a symbolic link, the file that it leads to.
 * Anything else, such as a pipe or a device, is written to, and never removed or renamed.
 */
#ifndef TTD_COMMON_OUTPUT_PATH_H
#define TTD_COMMON_OUTPUT_PATH_H

#include <stdbool.h>
#include <stddef.h>

struct output_path {
    char *path; /* the file to be made or replaced; NULL if `descriptor` is to be written to */
    int descriptor;
    bool exists; /* the file exists already */
};

/**
 * Resolves `name`. Anything but a regular file is opened and gets a descriptor of its own; a file
 * that is also our standard output or error is written to through a copy of that descriptor.
 * Returns 0, or an errno value, and then leaves `output` untouched: EISDIR for a directory, ENOENT
 * for a symbolic link that leads nowhere, EACCES for a FIFO or a link that another user has put
 * into a directory where everybody may, and for a name that is changed meanwhile.
 */
int output_path_resolve(const char *name, struct output_path *output);

/** Returns the bytes of a path up to its last separator, with it: 0 if the path is a name alone. */
size_t path_folder_size(const char *path);

/** Releases the path. The caller closes the descriptor. */
void output_path_free(struct output_path *output);

/**
 * Opens each of the descriptors 0, 1 and 2 that is closed, so that no file of ours gets one of
 * these numbers and has messages written into it. Such a descriptor is opened the wrong way round,
 * so that its use still fails, and is closed by an exec. Called first in main().
 */
void standard_descriptors_open(void);

#endif
