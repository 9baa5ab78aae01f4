/* SPDX-License-Identifier: MIT */
#ifndef TTD_PRELOAD_UNWIND_COMPILE_H
#define TTD_PRELOAD_UNWIND_COMPILE_H

#include "unwind_cfi.h"
#include "unwind_rules.h"

#pragma GCC visibility push(hidden)

/* The rule for the instruction at `addr`, which is inside `object`. */
unwind_rule rule_compile(struct cfi_lookup *lookup, uintptr_t address);

#pragma GCC visibility pop

#endif
