/* SPDX-License-Identifier: MIT */
/*
 * Copies of the section .debug_frame of modules whose segments lack call frame information, as
 * those built with -g and -fno-asynchronous-unwind-tables. A copy, not a mapping: a file that is
 * truncated would end the program. Its callers hold the lock of modules.c, except those of
 * debug_frames_find().
 */
#ifndef RECORDER_PRELOAD_PROCESS_DEBUG_FRAMES_H
#define RECORDER_PRELOAD_PROCESS_DEBUG_FRAMES_H

#include "dwarf/cfi.h"
#include "preload/process/module_log.h"

/* Sets `*frame` to the section of the module that begins there, or to NULL if it has none that can
   be read. False if that is not known yet. */
bool debug_frames_find(uintptr_t begin, const struct debug_frame **frame);

/* Reads the section from the module's file. */
void debug_frames_read(const struct module *module);

/* Called when the module is gone. The copy stays: the same file may be loaded again, and a thread
   may be reading it. */
void debug_frames_forget(uintptr_t begin);

#endif
