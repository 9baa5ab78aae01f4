/* SPDX-License-Identifier: MIT */
/** Names of functions that only pass memory on: their callers are the ones that allocate. */
#ifndef ANALYZER_VIEW_ALLOCATORS_H
#define ANALYZER_VIEW_ALLOCATORS_H

#include <stdbool.h>

#include <ttdtrace/model.h>

/** Whether the function, demangled, is an allocation function of C or C++. */
bool allocators_have(struct ttd_string function);

/** Whether the function, demangled, is an operator new or delete of C++. */
bool allocators_are_operator(struct ttd_string function);

/** Whether a function, by its canonical name, is a common wrapper between programs or libraries and
 * the allocator, such as xmalloc() or g_malloc(), in any namespace. */
bool allocators_wrap(struct ttd_string canonical);

/** Returns the symbol of an API function, given as an enum ttd_api. Static. */
const char *allocators_symbol(uint8_t api);

#endif
