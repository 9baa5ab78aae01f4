/* SPDX-License-Identifier: MIT */
/** Opening the trace that a command line names, and finding those recorded with it. */
#ifndef ANALYZER_CLI_INPUT_H
#define ANALYZER_CLI_INPUT_H

#include <stdbool.h>

#include <ttdtrace/io.h>

#include "base/grow.h"
#include "report/sections/report.h"
#include "report/trace/trace_reports.h"

/* Opening the trace that a command line names. */

/** The trace that is read when none is named: ttdrecord's default. */
#define INPUT_DEFAULT "trace.bin"

/** Whether `path` stands for standard input. */
bool input_is_standard(const char *path);

/** The part of a path behind its folder. */
const char *input_name(const char *path);

/**
 * Opens a trace. "-" is standard input. An input that cannot be read at an offset, such as a pipe,
 * is first copied to a file without a name in $TMPDIR, readable by its owner only.
 *
 * @return TTD_OK, or the status with the reason in `error`.
 */
enum ttd_status input_open(const char *path, struct ttd_input *input, struct ttd_error *error);

/**
 * Reports why a trace cannot be read, and the type of a file that is no trace.
 *
 * @param error  the reason, if its status is `status` and it has a text
 * @return the exit status
 */
int input_fail(const char *path, enum ttd_status status, const struct ttd_error *error);

/** Recognizes a file that is no trace by its first bytes. Returns a static description such as "a
 * gzip file; unpack it first", or NULL. */
const char *input_recognise(const char *path);

/* A group: the traces that were recorded together, in one directory. */

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
