/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_PRELOAD_UNWIND_OWN_MODULES_H
#define RECORDER_PRELOAD_UNWIND_OWN_MODULES_H

/* The modules of this process, in which the unwinder runs: see dwarf/modules.h. */

#include "preload/unwind/unwind.h"

#pragma GCC visibility push(hidden)

/* Finds the program headers of the program. To be called once, before frames are followed. The
   finder is as in unwind_setup(). */
void own_modules_setup(unwind_frame_finder *frame_finder);

#pragma GCC visibility pop

#endif
