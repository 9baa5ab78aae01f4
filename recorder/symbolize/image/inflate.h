/* SPDX-License-Identifier: MIT */
/** Compressed debug sections, decompressed into one mapping. */
#ifndef RECORDER_SYMBOLIZE_IMAGE_INFLATE_H
#define RECORDER_SYMBOLIZE_IMAGE_INFLATE_H

#include <stdbool.h>
#include <stddef.h>

#include <libelf.h>

struct inflated {
    void *memory;
    size_t size;
};

/**
 * Decompresses the debug sections of a file. Called before libdw reads them, which would take twice
 * the time, and may not know zstd. Leaves to libdw what cannot be decompressed here.
 *
 * @param inflated  the caller calls inflate_free() when it has closed the file.
 */
void inflate_sections(struct inflated *inflated, Elf *elf);

/** Whether debug information in the file is compressed with zstd, which neither libdw nor this
 * build can read: then it was made without libzstd. */
bool inflate_lacks_method(const char *path);

void inflate_free(struct inflated *inflated);

#endif
