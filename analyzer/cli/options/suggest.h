/* SPDX-License-Identifier: MIT */
/** "Did you mean?" for mistyped names. */
#ifndef ANALYZER_CLI_SUGGEST_H
#define ANALYZER_CLI_SUGGEST_H

#include <stddef.h>

/** The best match so far for a mistyped name. All zero at first, but for `typed`. */
struct suggestion {
    const char *typed;
    /** NULL while no name is near enough. */
    const char *name;
    size_t distance;
};

/** Offers a name, which must stay valid. It becomes the best match if it is nearer than those
 * before. */
void suggest(struct suggestion *best, const char *name);

#endif
