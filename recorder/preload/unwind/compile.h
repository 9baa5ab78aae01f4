/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_PRELOAD_UNWIND_COMPILE_H
#define RECORDER_PRELOAD_UNWIND_COMPILE_H

/* Makes the rule of one word for an address from its row of call frame information. */

#include "dwarf/cfi.h"
#include "preload/unwind/rules.h"

#pragma GCC visibility push(hidden)

/* Returns the rule for the instruction at `address`, which is inside lookup->object. RULE_NO_CFI if
   there is no valid information for it. */
unwind_rule rule_compile(struct cfi_lookup *lookup, uintptr_t address);

#pragma GCC visibility pop

#endif
