/* SPDX-License-Identifier: MIT */
/** The state of a report. */
#ifndef ANALYZER_REPORT_SECTIONS_REPORT_H
#define ANALYZER_REPORT_SECTIONS_REPORT_H

#include <ttdtrace/reader.h>
#include <ttdtrace/snapshot.h>

#include "heap/groups.h"
#include "heap/replay.h"
#include "reach/reach.h"
#include "report/writers/out.h"
#include "symbols/frames.h"
#include "travel/certainty.h"
#include "travel/losses.h"
#include "view/suppress.h"
#include "view/view.h"

/* A report: where it is written, and the facts about the trace that all of its sections need. */

/** A finding that occurs more often than in the baseline: blocks of a leak, calls of an error. */
struct report_growth {
    /** A heap_error_kind, or SUPPRESS_LEAK. */
    unsigned kind;
    ttd_id stack;
    uint64_t before;
    uint64_t now;
};

/** Totals of the findings that are not reported, because they are suppressed or in the baseline: in
 * findings and calls, or in blocks and bytes. */
struct report_known_findings {
    bool has_suppressions;
    bool has_baseline;
    const struct suppressions *suppressions;
    uint64_t suppressed;
    uint64_t suppressed_amount;
    uint64_t in_baseline;
    uint64_t in_baseline_amount;
    /** A finding that has grown counts as an error. */
    bool fails_on_growth;
    const struct report_growth *growths;
    size_t growth_count;
};

/** Units of the totals of known findings. */
enum report_unit { REPORT_BLOCKS, REPORT_FINDINGS };

/** The blocks that the C and C++ runtimes keep until the end; they are not counted as leaks. */
struct report_runtime {
    /** NULL for commands that do not separate these blocks from the others. */
    const struct heap_groups *groups;
    /** The groups are listed as well; or they can be, with --show-runtime. */
    bool is_shown;
    bool has_option;
    /** The trace does not list all of these blocks; those that are missing are counted as blocks of
     * the program. */
    bool is_counted;
    /** The list is missing because the program was killed. */
    bool was_killed;
};

/** Source of the wall times of positions. */
struct report_clock {
    void *context;
    /** Writes the wall time of a position into `text`, of 32 bytes; false if it is not known. */
    bool (*time)(void *context, struct ttd_position at, char *text);
};

/** Numbers that stand for stacks, in a format that writes each stack only once. */
struct report_stacks {
    void *context;
    /** Numbers a stack, or returns the status that makes the report fail. */
    enum ttd_status (*find)(void *context, ttd_id stack, uint64_t *number);
};

/** The forms of a report. */
enum report_form {
    REPORT_TEXT,
    REPORT_JSON,
    REPORT_CSV,
    /** Folded stacks, for flame graphs: trees of calls only. */
    REPORT_FOLDED,
    /** Findings for services that run tests, see sections.h: leaks and errors only. */
    REPORT_SARIF,
    REPORT_JUNIT,
    REPORT_GITHUB
};

struct row_sink;

struct report {
    struct text_output *output;
    enum report_form form;
    /** Receives the records in place of the output; NULL for a report. The form is JSON then. */
    struct row_sink *sink;
    /** Records of a list that are shown. */
    size_t limit;
    /** Name of the trace's file. */
    const char *path;
    /** How the trace ends; NULL if it was not closed, or for commands that need it not. */
    const struct ttd_end *end;
    /** The names of the trace. NULL for commands that need none. */
    struct definitions *definitions;
    /** Frames of the stack written last, reused from stack to stack. */
    struct frame_list frames;
    /** JSON has the numbers of stacks instead of their frames. All zero: JSON has the frames. */
    struct report_stacks stacks;
    /** The grouping of records. */
    const struct view *view;
    /** Groups stacks by function: text lists these, with stacks below them. NULL if records are
     * listed as they are grouped. */
    struct view *functions;
    /** NULL for commands that report every finding. */
    const struct report_known_findings *known_findings;
    struct report_runtime runtime;
    /** Text shows all frames of a stack, and template arguments of any length. */
    bool shows_all;
    /** Whether stacks of the trace have the functions that threads begin with, once that was looked
     * up. */
    bool knows_beginning;
    bool has_beginning;
    /** Text has said how functions get names. */
    bool has_named;
    struct report_clock clock;
    /** The first failure to allocate memory, or TTD_OK. */
    enum ttd_status status;
    struct certainty certainty;
    /** How the recording ended. Leaks are judged as for ENDING_KNOWN where the newest snapshot is
     * the one that the process took at its end: see leaks_judge(). */
    enum certainty_ending ending;
    /** Why nothing is known of leaks, or of errors, where that is so, else NULL. Lives as long as
     * the session. Set before the report is written. */
    const char *unjudged;
    /** Records that lists in CSV leave out because of their limits. */
    uint64_t left_out;
    /** The trace has a sample of the blocks; others are estimated by it. */
    bool has_estimates;
    /** Live blocks that were allocated before this are unknown: see heap_gaps_end(). */
    struct ttd_position unknown_before;
};

#endif
