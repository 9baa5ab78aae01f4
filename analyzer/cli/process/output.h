/* SPDX-License-Identifier: MIT */
/** The output of a command: standard output, a pager, or a file. */
#ifndef ANALYZER_CLI_OUTPUT_H
#define ANALYZER_CLI_OUTPUT_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/output_path.h"
#include "report/writers/out.h"

struct output_file {
    struct text_output text;
    /** Name of the file to be made, NULL for standard output; and the name under which it is
     * written. */
    const char *path;
    /** The file that `path` leads to, once links are followed. */
    struct output_path destination;
    char *temporary;
    /** The pager's process, or 0. */
    pid_t pager;
};

/**
 * Opens the output. A file is written under another name, with mode 0600, and replaces `path` only
 * when it is complete. Anything but a regular file, such as a pipe, is written to directly: see
 * output_path_resolve().
 *
 * @param path    NULL or "-" for standard output
 * @param source  the trace; must not be overwritten
 * @param pages   whether a pager may be used, if standard output is a terminal
 * @return an exit status; on failure a message was printed
 */
int output_open(struct output_file *output, const char *path, const char *source, bool pages);

/**
 * Checks that an output of the name `path` would not overwrite a trace. output_open() does so
 * itself.
 *
 * @return an exit status; on failure a message was printed
 */
int output_spare(const char *path, const char *source);

/**
 * Completes the output, or with `keep` false removes it. Returns `status`, or STATUS_INTERNAL if
 * the output failed.
 */
int output_close(struct output_file *output, int status, bool keep);

/** Completes a text that was printed on standard output without a session, such as a help text;
 * reports a failure. Returns an exit status. */
int output_end_standard(void);

#endif
