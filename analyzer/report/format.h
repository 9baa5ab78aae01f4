/* SPDX-License-Identifier: MIT */
/** The formats of reports: for every command a function in each. */
#ifndef ANALYZER_REPORT_FORMAT_H
#define ANALYZER_REPORT_FORMAT_H

#include <ttdtrace/verify.h>

#include "heap/compare.h"
#include "heap/diff.h"
#include "heap/errors.h"
#include "heap/history.h"
#include "heap/leaks.h"
#include "heap/moves.h"
#include "heap/peak.h"
#include "heap/regions.h"
#include "heap/state.h"
#include "heap/survey.h"
#include "heap/timeline.h"
#include "heap/usage.h"
#include "report/csv.h"
#include "report/doubts.h"
#include "report/json.h"
#include "symbols/fingerprint.h"
#include "view/suppress.h"
#include "view/tree.h"

/** A finding of which there is more than in the baseline: blocks of a leak, calls of an error. */
typedef struct report_growth {
    unsigned kind;
    ttd_id stack;
    uint64_t before;
    uint64_t now;
} report_growth;

/** What is not reported because it is known, in findings and calls, or blocks and bytes. */
typedef struct report_known {
    bool has_suppressions;
    bool has_baseline;
    const suppressions *rules;
    uint64_t suppressed;
    uint64_t suppressed_amount;
    /** In the baseline. */
    uint64_t old;
    uint64_t old_amount;
    const report_growth *growths;
    size_t growth_count;
} report_known;

/** In which units. */
typedef enum report_unit { REPORT_BLOCKS, REPORT_FINDINGS } report_unit;

/** The blocks that the runtimes keep, which are told apart. */
typedef struct report_runtime {
    /** NULL for commands that do not tell. */
    const heap_groups *groups;
    /** They are listed as well. */
    bool is_shown;
    /** The trace does not tell all of them: the others are counted. */
    bool is_counted;
    /** The reason: the program was killed. */
    bool was_killed;
} report_runtime;

/** Tells when something happened. */
typedef struct report_clock {
    void *context;
    /** Writes the wall time of a position into `text`, of 32 bytes; false if it is not known. */
    bool (*time)(void *context, ttd_position at, char *text);
} report_clock;

/** What all reports share. */
typedef struct report {
    out *output;
    /** Name of the trace's file. */
    const char *path;
    /** Valid within one command; `status` is the first failure, of memory. */
    definitions *names;
    frame_list frames;
    /** What rows are grouped by. */
    const view *view;
    /** NULL for commands that report all. */
    const report_known *known;
    report_runtime runtime;
    /** In text: frames below main(), and template arguments, however long. */
    bool shows_all;
    report_clock clock;
    ttd_status status;
    doubts doubts;
} report;

typedef struct report_info {
    const survey *survey;
    const ttd_trace *trace;
    bool is_closed;
    const ttd_end *end;
    uint64_t file_bytes;
    /** Pairs of key and value, in the order of the file. */
    const ttd_metadata *metadata;
    size_t metadata_count;
} report_info;

/** A trace of a recording, and what it says of itself. */
typedef struct report_member {
    const char *path;
    ttd_trace trace;
    uint64_t file_bytes;
    bool is_closed;
    ttd_end end;
    /** The total of the End chunk; the events that are there, if the trace is not closed. */
    uint64_t events;
    /** Size 0 if unknown. */
    ttd_string command;
} report_member;

typedef struct report_group {
    const ttd_group *id;
    const report_member *members;
    size_t count;
} report_group;

/** A tree of calls, of whatever a command shows by stack. */
typedef struct report_tree {
    const view_tree *tree;
    const view_options *options;
    /** What is counted, such as "block"; and weighed, such as "bytes". */
    const char *unit;
    const char *weight;
    /** A frame that all folded stacks begin with, such as "[inferred]"; or NULL. */
    const char *root;
} report_tree;

typedef struct report_leaks {
    const heap_leaks *leaks;
    /** Groups to show. */
    size_t limit;
    bool is_at_end;
    /** Whether the process may release blocks that it had before it was recorded. */
    bool has_early_blocks;
} report_leaks;

typedef struct report_moves {
    const heap_moves *moves;
    size_t limit;
} report_moves;

typedef struct report_state {
    heap_state *state;
    /** Groups to show. */
    size_t limit;
    /** What is asked for of one address, or NULL. */
    const heap_history *history;
    ttd_position at;
} report_state;

typedef struct report_peak {
    const heap_peak_state *found;
    /** Groups to show. */
    size_t limit;
} report_peak;

typedef struct report_diff {
    const heap_diff *diff;
    /** Groups to show of each quadrant. */
    size_t limit;
} report_diff;

/** One of the two heaps that are compared. */
typedef struct report_side {
    definitions *names;
    const view *view;
    const doubts *doubts;
    const report_runtime *runtime;
    uint64_t trace_id;
    ttd_position position;
} report_side;

typedef struct report_compare {
    /** Without items where there is a tree. */
    const heap_comparison *comparison;
    /** Or NULL. */
    const view_tree *tree;
    report_side sides[HEAP_SIDES];
    /** Changes to show, or branches of each in a tree. */
    size_t limit;
} report_compare;

typedef struct report_usage {
    const heap_usage *usage;
    size_t limit;
} report_usage;

/** What the bars of a timeline show. */
typedef enum timeline_plot {
    /** Bytes that were live, at most. */
    TIMELINE_LIVE,
    /** Allocations a second. */
    TIMELINE_ALLOCATIONS,
    /** Bytes allocated a second. */
    TIMELINE_ALLOCATED
} timeline_plot;

typedef struct report_timeline {
    const heap_timeline *timeline;
    heap_axis axis;
    timeline_plot plot;
    /** Wall times are known. */
    bool has_times;
} report_timeline;

typedef struct report_fragmentation {
    const heap_regions *regions;
    const heap_outcome *outcome;
    /** Regions to show. */
    size_t limit;
} report_fragmentation;

typedef struct report_errors {
    const heap_errors *errors;
    /** Findings to show. */
    size_t limit;
} report_errors;

/** What is shown of events. */
typedef struct report_events {
    bool shows_parameters;
    bool shows_stacks;
    /** Wall times are known. */
    bool has_times;
} report_events;

/** An event with what the report says of it beyond its members. */
typedef struct report_event {
    const ttd_event *event;
    const report_events *options;
    /** Nothing is known to be missing before it. */
    bool is_certain;
} report_event;

/** How recover went. */
typedef struct report_recovery {
    const ttd_verdict *verdict;
    const char *result;
} report_recovery;

/** An index that was made. */
typedef struct report_index {
    const char *file;
    uint64_t events;
    uint64_t keyframes;
    uint64_t summaries;
    uint64_t bytes;
} report_index;

typedef struct report_format {
    const char *name;
    /** Shows trees of calls, and nothing else. */
    bool needs_tree;
    /** Has room for the reasons why something is uncertain. */
    bool has_reasons;
    void (*tree)(report *to, const report_tree *data);
    void (*info)(report *to, const report_info *data);
    void (*group)(report *to, const report_group *data);
    void (*leaks)(report *to, const report_leaks *data);
    void (*moves)(report *to, const report_moves *data);
    void (*state)(report *to, const report_state *data);
    void (*history)(report *to, const heap_history *data);
    void (*peak)(report *to, const report_peak *data);
    void (*diff)(report *to, const report_diff *data);
    void (*compare)(report *to, const report_compare *data);
    void (*hot)(report *to, const report_usage *data);
    void (*temporary)(report *to, const report_usage *data);
    void (*lifetimes)(report *to, const report_usage *data);
    void (*timeline)(report *to, const report_timeline *data);
    void (*fragmentation)(report *to, const report_fragmentation *data);
    void (*errors)(report *to, const report_errors *data);
    /** Before, for each, and after. */
    void (*events_begin)(report *to, const report_events *options);
    void (*event)(report *to, const report_event *data);
    /** NULL if there is nothing to say. */
    void (*events_end)(report *to);
    /** `index` counts problems from 0. */
    void (*verify_begin)(report *to);
    void (*problem)(report *to, const ttd_problem *problem, uint64_t index);
    void (*verify_end)(report *to, const ttd_verdict *verdict);
    void (*recover)(report *to, const report_recovery *data);
    void (*index)(report *to, const report_index *data);
} report_format;

/** NULL if there is none of the name. */
const report_format *report_format_find(const char *name);

/** Sets to->frames to those of a stack; empty on failure. */
void report_expand(report *to, ttd_id stack);

/** Writes a function's name in text: without long template arguments, unless all is shown. */
void report_function_text(report *to, ttd_string name);

/** Writes the frames of a stack, each in a line of its own, indented; how many there are below
 * main(), unless all is shown. */
void report_stack_text(report *to, ttd_id stack);

/** Writes the frames of a stack as an array of objects. */
void report_stack_json(report *to, json *writer, const char *key, ttd_id stack);

/** Writes the frames of a stack as one field, such as "malloc;f;main". */
void report_stack_csv(report *to, csv *writer, ttd_id stack);

/** Writes what a row is about, in lines of their own, indented: its stack, or what it is grouped
 * by. */
void report_site_text(report *to, heap_key key);

/** Writes it as members of an object. */
void report_site_json(report *to, json *writer, heap_key key);

/** Writes a header of fields that are followed by those of report_site_csv(). */
void report_site_header(report *to, csv *writer, const char *names);
void report_site_csv(report *to, csv *writer, heap_key key);

/** Writes how many groups there are, such as "3 stacks". */
void report_site_count(report *to, size_t count);

/** Writes a line that says that so many groups more are not shown, unless there are none. */
void report_site_more(report *to, size_t count);

/** The name of what a label stands for; size 0 if it has none. */
ttd_string report_label_name(const report *to, const view_label *name);

/** Writes a label in one line, and as members of an object. */
void report_label_text(report *to, const view_label *name);
void report_label_json(report *to, json *writer, const view_label *name);

/** Writes a call, with its stack, as an object; null if none is known. */
void report_place_json(report *to, json *writer, const char *key, const heap_place *place);

/** Writes a line such as "allocated by malloc() at FAB:17B1 in thread 1", and the stack. */
void report_place_text(report *to, const char *what, const heap_place *place);

/** Writes a position, and in parentheses the time, if it is known. */
void report_position_text(report *to, ttd_position position);

/** Writes what lies beside an address, and who allocated it. */
void report_neighbours_text(report *to, const heap_neighbours *neighbours, uint64_t address);
/** Writes them as the members `before` and `after`. */
void report_neighbours_json(report *to, json *writer, const heap_neighbours *neighbours);

/** Writes groups as an array of objects. */
void report_groups_json(report *to, json *writer, const char *key, const heap_groups *groups,
                        size_t limit);

/** Writes groups, each with its sums, when it was allocated if so wanted, and how many more. */
void report_groups_text(report *to, const heap_groups *groups, size_t limit, bool shows_positions);

/** Writes blocks,bytes,first_position,last_position of a group and the fields of its site. */
void report_group_csv(report *to, csv *writer, const heap_group *group);
/** Writes rows that begin with what kind of groups they are, unless that is NULL. */
void report_kind_csv(report *to, csv *writer, const char *kind, const heap_groups *groups,
                     size_t limit);

/** Writes how much the runtimes keep; and lists it, if it is to be shown. Each does nothing in
 * commands that do not tell. */
void report_runtime_text(report *to);
void report_runtime_groups_text(report *to, size_t limit, bool shows_positions);
void report_runtime_sums(out *output, const report_runtime *runtime);
void report_runtime_json(const report_runtime *runtime, json *writer);
void report_runtime_groups_json(report *to, json *writer, size_t limit);
void report_runtime_csv(report *to, csv *writer, size_t limit);

/** All of a CSV file: a header and a row for each group; with those that the runtimes keep, if they
 * are to be shown, and then with kinds. */
void report_groups_csv(report *to, const heap_groups *groups, size_t limit);

/** Writes an owner of an address as an object; NULL gives null. */
void report_owner_json(report *to, json *writer, const char *key, const heap_owner *owner);

/** Writes an owner in several lines: the block, who allocated and who released it. */
void report_owner_text(report *to, const heap_owner *owner);

/** Writes what was not reported, and why, if there is anything. */
void report_known_text(report *to, report_unit unit);

/** Writes the members that tell it, if suppressions or a baseline are given. */
void report_known_json(report *to, json *writer, report_unit unit);

/** Writes the members `certain` and `reasons`. */
void report_doubts_json(const report *to, json *writer);

/** Writes a line for each reason. */
void report_doubts_text(const report *to);

/** Begins a CSV file whose rows say whether they are certain. */
void report_csv_begin(const report *to, csv *writer);

/** Begins a folded stack: what is uncertain hangs from a frame that says so, since neither a column
 * nor a comment gets into a flame graph. */
void report_folded_begin(out *output, bool is_certain);

/** Writes a number and its unit, in the plural if need be: "2 blocks". */
void report_count(out *output, uint64_t count, const char *unit);

#endif
