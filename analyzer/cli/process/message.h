/* SPDX-License-Identifier: MIT */
/** Messages on standard error, and exit statuses. */
#ifndef ANALYZER_CLI_MESSAGE_H
#define ANALYZER_CLI_MESSAGE_H

#include <ttdtrace/status.h>

/** Prints "ttdanalyze: " and the text, with control characters made visible. */
__attribute__((format(printf, 1, 2))) void message(const char *format, ...);

/** Prints an error: file, offset and chunk if known, reason. `prefix` is such as "warning: ". */
void message_error(const char *prefix, const char *path, const struct ttd_error *error);

/** Prints the status, other than TTD_OK, that ended the work on a file; returns the exit status.
 * For memory and steps the message says how large the limit is. */
int message_status(const char *path, enum ttd_status status);

/** Prints that the output exceeds its limit; returns the exit status. */
int message_output(const char *path);

/** Reports that temporary files exceed their size limit. Returns the exit status. */
int message_files(const char *path);

/** Prints why a trace cannot answer the question of a command; returns STATUS_UNJUDGED. */
int message_unjudged(const char *path, const char *command, const char *reason);

/** Prints a usage error of a command and how to get help; returns STATUS_USAGE. */
__attribute__((format(printf, 2, 3))) int message_usage(const char *command, const char *format,
                                                        ...);

/** Prints how to get help for a command, or without a command if that is NULL; returns
 * STATUS_USAGE. */
int message_help(const char *command);

/* Exit statuses, as ttdanalyze(1) documents them. */

enum {
    STATUS_OK = 0,
    /** The command has findings, for commands that report these by status: problems of verify,
     * growth. */
    STATUS_FINDINGS = 1,
    STATUS_USAGE = 2,
    /** The trace cannot be opened or read, is no trace, or of an unknown version. */
    STATUS_OPEN = 3,
    /** The trace is too damaged for any answer. */
    STATUS_DAMAGED = 4,
    /** Out of memory, or the output failed. */
    STATUS_INTERNAL = 5,
    /** With --error-exitcode: the trace cannot answer the question. */
    STATUS_UNJUDGED = 6
};

/** Returns the exit status for a failure to read. */
int exit_for(enum ttd_status status);

#endif
