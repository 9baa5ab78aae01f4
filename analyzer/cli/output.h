/* SPDX-License-Identifier: MIT */
/** Where a report goes: standard output, a pager, or a file. */
#ifndef ANALYZER_CLI_OUTPUT_H
#define ANALYZER_CLI_OUTPUT_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/place.h"
#include "report/out.h"

struct output {
    struct out out;
    /** The file to be made, or NULL; and under what name it is written. */
    const char *path;
    /** Where that is, once links are followed. */
    struct place place;
    char *temporary;
    /** The pager's process, or 0. */
    pid_t pager;
};

/**
 * Opens the output. A file is written under another name, with mode 0600, and replaces `path` only
 * when it is complete; what is no regular file, such as a pipe, is written to directly: see
 * place_find().
 *
 * @param path    NULL or "-" for standard output
 * @param source  the trace, which must not be overwritten
 * @param pages   whether a pager may be used, if standard output is a terminal
 * @return an exit status; on failure a message was printed
 */
int output_open(struct output *output, const char *path, const char *source, bool pages);

/**
 * Whether a trace is safe from an output of the name, which output_open() asks for its source.
 *
 * @return an exit status; on failure a message was printed
 */
int output_spare(const char *path, const char *source);

/**
 * Completes the output, or with `keep` false removes what was written. Returns `status`, or
 * STATUS_INTERNAL if the output failed.
 */
int output_close(struct output *output, int status, bool keep);

/** Completes what was printed on standard output by itself, such as a help text; says what failed.
 * Returns an exit status. */
int output_end_standard(void);

#endif
