/* SPDX-License-Identifier: MIT */
/** What a command works with: options, trace, names, output. */
#ifndef ANALYZER_CLI_SESSION_H
#define ANALYZER_CLI_SESSION_H

#include "cli/command.h"
#include "cli/output.h"
#include "cli/source.h"
#include "heap/pass.h"

typedef struct session {
    common options;
    source trace;
    definitions names;
    output output;
    bool has_output;
    /** Set if what the report says depends on wall times. */
    bool uses_times;
    report report;
} session;

/** Opens the trace that `options` name. Returns an exit status; on failure nothing is open. */
int session_open(session *work, const common *options);

/** Opens the output. Returns an exit status. */
int session_output(session *work, bool is_long);

/** What the report says of certainty. */
void session_doubts(session *work, const heap_losses *losses, const heap_counts *counts,
                    ttd_position at, bool reached_end, ttd_position last);

/** The same, of a pass up to `at`; reports as well, once, that the trace ends within a chunk. */
void session_outcome(session *work, const heap_outcome *outcome, ttd_position at);

/**
 * Completes the output and releases everything. Returns the exit status: `status`, or one for a
 * failure on the way. With a status of STATUS_USAGE and above no file is left, unless `keep`.
 */
int session_close(session *work, int status, bool keep);

#endif
