/* SPDX-License-Identifier: MIT */
/** Patterns that names are matched with. */
#ifndef ANALYZER_VIEW_GLOB_H
#define ANALYZER_VIEW_GLOB_H

#include <stdbool.h>

#include <ttdtrace/model.h>

/** What stands for other characters in a pattern: '*' for any number, '?' for one if so wanted. */
enum glob_kind { GLOB_STARS, GLOB_STARS_AND_MARKS };

/** Whether the pattern matches the whole text. Takes at most size of pattern times text steps. */
bool glob_match(enum glob_kind kind, struct ttd_string pattern, struct ttd_string text);

/** Whether the text has the pattern in it, or matches it as a whole if it has '*' or '?'. */
bool glob_find(struct ttd_string pattern, struct ttd_string text);

/** The part of a path after its last '/'. */
struct ttd_string glob_base_name(struct ttd_string path);

#endif
