/* SPDX-License-Identifier: MIT */
/*
 * Allocators that are linked into a module under names of their own, such as the jemalloc of Rust
 * programs. Their calls never reach the C library.
 */
#ifndef RECORDER_COLLECT_TRACE_ALLOCATORS_H
#define RECORDER_COLLECT_TRACE_ALLOCATORS_H

#include "collect/trace/modules.h"

/* Returns the name of the function by which the module's file has such an allocator; NULL if its
 * symbol tables have none, or cannot be read. Remembers the answers for files. */
const char *allocators_find(const struct module *module);

#endif
