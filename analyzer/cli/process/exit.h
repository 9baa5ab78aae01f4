/* SPDX-License-Identifier: MIT */
/** Exit statuses, as ttdanalyze(1) documents them. */
#ifndef ANALYZER_CLI_EXIT_H
#define ANALYZER_CLI_EXIT_H

#include <ttdtrace/status.h>

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
    STATUS_INTERNAL = 5
};

/** Returns the exit status for a failure to read. */
int exit_for(enum ttd_status status);

#endif
