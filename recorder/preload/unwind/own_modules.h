/* SPDX-License-Identifier: MIT */
#ifndef TTD_PRELOAD_UNWIND_OWN_MODULES_H
#define TTD_PRELOAD_UNWIND_OWN_MODULES_H

/* The modules of this process, in which the unwinder runs: see dwarf/modules.h. */

#pragma GCC visibility push(hidden)

/* Finds the program headers of the program. To be called once, before frames are followed. */
void own_modules_setup(void);

#pragma GCC visibility pop

#endif
