/* SPDX-License-Identifier: MIT */
/** Search in all names of a trace: functions, modules and files. */
#ifndef ANALYZER_SYMBOLS_NAMES_H
#define ANALYZER_SYMBOLS_NAMES_H

#include "symbols/definitions.h"

/** The predicate of a search. */
struct names_matcher {
    const void *context;
    bool (*matches)(const void *context, struct ttd_string name);
    /** Names of source files are searched as well. */
    bool takes_files;
};

/**
 * Looks for a function, module or file whose name matches, even if no stack contains it. Each name
 * is tried once.
 *
 * @param has_match  set on TTD_OK
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status names_find(struct definitions *definitions, const struct names_matcher *matcher,
                           bool *has_match);

#endif
