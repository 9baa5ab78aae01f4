/* SPDX-License-Identifier: MIT */
/** The reports of commands, for a command that has several findings at once. Each print function
 * judges the certainty first, filters the findings by the session's options, and returns an exit
 * status. */
#ifndef ANALYZER_COMMANDS_FINDINGS_H
#define ANALYZER_COMMANDS_FINDINGS_H

#include "analyses/activity/moves.h"
#include "analyses/activity/usage.h"
#include "analyses/errors/errors.h"
#include "analyses/errors/fatal.h"
#include "analyses/reachability/leaks.h"
#include "analyses/reachability/retained.h"
#include "analyses/trace/trace_stats.h"
#include "base/grow.h"
#include "cli/options/command.h"
#include "cli/page/page.h"
#include "cli/session/session.h"
#include "cli/traces/source.h"
#include "report/page/page_model.h"
#include "report/state/state_reports.h"
#include "travel/islands.h"

/** The chains of reallocations that `moves` shows by default. */
#define MOVES_CHAINS 10

/** Prints a usage with lifetimes. */
int lifetimes_print(struct session *session, struct heap_usage *usage);

int moves_print(struct session *session, struct heap_moves *moves);

/** @param limit  findings at most; 0 for all */
int errors_print(struct session *session, size_t limit, struct heap_errors *errors,
                 struct heap_fatal *fatal);

/** Drops the calls that are no errors of the program, and those that the options exclude; judges
 * how certain the others are. Sets `has_fatal` to whether the fatal signal is reported. */
int errors_judge(struct session *session, struct heap_errors *errors, struct heap_fatal *fatal,
                 bool *has_fatal);

/** Judges the certainty of leaks at a position, after session_outcome(); sets
 * session->report.unjudged. */
void leaks_judge(struct session *session, const struct heap_leaks *leaks,
                 struct ttd_position position);

/** Prints the leaks at a position, those that `leaks` shows by default. */
int leaks_print(struct session *session, struct heap_leaks *leaks, struct ttd_position position);

/** Options of `leaks` for choosing groups, beside the session's. */
struct leaks_choice {
    const struct position_spec *at;
    const struct heap_island_filter *island;
    /** Kinds of blocks, as leaks_parse_kinds() sets them. */
    unsigned kinds;
};

/** The kinds that `leaks` lists by default. */
unsigned leaks_default_kinds(void);
/** Parses an argument such as "definite,possible" into a set of kinds, an unsigned. */
bool leaks_parse_kinds(const char *text, void *kinds);

/** Finds a group by the number that `leaks` prints with the same options; if the number is 0, the
 * first group, and sets the number to 1, or if there is none the largest group of any kind. The
 * group's targets are gone; the address of its first block is not. Returns an exit status; on
 * failure, also where there is no such group, a message was printed. */
int leaks_find_group(struct session *session, const struct leaks_choice *choice, uint64_t *number,
                     struct heap_group *group);

/** Finds the quadrants of a range in passes of their own, and prints them.
 * @param islands  only blocks that were allocated in these; NULL for all */
int diff_print(struct session *session, struct ttd_position from, struct ttd_position last,
               const struct heap_islands *islands);

int retained_print(struct session *session, const struct heap_retained_options *options,
                   const struct heap_retained *retained);

/** Statistics, and the facts of the recording that `info` prints beside them. */
struct info_findings {
    struct heap_trace_stats stats;
    /** NULL if the session has the names already. */
    struct definitions *definitions;
    struct ttd_metadata *metadata;
    size_t metadata_count;
    size_t metadata_capacity;
    /** Losses behind those that the statistics keep, for a table of a query. */
    bool keeps_losses;
    uint64_t loss_seen;
    struct ttd_loss *losses;
    size_t loss_count;
    size_t loss_capacity;
    struct arena text;
};

/** Makes the facts a part of a pass; the statistics are empty, for heap_trace_stats_watch().
 * @param findings  release with info_free() */
void info_watch(struct session *session, struct info_findings *findings, struct heap_pass *pass);
int info_print(struct session *session, const struct info_findings *findings);
void info_free(struct info_findings *findings);

/* Comparing two heaps for diff: of two traces, or of one at two positions. */

struct compare_options {
    /** Positions in the old and the new heap. */
    struct position_spec specs[HEAP_SIDES];
    /** Compares only blocks that were allocated in the islands that it selects. */
    struct heap_island_filter island;
    /** Changes to show at most; SIZE_MAX for all. */
    size_t limit;
    /** Blocks that the runtimes keep are compared as well. */
    bool shows_runtime;
    /** NULL to print; else set to the comparison as packed data of a page, owned by the caller.
     * They have groups that have not changed as well. */
    struct page_packed *page;
    /** The facts about that page. */
    const struct page_facts *facts;
};

/** With one trace it is compared with itself, by the identifiers of stacks. Returns the exit
 * status. */
int compare_heaps(const struct common_options *common, const struct compare_options *options);

#endif
