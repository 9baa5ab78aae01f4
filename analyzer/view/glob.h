/* SPDX-License-Identifier: MIT */
/** Glob patterns for names. */
#ifndef ANALYZER_VIEW_GLOB_H
#define ANALYZER_VIEW_GLOB_H

#include <stdbool.h>

#include <ttdtrace/model.h>

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
