/* SPDX-License-Identifier: MIT */
/** Messages on standard error. */
#ifndef ANALYZER_CLI_MESSAGE_H
#define ANALYZER_CLI_MESSAGE_H

#include <ttdtrace/status.h>

/** Prints "ttdanalyze: " and the text, with control characters made visible. */
__attribute__((format(printf, 1, 2))) void message(const char *format, ...);

/** Prints what failed: file, offset and chunk if known, reason. `prefix` such as "warning: ". */
void message_error(const char *prefix, const char *path, const struct ttd_error *error);

/**
 * Prints that a status other than TTD_OK has ended the work on a file; returns the exit status. Of
 * memory, and of steps through stacks, it says how much there may be.
 */
int message_status(const char *path, enum ttd_status status);

/** Prints that there is more output than may be; returns the exit status. */
int message_output(const char *path);

/** Prints a usage error of a command and how to get help; returns STATUS_USAGE. */
__attribute__((format(printf, 2, 3))) int message_usage(const char *command, const char *format,
                                                        ...);

/** Only how to get help, of a command or, if it is NULL, at all; returns STATUS_USAGE. */
int message_help(const char *command);

#endif
