/* SPDX-License-Identifier: MIT */
/** Making a trace of another one, for `recover` and `redact`. */
#ifndef ANALYZER_CLI_NEW_TRACE_H
#define ANALYZER_CLI_NEW_TRACE_H

#include <ttdtrace/io.h>

#include "cli/options/command.h"
#include "cli/process/output.h"

/** Fills the new trace from the old one. Closes both in any case. */
typedef enum ttd_status (*new_trace_function)(void *context, const struct ttd_input *input,
                                              const struct ttd_output *output,
                                              struct ttd_error *error);

/**
 * Makes a trace from options->trace under the name options->output: a regular file is readable by
 * its owner only, is there only if it is complete, and never replaces one; anything else, such as
 * a pipe, is written to directly.
 *
 * @param fill         called once with `context`, unless a file could not be opened
 * @param has_summary  set on STATUS_OK: standard output is not the new trace
 * @return an exit status; on failure a message was printed
 */
int new_trace_make(const struct common_options *options, new_trace_function fill, void *context,
                   bool *has_summary);

/** Opens standard output for the summary. Returns an exit status; on failure a message was
 * printed. */
int new_trace_summary(const struct common_options *options, struct output_file *summary,
                      struct report *report);

#endif
