/* SPDX-License-Identifier: MIT */
/**
 * Lists the section .eh_frame of a module's file, if no table of it is in memory; or else reads the
 * section .debug_frame: from its file or from its separate debug file, as it
 * is or decompressed (zlib: SHF_COMPRESSED and .zdebug_frame). It is a copy, since a mapping of a
 * file that is truncated would end the program. Files are untrusted. The rest
 * of dwarf/ reads memory only.
 */
#ifndef RECORDER_DWARF_FRAME_FILE_H
#define RECORDER_DWARF_FRAME_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "dwarf/cfi.h"

#pragma GCC visibility push(hidden)

/** Reads or lists the section for code in [low, high), by the addresses in the file, and lists its
 * FDEs. The `file` has the absolute `path`. False, and `*frame` untouched, if it has none for that
 * code. */
bool debug_frame_load(int file, const char *path, uint64_t low, uint64_t high,
                      struct debug_frame *frame);

void debug_frame_unload(struct debug_frame *frame);

/* Each program that loads sections has its own functions for files and memory. */

/** Opens a file to be read, without waiting. Returns a negative number if that is impossible. */
int dwarf_file_open(const char *path);
bool dwarf_file_read(int file, uint64_t offset, void *bytes, size_t size);
void dwarf_file_close(int file);

/** Returns memory that is 0, or NULL. */
void *dwarf_pages(size_t size);
void dwarf_pages_free(void *pages, size_t size);

#pragma GCC visibility pop

#endif
