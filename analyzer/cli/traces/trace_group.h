/* SPDX-License-Identifier: MIT */
/** A group: the traces that were recorded together, in one directory. */
#ifndef ANALYZER_CLI_TRACES_TRACE_GROUP_H
#define ANALYZER_CLI_TRACES_TRACE_GROUP_H

#include "base/arena.h"
#include "report/sections/report.h"
#include "report/trace/trace_reports.h"

struct group {
    struct report_member *members;
    size_t count;
    size_t capacity;
    /** Damaged files beside them that may be of the same recording; each was reported. */
    size_t unreadable;
    struct arena text;
};

/** Finds the trace `path` and all traces of its group in the same directory, whatever their names,
 * and sorts them by start. Indexes and unreadable files are left out. Returns an exit status; on
 * failure a message was printed. */
int group_find(const char *path, struct group *group);

void group_free(struct group *group);

#endif
