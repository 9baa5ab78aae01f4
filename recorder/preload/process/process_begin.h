/* SPDX-License-Identifier: MIT */
/** How a process begins to record. Each of the two libraries defines process_attach() by itself, so
 * it is no part of another header. */
#ifndef RECORDER_PRELOAD_PROCESS_PROCESS_BEGIN_H
#define RECORDER_PRELOAD_PROCESS_PROCESS_BEGIN_H

#include "preload/channel/target.h"

/** Attaches the process to the channel, once; false if it does not record (loaded.c, or, in a
 * process that had run before, attached/attached_start.c). */
bool process_attach(void);

/** Maps the page target_on; a fork wipes it: a child would write into its parent's chunks. */
bool process_map_on_page(void);

/** Begins to record this process, new or forked. */
bool process_begin(uint32_t parent, uint64_t parent_sequence, uint64_t parent_steps);

/** Whether this process records; attaches it if it has not been attached yet. */
bool process_records(void);

#endif
