/* SPDX-License-Identifier: MIT */
/** Commands that make a trace: the file that they write, and the summary that they print. */
#ifndef ANALYZER_CLI_NEW_TRACE_H
#define ANALYZER_CLI_NEW_TRACE_H

#include "cli/options/command.h"
#include "cli/process/output.h"

/** The contents of a new trace. */
struct new_trace {
    /** Writes the trace, and closes the output in any case. */
    enum ttd_status (*fill)(void *context, const struct ttd_output *output,
                            struct ttd_error *error);
    /** Checks the complete file before it gets its name, so only a regular file can be made. NULL
     * for no check. Returns an exit status; on failure a message was printed. */
    int (*check)(void *context, const char *path);
    void *context;
};

/**
 * Opens the source of a new trace.
 *
 * @param output  closed on failure
 * @return as input_open()
 */
enum ttd_status new_trace_input(const char *path, const struct ttd_output *output,
                                struct ttd_input *input, struct ttd_error *error);

/**
 * Makes a trace under the name options->output: a regular file is readable by its owner only, is
 * there only if it is complete, and never replaces one; anything else, such as a pipe, is written
 * to directly.
 *
 * @param options      its `trace` is the source, as messages name it
 * @param made         its `fill` is called once, unless a file could not be opened
 * @param has_summary  set on STATUS_OK: standard output is not the new trace
 * @return an exit status; on failure a message was printed
 */
int new_trace_make(const struct common_options *options, const struct new_trace *made,
                   bool *has_summary);

/** Opens standard output for the summary. Returns an exit status; on failure a message was printed.
 */
int new_trace_summary(const struct common_options *options, struct output_file *summary,
                      struct report *report);

#endif
