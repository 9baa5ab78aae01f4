/* SPDX-License-Identifier: MIT */
/** Commands of ttdanalyze, and the options that they share. */
#ifndef ANALYZER_CLI_COMMAND_H
#define ANALYZER_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/options/known_findings.h"
#include "cli/options/own_options.h"
#include "cli/options/view_options.h"
#include "report/sections/report.h"

/** Options that several commands share, as bits. */
enum {
    /** Options of view_options.h: filters, keys of groups, lists and trees, and all of them. */
    COMMAND_FILTERS = 1,
    COMMAND_KEYS = 16,
    COMMAND_GROUPS = 2,
    COMMAND_VIEWS = COMMAND_FILTERS | COMMAND_KEYS | COMMAND_GROUPS,
    /** Options of known_findings.h. */
    COMMAND_KNOWN_FINDINGS = 4,
    /** Groups by class: the command calls session_classes(). */
    COMMAND_CLASSES = 8
};

struct session;

/** Executes a command whose options are parsed and whose trace is open. Returns an exit status. */
typedef int (*session_function)(struct session *session, const void *options);

/** A command of ttdanalyze, as `main` finds it by its name. */
struct command {
    const char *name;
    const char *summary;
    const char *help;
    /** The options that the command shares with others: a sum of COMMAND_* bits. */
    unsigned shares;
    /** The options of this command only. */
    struct own_options own;
    /** Traces at most that can be named; 0 for one. */
    size_t traces_max;
    /** The reader delivers a chunk only after it has checked all of it. For a command that prints
     * each event, which cannot be taken back. */
    bool reads_whole_chunks;
    /** Runs the command; `arguments[0]` is the name. Returns the exit status. NULL for
     * session_run_defaults(). */
    int (*run)(const struct command *command, int count, char **arguments);
    /** For a command that runs by session_run(), or that makes a part of a page. */
    session_function execute;
};

extern const struct command command_diff;
extern const struct command command_errors;
extern const struct command command_events;
extern const struct command command_find;
extern const struct command command_fragmentation;
extern const struct command command_history;
extern const struct command command_hot;
extern const struct command command_index;
extern const struct command command_info;
extern const struct command command_leaks;
extern const struct command command_lifetimes;
extern const struct command command_marks;
extern const struct command command_memory;
extern const struct command command_moves;
extern const struct command command_peak;
extern const struct command command_recover;
extern const struct command command_redact;
extern const struct command command_referrers;
extern const struct command command_report;
extern const struct command command_retained;
extern const struct command command_roots;
extern const struct command command_snapshots;
extern const struct command command_state;
extern const struct command command_summary;
extern const struct command command_temporary;
extern const struct command command_timeline;
extern const struct command command_verify;

struct command_entry {
    const struct command *command;
    /** The heading of the group that begins with the command; NULL if it goes on. */
    const char *group;
};

/** All commands, in the order of the help; ends with a command NULL. */
extern const struct command_entry command_table[];

/** The name of a form of reports, as --format takes it. Static. */
const char *command_form_name(enum report_form form);

/** The options that all commands have, and those that COMMAND_* bits stand for. */
struct common_options {
    const struct command *command;
    enum report_form form;
    /** NULL for standard output. */
    const char *output;
    bool has_pager;
    /** Whether the sidecar index may be used, and made. */
    bool has_index;
    /** Whether text shows stacks with all frames and whole names. */
    bool has_full_stacks;
    /** Memory limit in bytes; 0 for the default of limits.h. */
    uint64_t max_memory;
    struct view_options view;
    struct known_findings_options known_findings;
    /** The first trace; and those behind it, for a command that takes several. */
    const char *trace;
    char *const *others;
    size_t other_count;
};

/**
 * Reads options and the names of the traces.
 *
 * @param result  set to the common options
 * @param own_values  target of the command's own options
 * @return -1 to go on, or the exit status, also after --help
 */
int command_options(struct common_options *result, const struct command *command, int count,
                    char **arguments, void *own_values);

/** The end of every help text. */
#define COMMAND_COMMON_HELP                                                                        \
    "\n"                                                                                           \
    "  -f, --format FORMAT  text (the default), json or csv\n"                                     \
    "  -o, --output FILE    write there instead of to standard output; the file is\n"              \
    "                       readable by you only, and replaced only when complete\n"               \
    "      --no-pager       do not page long output\n"                                             \
    "      --no-index       neither use nor make the index TRACE.idx\n"                            \
    "      --full-stacks    text shows frames below main() and long template arguments\n"          \
    "      --max-memory SIZE  give up rather than use more memory, or work in\n"                   \
    "                       proportion; with a suffix K, M, G or T\n"                              \
    "  -h, --help           this text\n"                                                           \
    "  -V, --version        the version\n"

/* "Did you mean?" for mistyped names. */

/** The best match so far for a mistyped name. All zero at first, but for `typed`. */
struct suggestion {
    const char *typed;
    /** NULL while no name is near enough. */
    const char *name;
    size_t distance;
};

/** Offers a name, which must stay valid. It becomes the best match if it is nearer than those
 * before. */
void suggest(struct suggestion *best, const char *name);

#endif
