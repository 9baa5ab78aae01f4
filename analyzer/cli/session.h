/* SPDX-License-Identifier: MIT */
/** What a command works with: options, trace, names, output. */
#ifndef ANALYZER_CLI_SESSION_H
#define ANALYZER_CLI_SESSION_H

#include "cli/command.h"
#include "cli/output.h"
#include "cli/source.h"
#include "analyses/kept.h"
#include "travel/replay_to.h"
#include "view/tree.h"

struct session {
    struct common_options options;
    struct source source;
    struct definitions definitions;
    struct output output;
    bool has_output;
    /** Set if what the report says depends on wall times. */
    bool uses_times;
    struct report report;
    /** The report says why it is uncertain; else warnings do. As the format, if not changed. */
    bool has_reasons;
    bool has_names;
    /** May be set before names are read: a pattern that is in no name is an error, since an exit
     * status depends on it; else a warning. */
    bool needs_known_patterns;
    /** By stack, the answers of session_trace()'s judge. */
    struct hash_map judged;
    /** Steps that are left of limits_steps(). */
    uint64_t steps;
    /** As the options say; the tree is built if they ask for one. */
    struct view view;
    struct view_tree tree;
    /** What is known, for commands that share its options. */
    struct known_findings known_findings;
};

/**
 * Runs a command: reads its options, opens the trace, calls its execute(), completes the output. A
 * status that execute() returns once the output is open is no failure.
 *
 * @param own  the command's own options, set to their defaults
 * @return the exit status
 */
int session_run(const struct command *command, int count, char **arguments, void *own);

/** Opens the trace that `options` name. Returns an exit status; on failure nothing is open. */
int session_open(struct session *session, const struct common_options *options);

/** Opens the output. Returns an exit status. */
int session_output(struct session *session, bool is_long);

/** Reads names, once, if they are needed, and says which patterns of the options are in none of
 * them. Returns an exit status. */
int session_names(struct session *session, bool are_needed);

/**
 * Sets the trace for a query that tells apart what the runtimes keep; without an index. Reads
 * names. Returns an exit status.
 */
int session_trace(struct session *session, struct heap_trace *trace);

/** Says what has failed in work of ours, if anything: memory, or a tree that is too large. Returns
 * an exit status. */
int session_check(struct session *session, enum ttd_status status);
int session_check_tree(struct session *session, enum ttd_status status);

/** Leaves out of rows by stack what the options do not want. Returns an exit status. */
int session_filter(struct session *session, const struct heap_rows *rows);

/** Sets `is_wanted` to whether the options want a stack: quick for one that was asked for before.
 * Returns an exit status. */
int session_wants(struct session *session, ttd_id stack, bool *is_wanted);

/** Groups rows as the options say, or makes the tree that they ask for. Returns an exit status. */
int session_group(struct session *session, const struct heap_rows *rows);

/** Filters rows by stack and groups them. Returns an exit status. */
int session_view(struct session *session, const struct heap_rows *rows);

/** Sets what the report says of the blocks that the runtimes keep, which the options filter and
 * group as all others; they must outlive the report. Returns an exit status. */
int session_runtime(struct session *session, struct heap_runtime *runtime, bool is_shown);

/** Sets `is_new` to whether a finding is to be reported. Returns an exit status. */
int session_judge(struct session *session, const struct finding *finding, bool *is_new);

/** Finds what has grown, and writes the baseline if asked for. Called once all findings were
 * judged. Returns an exit status. */
int session_end_known_findings(struct session *session);

/** Whether the options ask for a tree, to be written by session_print_tree(). */
bool session_has_tree(const struct session *session);

/** How many branches of each node of a tree are shown. */
size_t session_tree_limit(const struct session *session);

/**
 * Writes the tree, if there is one.
 *
 * @param unit    what is counted, such as "block"
 * @param weight  what is weighed, such as "bytes"
 * @return whether there was one
 */
bool session_print_tree(struct session *session, const char *unit, const char *weight);

/** What the report says of certainty. */
void session_judge_certainty(struct session *session, const struct heap_losses *losses,
                             const struct heap_counts *counts, struct ttd_position at,
                             bool reached_end, struct ttd_position last);

/** The same, of a pass up to `at`; reports as well, once, that the trace ends within a chunk. */
void session_outcome(struct session *session, const struct heap_outcome *outcome,
                     struct ttd_position at);

/**
 * Completes the output and releases everything. Returns the exit status: `status`, or one for a
 * failure on the way. With a status of STATUS_USAGE and above no file is left, unless `keep`.
 */
int session_close(struct session *session, int status, bool keep);

#endif
