/* SPDX-License-Identifier: MIT */
/** Patterns that names are matched with. */
#ifndef ANALYZER_VIEW_GLOB_H
#define ANALYZER_VIEW_GLOB_H

#include <stdbool.h>

#include <ttdtrace/model.h>

/** What stands for other characters in a pattern: '*' for any number, '?' for one if so wanted. */
typedef enum glob_kind { GLOB_STARS, GLOB_STARS_AND_MARKS } glob_kind;

/** Whether the pattern matches the whole text. Takes at most size of pattern times text steps. */
bool glob_match(glob_kind kind, ttd_string pattern, ttd_string text);

/** Whether the text has the pattern in it, or matches it as a whole if it has '*' or '?'. */
bool glob_find(ttd_string pattern, ttd_string text);

/** The part of a path after its last '/'. */
ttd_string glob_base_name(ttd_string path);

#endif
