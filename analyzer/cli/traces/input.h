/* SPDX-License-Identifier: MIT */
/** Opening the trace that a command line names. */
#ifndef ANALYZER_CLI_INPUT_H
#define ANALYZER_CLI_INPUT_H

#include <stdbool.h>

#include <ttdtrace/io.h>

/** The trace that is read when none is named: ttdrecord's default. */
#define INPUT_DEFAULT "trace.bin"

/** Whether `path` stands for standard input. */
bool input_is_standard(const char *path);

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

#endif
