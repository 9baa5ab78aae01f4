/* SPDX-License-Identifier: MIT */
/** Names of allocators' functions, and patterns for names. */
#ifndef ANALYZER_VIEW_FUNCTION_NAMES_H
#define ANALYZER_VIEW_FUNCTION_NAMES_H

#include <stdbool.h>

#include <ttdtrace/model.h>

/* Names of functions that only pass memory on: their callers are the ones that allocate. */

/** Whether the function, demangled, is an allocation function of C or C++. */
bool allocators_have(struct ttd_string function);

/** Whether the function, demangled, is an operator new or delete of C++. */
bool allocators_are_operator(struct ttd_string function);

/** Whether a function, by its canonical name, is a common wrapper between programs or libraries and
 * the allocator, such as xmalloc() or g_malloc(), in any namespace. */
bool allocators_wrap(struct ttd_string canonical);

/** Returns the symbol of an API function, given as an enum ttd_api. Static. */
const char *allocators_symbol(uint8_t api);

/* Glob patterns for names. */

/** The wildcards of a pattern: '*' for any number of characters, '?' for one of them in
 * GLOB_STARS_AND_MARKS. */
enum glob_kind { GLOB_STARS, GLOB_STARS_AND_MARKS };

/** Whether the pattern matches the whole text. Takes at most pattern size times text size steps. */
bool glob_match(enum glob_kind kind, struct ttd_string pattern, struct ttd_string text);

/** Whether the text contains the pattern; a pattern with '*' or '?' must match the whole text. */
bool glob_find(struct ttd_string pattern, struct ttd_string text);

/** Returns the part of a path after its last '/'. */
struct ttd_string glob_base_name(struct ttd_string path);

#endif
