/* SPDX-License-Identifier: MIT */
/** The formats of reports: for every command a function in each. */
#ifndef ANALYZER_REPORT_FORMAT_H
#define ANALYZER_REPORT_FORMAT_H

#include <ttdtrace/verify.h>

#include "analyses/compare.h"
#include "analyses/diff.h"
#include "analyses/errors.h"
#include "analyses/history.h"
#include "analyses/leaks.h"
#include "analyses/moves.h"
#include "analyses/peak.h"
#include "analyses/fragmentation.h"
#include "analyses/state.h"
#include "analyses/trace_stats.h"
#include "analyses/timeline.h"
#include "analyses/usage.h"
#include "report/csv.h"
#include "report/certainty.h"
#include "report/json.h"
#include "symbols/fingerprint.h"
#include "view/suppress.h"
#include "view/tree.h"

/** A finding of which there is more than in the baseline: blocks of a leak, calls of an error. */
struct report_growth {
    unsigned kind;
    ttd_id stack;
    uint64_t before;
    uint64_t now;
};

/** What is not reported because it is known, in findings and calls, or blocks and bytes. */
struct report_known_findings {
    bool has_suppressions;
    bool has_baseline;
    const struct suppressions *suppressions;
    uint64_t suppressed;
    uint64_t suppressed_amount;
    /** In the baseline. */
    uint64_t in_baseline;
    uint64_t in_baseline_amount;
    const struct report_growth *growths;
    size_t growth_count;
};

/** In which units. */
enum report_unit { REPORT_BLOCKS, REPORT_FINDINGS };

/** The blocks that the runtimes keep, which are told apart. */
struct report_runtime {
    /** NULL for commands that do not tell. */
    const struct heap_groups *groups;
    /** They are listed as well. */
    bool is_shown;
    /** The trace does not tell all of them: the others are counted. */
    bool is_counted;
    /** The reason: the program was killed. */
    bool was_killed;
};

/** Tells when something happened. */
struct report_clock {
    void *context;
    /** Writes the wall time of a position into `text`, of 32 bytes; false if it is not known. */
    bool (*time)(void *context, struct ttd_position at, char *text);
};

/** What all reports share. */
struct report {
    struct out *output;
    /** Name of the trace's file. */
    const char *path;
    /** Valid within one command; `status` is the first failure, of memory. */
    struct definitions *definitions;
    struct frame_list frames;
    /** What rows are grouped by. */
    const struct view *view;
    /** NULL for commands that report all. */
    const struct report_known_findings *known_findings;
    struct report_runtime runtime;
    /** In text: frames below main(), and template arguments, however long. */
    bool shows_all;
    struct report_clock clock;
    enum ttd_status status;
    struct certainty certainty;
};

struct report_info {
    const struct trace_stats *stats;
    const struct ttd_trace *trace;
    bool is_closed;
    const struct ttd_end *end;
    uint64_t file_bytes;
    /** Pairs of key and value, in the order of the file. */
    const struct ttd_metadata *metadata;
    size_t metadata_count;
};

/** A trace of a recording, and what it says of itself. */
struct report_member {
    const char *path;
    struct ttd_trace trace;
    uint64_t file_bytes;
    bool is_closed;
    struct ttd_end end;
    /** The total of the End chunk; the events that are there, if the trace is not closed. */
    uint64_t events;
    /** Size 0 if unknown. */
    struct ttd_string command;
};

struct report_group {
    const struct ttd_group *id;
    const struct report_member *members;
    size_t count;
};

/** A tree of calls, of whatever a command shows by stack. */
struct report_tree {
    const struct view_tree *tree;
    const struct view_options *options;
    /** What is counted, such as "block"; and weighed, such as "bytes". */
    const char *unit;
    const char *weight;
    /** A frame that all folded stacks begin with, such as "[inferred]"; or NULL. */
    const char *root;
};

struct report_leaks {
    const struct heap_leaks *leaks;
    /** Groups to show. */
    size_t limit;
    bool is_at_end;
    /** Whether the process may release blocks that it had before it was recorded. */
    bool has_early_blocks;
};

struct report_moves {
    const struct heap_moves *moves;
    size_t limit;
};

struct report_state {
    struct heap_state *state;
    /** Groups to show. */
    size_t limit;
    /** What is asked for of one address, or NULL. */
    const struct heap_history *history;
    struct ttd_position at;
};

struct report_peak {
    const struct heap_peak_state *peak;
    /** Groups to show. */
    size_t limit;
};

struct report_diff {
    const struct heap_diff *diff;
    /** Groups to show of each quadrant. */
    size_t limit;
};

/** One of the two heaps that are compared. */
struct report_side {
    struct definitions *definitions;
    const struct view *view;
    const struct certainty *certainty;
    const struct report_runtime *runtime;
    uint64_t trace_id;
    struct ttd_position position;
};

struct report_compare {
    /** Without items where there is a tree. */
    const struct heap_comparison *comparison;
    /** Or NULL. */
    const struct view_tree *tree;
    struct report_side sides[HEAP_SIDES];
    /** Changes to show, or branches of each in a tree. */
    size_t limit;
};

struct report_usage {
    const struct heap_usage *usage;
    size_t limit;
};

/** What the bars of a timeline show. */
enum timeline_plot {
    /** Bytes that were live, at most. */
    TIMELINE_LIVE,
    /** Allocations a second. */
    TIMELINE_ALLOCATIONS,
    /** Bytes allocated a second. */
    TIMELINE_ALLOCATED
};

struct report_timeline {
    const struct heap_timeline *timeline;
    enum heap_axis axis;
    enum timeline_plot plot;
    /** Wall times are known. */
    bool has_times;
};

struct report_fragmentation {
    const struct heap_fragmentation *fragmentation;
    /** Regions to show. */
    size_t limit;
};

struct report_errors {
    const struct heap_errors *errors;
    /** Findings to show. */
    size_t limit;
};

/** What is shown of events. */
struct report_events {
    bool shows_parameters;
    bool shows_stacks;
    /** Wall times are known. */
    bool has_times;
};

/** An event with what the report says of it beyond its members. */
struct report_event {
    const struct ttd_event *event;
    const struct report_events *options;
    /** Nothing is known to be missing before it. */
    bool is_certain;
};

/** How recover went. */
struct report_recovery {
    const struct ttd_verdict *verdict;
    const char *result;
};

/** An index that was made. */
struct report_index {
    const char *file;
    uint64_t events;
    uint64_t keyframes;
    uint64_t summaries;
    uint64_t bytes;
};

struct report_format {
    const char *name;
    /** Shows trees of calls, and nothing else. */
    bool needs_tree;
    /** Has room for the reasons why something is uncertain. */
    bool has_reasons;
    void (*tree)(struct report *report, const struct report_tree *data);
    void (*info)(struct report *report, const struct report_info *data);
    void (*group)(struct report *report, const struct report_group *data);
    void (*leaks)(struct report *report, const struct report_leaks *data);
    void (*moves)(struct report *report, const struct report_moves *data);
    void (*state)(struct report *report, const struct report_state *data);
    void (*history)(struct report *report, const struct heap_history *data);
    void (*peak)(struct report *report, const struct report_peak *data);
    void (*diff)(struct report *report, const struct report_diff *data);
    void (*compare)(struct report *report, const struct report_compare *data);
    void (*hot)(struct report *report, const struct report_usage *data);
    void (*temporary)(struct report *report, const struct report_usage *data);
    void (*lifetimes)(struct report *report, const struct report_usage *data);
    void (*timeline)(struct report *report, const struct report_timeline *data);
    void (*fragmentation)(struct report *report, const struct report_fragmentation *data);
    void (*errors)(struct report *report, const struct report_errors *data);
    /** Before, for each, and after. */
    void (*events_begin)(struct report *report, const struct report_events *options);
    void (*event)(struct report *report, const struct report_event *data);
    /** NULL if there is nothing to say. */
    void (*events_end)(struct report *report);
    /** `index` counts problems from 0. */
    void (*verify_begin)(struct report *report);
    void (*problem)(struct report *report, const struct ttd_problem *problem, uint64_t index);
    void (*verify_end)(struct report *report, const struct ttd_verdict *verdict);
    void (*recover)(struct report *report, const struct report_recovery *data);
    void (*index)(struct report *report, const struct report_index *data);
};

/** NULL if there is none of the name. */
const struct report_format *report_format_find(const char *name);

/** Sets to->frames to those of a stack; empty on failure. */
void report_expand(struct report *report, ttd_id stack);

/** Writes a function's name in text: without long template arguments, unless all is shown. */
void report_function_text(struct report *report, struct ttd_string name);

/** Writes the frames of a stack, each in a line of its own, indented; how many there are below
 * main(), unless all is shown. */
void report_stack_text(struct report *report, ttd_id stack);

/** Writes the frames of a stack as an array of objects. */
void report_stack_json(struct report *report, struct json *json, const char *key, ttd_id stack);

/** Writes the frames of a stack as one field, such as "malloc;f;main". */
void report_stack_csv(struct report *report, struct csv *csv, ttd_id stack);

/** Writes what a row is about, in lines of their own, indented: its stack, or what it is grouped
 * by. */
void report_site_text(struct report *report, struct heap_key key);

/** Writes it as members of an object. */
void report_site_json(struct report *report, struct json *json, struct heap_key key);

/** Writes a header of fields that are followed by those of report_site_csv(). */
void report_site_header(struct report *report, struct csv *csv, const char *names);
void report_site_csv(struct report *report, struct csv *csv, struct heap_key key);

/** Writes how many groups there are, such as "3 stacks". */
void report_site_count(struct report *report, size_t count);

/** Writes a line that says that so many groups more are not shown, unless there are none. */
void report_site_more(struct report *report, size_t count);

/** The name of what a label stands for; size 0 if it has none. */
struct ttd_string report_label_name(const struct report *report, const struct view_label *label);

/** Writes a label in one line, and as members of an object. */
void report_label_text(struct report *report, const struct view_label *label);
void report_label_json(struct report *report, struct json *json, const struct view_label *label);

/** Writes a call, with its stack, as an object; null if none is known. */
void report_place_json(struct report *report, struct json *json, const char *key,
                       const struct heap_call *call);

/** Writes a line such as "allocated by malloc() at FAB:17B1 in thread 1", and the stack. */
void report_place_text(struct report *report, const char *what, const struct heap_call *call);

/** Writes a position, and in parentheses the time, if it is known. */
void report_position_text(struct report *report, struct ttd_position position);

/** Writes what lies beside an address, and who allocated it. */
void report_neighbours_text(struct report *report, const struct heap_neighbours *neighbours,
                            uint64_t address);
/** Writes them as the members `before` and `after`. */
void report_neighbours_json(struct report *report, struct json *json,
                            const struct heap_neighbours *neighbours);

/** Writes groups as an array of objects. */
void report_groups_json(struct report *report, struct json *json, const char *key,
                        const struct heap_groups *groups, size_t limit);

/** Writes groups, each with its sums, when it was allocated if so wanted, and how many more. */
void report_groups_text(struct report *report, const struct heap_groups *groups, size_t limit,
                        bool shows_positions);

/** Writes blocks,bytes,first_position,last_position of a group and the fields of its site. */
void report_group_csv(struct report *report, struct csv *csv, const struct heap_group *group);
/** Writes rows that begin with what kind of groups they are, unless that is NULL. */
void report_kind_csv(struct report *report, struct csv *csv, const char *kind,
                     const struct heap_groups *groups, size_t limit);

/** Writes how much the runtimes keep; and lists it, if it is to be shown. Each does nothing in
 * commands that do not tell. */
void report_runtime_text(struct report *report);
void report_runtime_groups_text(struct report *report, size_t limit, bool shows_positions);
void report_runtime_sums(struct out *output, const struct report_runtime *runtime);
void report_runtime_json(const struct report_runtime *runtime, struct json *json);
void report_runtime_groups_json(struct report *report, struct json *json, size_t limit);
void report_runtime_csv(struct report *report, struct csv *csv, size_t limit);

/** All of a CSV file: a header and a row for each group; with those that the runtimes keep, if they
 * are to be shown, and then with kinds. */
void report_groups_csv(struct report *report, const struct heap_groups *groups, size_t limit);

/** Writes an owner of an address as an object; NULL gives null. */
void report_owner_json(struct report *report, struct json *json, const char *key,
                       const struct heap_owner *owner);

/** Writes an owner in several lines: the block, who allocated and who released it. */
void report_owner_text(struct report *report, const struct heap_owner *owner);

/** Writes what was not reported, and why, if there is anything. */
void report_known_findings_text(struct report *report, enum report_unit unit);

/** Writes the members that tell it, if suppressions or a baseline are given. */
void report_known_findings_json(struct report *report, struct json *json, enum report_unit unit);

/** Writes the members `certain` and `reasons`. */
void report_certainty_json(const struct report *report, struct json *json);

/** Writes a line for each reason. */
void report_certainty_text(const struct report *report);

/** Begins a CSV file whose rows say whether they are certain. */
void report_csv_begin(const struct report *report, struct csv *csv);

/** Begins a folded stack: what is uncertain hangs from a frame that says so, since neither a column
 * nor a comment gets into a flame graph. */
void report_folded_begin(struct out *output, bool is_certain);

/** Writes a number and its unit, in the plural if need be: "2 blocks". */
void report_count(struct out *output, uint64_t count, const char *unit);

#endif
