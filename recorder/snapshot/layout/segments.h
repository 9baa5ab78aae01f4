/* SPDX-License-Identifier: MIT */
/* The segments of a module, as its program headers in the memory of a process tell. */
#ifndef RECORDER_SNAPSHOT_LAYOUT_SEGMENTS_H
#define RECORDER_SNAPSHOT_LAYOUT_SEGMENTS_H

#include <elf.h>

#include "snapshot/layout/layout.h"

enum { MODULE_SEGMENTS = 64 };

/* Reads the segments of a module where it is loaded. Returns how many there are. */
size_t module_segments(const struct memory *memory, const struct snapshot_module *module,
                       Elf64_Phdr segments[MODULE_SEGMENTS]);

#endif
