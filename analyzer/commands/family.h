/* SPDX-License-Identifier: MIT */
/** A family: the processes of one recording, and the sums of their findings by call site. Call
 * sites of different programs are one if their fingerprints are. */
#ifndef ANALYZER_COMMANDS_FAMILY_H
#define ANALYZER_COMMANDS_FAMILY_H

#include "cli/session/session.h"

/** For help texts. */
#define FAMILY_HELP "      --group             sum over all processes of the recording\n"

#define FAMILY_STACKS 4

struct family;

/** The blocks or errors of one call site in one process. */
struct family_finding {
    /** Static, such as "definitely_lost"; and its place among the kinds, the first listed first. */
    const char *kind;
    unsigned rank;
    /** The stack that is shown, and others that distinguish findings. */
    ttd_id stacks[FAMILY_STACKS];
    /** Blocks, or calls; and bytes. */
    uint64_t count;
    uint64_t bytes;
};

/** A question that is asked of each process. */
struct family_question {
    const char *unit;
    bool has_bytes;
    /** Static: the name of the sums, in text. */
    const char *title;
    /** Asks, adds the findings, and judges the certainty in session->report. Sets `is_error` to
     * whether --error-exitcode counts any. Returns an exit status. */
    int (*collect)(struct session *session, const void *options, struct family *family,
                   bool *is_error);
};

/** Adds the blocks that the programs of a process left at exec. */
void family_add_left(struct family *family, const struct heap_left *left);

/** Counts a process without a snapshot that has blocks which were never released. */
void family_add_unsearched(struct family *family);

/** Adds a finding of the process of the session. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status family_add(struct family *family, struct session *session,
                           const struct family_finding *finding);

/**
 * Asks all processes of the recording, one after the other, and prints the sums.
 *
 * @param options       the command's own
 * @param error_status  the status of --error-exitcode, or 0
 * @return an exit status
 */
int family_run(const struct common_options *common, const struct family_question *question,
               const void *options, uint64_t error_status);

#endif
