/* SPDX-License-Identifier: MIT */
/** The traces that were recorded together with one, beside it. */
#ifndef ANALYZER_CLI_GROUP_H
#define ANALYZER_CLI_GROUP_H

#include "base/arena.h"
#include "report/format.h"

struct group {
    struct report_member *members;
    size_t count;
    size_t capacity;
    struct arena text;
};

/**
 * Finds the trace `path` and all traces of its group in the same directory, whatever their names
 * are, and sorts them by when they began. Indexes, and what cannot be read as a trace, are left
 * out. Returns an exit status; on failure a message was printed.
 */
int group_find(const char *path, struct group *group);

void group_free(struct group *group);

#endif
