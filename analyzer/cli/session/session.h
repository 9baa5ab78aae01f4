/* SPDX-License-Identifier: MIT */
/** A session: the options, the trace, its definitions and the output of one run of a command. */
#ifndef ANALYZER_CLI_SESSION_H
#define ANALYZER_CLI_SESSION_H

#include "analyses/state/state.h"
#include "cli/options/command.h"
#include "cli/process/output.h"
#include "cli/traces/source.h"
#include "travel/islands.h"
#include "travel/replay_to.h"
#include "view/function_names.h"
#include "view/tree.h"

struct session {
    struct common_options options;
    struct source source;
    struct definitions definitions;
    struct output_file output;
    bool has_output;
    /** The report depends on wall times. */
    bool uses_times;
    struct report report;
    /** The report gives the reasons for uncertainty; otherwise they are printed as warnings. Set by
     * the format, and may be changed. */
    bool has_reasons;
    bool has_names;
    /** A pattern that matches no name is an error, not a warning, because the exit status depends
     * on the patterns. May be set before names are read. */
    bool needs_known_patterns;
    /** The trace is one of several that are asked the same: patterns may be for the others. */
    bool is_member;
    /** The judge of session_trace(). */
    struct runtime_judge judge;
    /** Steps that are left of limits_steps(). */
    uint64_t steps;
    /** The view that the options ask for, and its tree if they ask for one. */
    struct view view;
    /** The same by function. */
    struct view functions;
    struct view_tree tree;
    /** See session_islands(). */
    struct heap_islands islands;
    /** The classes of blocks, if the view is by class: see session_classes(). */
    struct heap_block_classes classes;
    /** Known findings, for commands with COMMAND_KNOWN_FINDINGS. */
    struct known_findings known_findings;
    /** See session_unrecorded(). */
    char unrecorded[HEAP_UNRECORDED_SIZE + 80];
};

/**
 * Runs a command: parses its options, opens the trace, calls execute() and completes the output. A
 * status that execute() returns once the output is open is a result, and the output is kept.
 *
 * @param own_values  the command's own options, set to their defaults
 * @return the exit status
 */
int session_run(const struct command *command, int count, char **arguments, void *own_values);

/** Runs a command whose options are parsed. */
int session_execute(const struct common_options *options, const void *own_values);

/** Runs a command like session_run(); its own options start as a copy of its defaults. */
int session_run_defaults(const struct command *command, int count, char **arguments);

/** Opens the trace that `options` name. Returns an exit status; on failure nothing is open. */
int session_open(struct session *session, const struct common_options *options);

/** Opens the output, unless it is open: see page_begin(). Returns an exit status. */
int session_output(struct session *session, bool is_long);

/** Makes text list groups by function, with stacks below, unless the options say what to group by.
 */
void session_lead_with_functions(struct session *session);

/** Reads the names, if the report needs them, and opens the output. Returns an exit status. */
int session_begin_report(struct session *session, bool needs_names);

/** Reads the definitions, once, if they are needed, and reports patterns of the options that match
 * no name. Returns an exit status. */
int session_names(struct session *session, bool are_needed);

/** Sets `trace` for a query that separates the blocks that the runtimes keep from the others;
 * without an index. Reads the definitions. Returns an exit status. */
int session_trace(struct session *session, struct heap_trace *trace);

/**
 * Finds the classes of blocks from the newest snapshot at or before a position, if the options
 * group by class, and passes them to the view. Warns if there is no such snapshot.
 *
 * @param trace    for the query
 * @param classes  set to the classes (the session owns them), or to NULL if they are not needed
 * @return an exit status
 */
int session_classes(struct session *session, const struct heap_trace *trace,
                    struct ttd_position position, const struct heap_block_classes **classes);

/** Report a failure of the analyzer itself, if `status` is one: memory is exhausted, or a tree is
 * too large. Return an exit status. */
int session_check(struct session *session, enum ttd_status status);
int session_check_tree(struct session *session, enum ttd_status status);

/** Removes records whose stacks the options exclude. Returns an exit status. */
int session_filter(struct session *session, const struct heap_site_table *sites);

/** Removes groups whose stacks the options exclude, and joins those that differ in their stacks
 * only. Returns an exit status. */
int session_filter_joined(struct session *session, struct heap_groups *groups);

/** Sets `is_wanted` to whether the options let a stack through. Answers are kept by stack. Returns
 * an exit status. */
int session_wants(struct session *session, ttd_id stack, bool *is_wanted);

/** Groups records as the options say, or builds the tree that they ask for. Returns an exit status.
 */
int session_group(struct session *session, const struct heap_site_table *sites);

/** Filters records by stack and groups them. Returns an exit status. */
int session_view(struct session *session, const struct heap_site_table *sites);

/** Passes the blocks that the runtimes keep to the report, filtered and grouped by the options.
 * `runtime` must outlive the report. Returns an exit status. */
int session_runtime(struct session *session, struct heap_runtime *runtime, bool is_shown);

/** Sets `is_new` to whether a finding is to be reported. Returns an exit status. */
int session_judge(struct session *session, const struct finding *finding, bool *is_new);

/** Finds growth against the baseline, and writes a new baseline if the options ask for one. Called
 * once all findings were judged. Returns an exit status. */
int session_end_known_findings(struct session *session);

/** Whether the options ask for the tree of session_print_tree(). */
bool session_has_tree(const struct session *session);

/** Refuses an option that is given and that a tree has no place for. Returns an exit status. */
int session_refuse_in_tree(const struct session *session, bool is_given, const char *option);

/** Returns the number of branches of each node of a tree that are shown. */
size_t session_tree_limit(const struct session *session);

/**
 * Writes the tree, if the options ask for one.
 *
 * @param unit    the unit that is counted, such as "block"
 * @param weight  the unit that is weighed, such as "bytes"
 * @return whether there was one
 */
bool session_print_tree(struct session *session, const char *unit, const char *weight);

/** A question: the arguments that every query of a trace has, beside its options. */
struct question {
    struct heap_trace trace;
    /** The position that the question is about; ttd_position_max() for the end. */
    struct ttd_position at;
    struct ttd_error error;
};

/**
 * Reads the islands of recording that a filter names, if it is given. If there are none it warns,
 * or fails as for a pattern that matches no name.
 *
 * @param islands  set to the islands (the session owns them), or to NULL if they are not needed
 * @return an exit status
 */
int session_islands(struct session *session, const struct heap_island_filter *filter,
                    const struct heap_islands **islands);

/** Prepares a question about a position, with the index if it saves time. Returns an exit status.
 */
int session_ask(struct session *session, const struct position_spec *position,
                struct question *question);

/** Prepares a question as session_ask() does, with a trace from session_trace(). */
int session_ask_runtime(struct session *session, const struct position_spec *position,
                        struct question *question);

/** Returns a question about the whole trace, without the index. */
struct question session_ask_all(struct session *session);

/** Reports the failure of a query, and an index that the query has refuted. Returns an exit status.
 */
int session_found(struct session *session, const struct question *question, enum ttd_status result,
                  const struct heap_outcome *outcome);

/** Completes a question: session_found(), then session_outcome() for its position. Returns an exit
 * status. */
int session_answer(struct session *session, const struct question *question, enum ttd_status result,
                   const struct heap_outcome *outcome);

/** Returns why there is no answer for ENDING_NO_CALLS, with the calls that are missing, if the
 * trace has them. It lives as long as the session. */
const char *session_unrecorded(struct session *session);

/** Returns the exit status of a command with --error-exitcode: `error_status`, or 0 if it is not
 * given, if there are findings; if there are none, STATUS_UNJUDGED with a message where the trace
 * cannot answer (session->report.unjudged). */
int session_exit(const struct session *session, bool has_findings, uint64_t error_status);

/** Judges the certainty of the report from the outcome of a query for a position. Also
 * reports, once, that the trace ends within a chunk. */
void session_outcome(struct session *session, const struct heap_outcome *outcome,
                     struct ttd_position position);

/** Completes the output and releases everything. Returns `status`, or the status of a failure on
 * the way. From STATUS_USAGE on no file is left, unless `keep`. */
int session_close(struct session *session, int status, bool keep);

#endif
