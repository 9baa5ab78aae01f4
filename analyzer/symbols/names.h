/* SPDX-License-Identifier: MIT */
/** All names of a trace that filters go by. */
#ifndef ANALYZER_SYMBOLS_NAMES_H
#define ANALYZER_SYMBOLS_NAMES_H

#include "symbols/definitions.h"

/** Whether a name is one that is looked for. */
struct names_matcher {
    const void *context;
    bool (*matches)(const void *context, struct ttd_string name);
    /** Files of functions count as well. */
    bool takes_files;
};

/**
 * Looks for a function, a module or a file whose name matches, whether a stack leads there or not.
 * Each name is asked for once.
 *
 * @param has_match  set on TTD_OK
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status names_find(struct definitions *definitions, const struct names_matcher *matcher,
                           bool *has_match);

#endif
