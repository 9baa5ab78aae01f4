/* SPDX-License-Identifier: MIT */
/** Files of modules: how they are opened, identified and decompressed. */
#ifndef RECORDER_SYMBOLIZE_IMAGE_IMAGE_FILE_H
#define RECORDER_SYMBOLIZE_IMAGE_IMAGE_FILE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>

#include "symbolize/symbolize.h"

/** Opens a regular file by its absolute path, or returns -1: opening a FIFO may block, opening a
 * device may have effects. */
int image_file_open(const char *path);

/** Sets `file` to an open file's identity. */
bool image_file_read(int fd, struct symbolize_file *file);

/** Whether a file, as it was when it was read, is the given one, unchanged. */
bool image_file_same(const struct symbolize_file *now, const struct symbolize_file *file);

/** Whether an open file is the given one, unchanged; true if nothing is known of that. */
bool image_file_is(int fd, const struct symbolize_file *file);

/* Compressed debug sections, decompressed into one mapping. */

struct inflated {
    void *memory;
    size_t size;
};

/**
 * Decompresses the debug sections of a file. Called before libdw reads them: that would take twice
 * the time, and libdw may not know zstd. Leaves sections that cannot be decompressed here to libdw.
 *
 * @param inflated  the caller calls inflate_free() when it has closed the file.
 */
void inflate_sections(struct inflated *inflated, Elf *elf);

/** Whether debug information in the file is compressed with zstd, and neither libdw nor this build
 * can read it: then it was made without libzstd. */
bool inflate_lacks_method(const char *path);

void inflate_free(struct inflated *inflated);

#endif
