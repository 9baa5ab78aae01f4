/* SPDX-License-Identifier: MIT */
/** "Did you mean?" for mistyped names. */
#ifndef ANALYZER_CLI_SUGGEST_H
#define ANALYZER_CLI_SUGGEST_H

#include <stddef.h>

/** The best match for a mistyped name so far: zeros at first, but for `typed`. */
struct suggestion {
    const char *typed;
    /** NULL while nothing is near enough. */
    const char *name;
    size_t distance;
};

/** Offers a name, which must stay valid: it is taken if it is nearer than those before. */
void suggest(struct suggestion *best, const char *name);

#endif
