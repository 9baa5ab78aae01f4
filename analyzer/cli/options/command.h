/* SPDX-License-Identifier: MIT */
/** The command line: commands, the options of each, and the options that many share. */
#ifndef ANALYZER_CLI_COMMAND_H
#define ANALYZER_CLI_COMMAND_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/options/known_findings.h"
#include "report/sections/report.h"
#include "travel/islands.h"
#include "view/view.h"

/* The options of one command: a table of their names, each with its parser and its member.
 */

/* The options --client and --activity, which select islands of recording. */

/** Lines for the help text of a command that has these options. */
#define ISLAND_OPTIONS_HELP                                                                        \
    "      --client GUID       only from islands of this client\n"                                 \
    "      --activity N        only from islands of this activity\n"

/** Parse into a struct heap_island_filter: a GUID with or without hyphens, and a number. */
bool option_client(const char *argument, void *member);
bool option_activity(const char *argument, void *member);

/** Whether an option is one of the two, by its name without hyphens: a command that has neither
 * says that they do not apply. */
bool option_is_of_islands(const char *name);

/** The entries of both options in the table of a command's own options. */
#define ISLAND_OPTIONS(TYPE, MEMBER)                                                               \
    OWN_OPTION("client", option_client, TYPE, MEMBER),                                             \
        OWN_OPTION("activity", option_activity, TYPE, MEMBER)

/** Parses an argument, NULL for an option that takes none, into a member; false if it is invalid.
 */
typedef bool (*option_parser)(const char *argument, void *member);

struct own_option {
    const char *name;
    option_parser parse;
    /** Offset of the member in the command's options. */
    size_t offset;
    /** The range of a number, of type uint64_t, if `max` is not 0. */
    uint64_t min;
    uint64_t max;
};

/** The own options of a command; all NULL for none. */
struct own_options {
    /** Ended by OWN_OPTIONS_END. */
    const struct own_option *table;
    /** The values of options that are not given, in the struct that they are parsed into; and its
     * size. NULL for a command that provides the struct itself. */
    const void *defaults;
    size_t size;
};

/** An option that is parsed into a member of a struct; and a number in a range. */
#define OWN_OPTION(NAME, PARSE, TYPE, MEMBER)                                                      \
    {                                                                                              \
        NAME, PARSE, offsetof(TYPE, MEMBER), 0, 0                                                  \
    }
#define OWN_NUMBER(NAME, PARSE, TYPE, MEMBER, LEAST, MOST)                                         \
    {                                                                                              \
        NAME, PARSE, offsetof(TYPE, MEMBER), LEAST, MOST                                           \
    }
/** An option whose argument says several things: `PARSE` gets the whole struct. */
#define OWN_CHOICE(NAME, PARSE)                                                                    \
    {                                                                                              \
        NAME, PARSE, 0, 0, 0                                                                       \
    }
/** Ends a table. */
#define OWN_OPTIONS_END                                                                            \
    {                                                                                              \
        NULL, NULL, 0, 0, 0                                                                        \
    }

/** A number that may be given or not, such as an address. */
struct given_number {
    bool is_given;
    uint64_t value;
};

/** Sets a bool. The one parser whose options take no argument. */
bool option_flag(const char *argument, void *flag);
/** Parses a struct position_spec. */
bool option_position(const char *argument, void *spec);
/** Parses a uint64_t, and one that may have a suffix. */
bool option_number(const char *argument, void *number);
bool option_size(const char *argument, void *number);
/** Parses a struct given_number. */
bool option_given(const char *argument, void *number);
/** Parses a limit, a size_t: 0 stands for SIZE_MAX. */
bool option_limit(const char *argument, void *limit);

/** Finds a name among `count`; false if it is none of them. */
bool option_name(const char *argument, const char *const *names, size_t count, size_t *index);

/** Parses the argument of an option into the command's options; false if it is invalid. */
bool own_option_parse(const struct own_option *option, const char *argument, void *own_values);

/* The command-line options of views: groups, trees and filters. */

/** Range of the values of the options; OPTION_VIEW_END is none of them. */
#define OPTION_VIEW 900

enum {
    OPTION_BY = OPTION_VIEW,
    OPTION_TREE,
    OPTION_DEPTH,
    OPTION_SKIP,
    OPTION_INCLUDE,
    OPTION_EXCLUDE,
    OPTION_VIEW_LIMIT,
    OPTION_VIEW_END
};

/** Options of keys to group by, of lists and trees, and of filters; each ended by an option of
 * zeros. */
extern const struct option key_long_options[];
extern const struct option view_long_options[];
extern const struct option filter_long_options[];

void view_options_init(struct view_options *options);

/** Parses one of the options; false if its argument is invalid. */
bool view_options_parse(struct view_options *options, int option, const char *argument);

/** Checks the options together. Returns a description of the first fault, or NULL. Chooses a tree
 * for a format that needs one. */
const char *view_options_check(struct view_options *options, enum report_form form);

/** Help texts of groups, trees and filters; and of all. */
#define VIEW_LIMIT_HELP                                                                            \
    "      --limit N           show at most N groups, or N branches of each in a tree\n"           \
    "                          (20; 0 for all). Totals count all\n"

#define VIEW_KEYS_HELP                                                                             \
    "      --by KEY            group by stack (the default), function, file, module,\n"            \
    "                          thread or heap. The function is that of the program's\n"            \
    "                          last call: of no C or C++ library, and no common\n"                 \
    "                          wrapper of malloc(); so are file and module\n"

/** For commands with COMMAND_CLASSES. */
#define VIEW_KEYS_AND_CLASS_HELP                                                                   \
    "      --by KEY            group by stack (the default), function, file, module,\n"            \
    "                          thread, heap or class (of objects with virtual\n"                   \
    "                          functions, by a snapshot). The function is that of the\n"           \
    "                          program's last call: of no C or C++ library, and no\n"              \
    "                          common wrapper of malloc(); so are file and module\n"

#define VIEW_SKIP_HELP                                                                             \
    "      --skip FUNCTION     take FUNCTION for one that allocates, and begin stacks\n"           \
    "                          with its caller; may have '*' and '?', and be repeated\n"

#define VIEW_TREES_HELP                                                                            \
    "      --tree ORDER        a tree of calls: top-down, from main() on, or\n"                    \
    "                          bottom-up, from those that allocate to their callers.\n"            \
    "                          --format folded writes it as folded stacks, for flame\n"            \
    "                          graphs\n"                                                           \
    "      --depth N           cut the tree after N levels\n"

#define VIEW_FILTERS_HELP                                                                          \
    "      --include PATTERN   only stacks with a function, file or module that has\n"             \
    "                          PATTERN in its name, or matches it as a whole if it\n"              \
    "                          has '*' or '?'; may be repeated\n"                                  \
    "      --exclude PATTERN   no stacks with such a one; may be repeated\n"

#define VIEW_HELP VIEW_LIMIT_HELP VIEW_KEYS_HELP VIEW_SKIP_HELP VIEW_TREES_HELP VIEW_FILTERS_HELP
#define VIEW_HELP_WITH_CLASS                                                                       \
    VIEW_LIMIT_HELP VIEW_KEYS_AND_CLASS_HELP VIEW_SKIP_HELP VIEW_TREES_HELP VIEW_FILTERS_HELP

/* Commands of ttdanalyze, and the options that they share. */

/** Options that several commands share, as bits. */
enum {
    /** Options of views: filters, keys of groups, lists and trees, and all of them. */
    COMMAND_FILTERS = 1,
    COMMAND_KEYS = 16,
    COMMAND_GROUPS = 2,
    COMMAND_VIEWS = COMMAND_FILTERS | COMMAND_KEYS | COMMAND_GROUPS,
    /** Options of known_findings.h. */
    COMMAND_KNOWN_FINDINGS = 4,
    /** Groups by class: the command calls session_classes(). */
    COMMAND_CLASSES = 8,
    /** None of the options of text and of its formats. */
    COMMAND_PAGE = 32
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
     * each event: printed lines cannot be taken back. */
    bool reads_whole_chunks;
    /** Runs the command; `arguments[0]` is the name. Returns the exit status. NULL for
     * session_run_defaults(). */
    int (*run)(const struct command *command, int count, char **arguments);
    /** For a command that runs by session_run(), or that makes a part of a page. */
    session_function execute;
};

extern const struct command command_diff;
extern const struct command command_digest;
extern const struct command command_errors;
extern const struct command command_events;
extern const struct command command_export;
extern const struct command command_find;
extern const struct command command_fragmentation;
extern const struct command command_history;
extern const struct command command_hot;
extern const struct command command_import;
extern const struct command command_index;
extern const struct command command_info;
extern const struct command command_leaks;
extern const struct command command_lifetimes;
extern const struct command command_marks;
extern const struct command command_memory;
extern const struct command command_merge;
extern const struct command command_moves;
extern const struct command command_peak;
extern const struct command command_query;
/** Records of tables of `query` that no command of the program prints: the peak as `peak` finds it,
 * alone in an array of the name `peaks`; every pointer of a snapshot, in an array `refs`. */
extern const struct command command_query_peak;
extern const struct command command_query_refs;
extern const struct command command_recover;
extern const struct command command_redact;
extern const struct command command_referrers;
extern const struct command command_repack;
extern const struct command command_report;
extern const struct command command_retained;
extern const struct command command_roots;
extern const struct command command_slice;
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
    /** Threads that net chunks; 0 for one on each processor. */
    uint64_t threads;
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

/** Room for the options of a command, with their end. */
#define COMMAND_OPTIONS_MAX 64

/** Lists all options of a command, its own first; ended by an option of zeros. Returns their
 * number.
 */
size_t command_list_options(struct option long_options[COMMAND_OPTIONS_MAX],
                            const struct command *command);

/** The last options of every help text. */
#define COMMAND_LIMITS_HELP                                                                        \
    "      --max-memory SIZE  give up rather than use more memory, such as 2G\n"                   \
    "      --threads N      sum up chunks of events in N threads at most\n"                        \
    "  -h, --help           this text\n"                                                           \
    "  -V, --version        the version\n"

/** The end of the help text of every command that prints a report. */
#define COMMAND_COMMON_HELP                                                                        \
    "\n"                                                                                           \
    "  -f, --format FORMAT  text (the default), json or csv\n"                                     \
    "  -o, --output FILE    write there instead of to standard output; the file is\n"              \
    "                       readable by you only, and replaced only when complete\n"               \
    "      --no-pager       do not page long output\n"                                             \
    "      --no-index       neither use nor make the index TRACE.idx\n"                            \
    "      --full-stacks    text shows all frames and long template "                              \
    "arguments\n" COMMAND_LIMITS_HELP

/* "Did you mean?" for mistyped names. */

/** The best match so far for a mistyped name. All zero at first, but for `typed`. */
struct suggestion {
    const char *typed;
    /** NULL while no name is near enough. */
    const char *name;
    size_t distance;
};

/** Offers a name; it must stay valid. It becomes the best match if it is nearer than those
 * before. */
void suggest(struct suggestion *best, const char *name);

#endif
