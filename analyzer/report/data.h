/* SPDX-License-Identifier: MIT */
/** The data of each command's report: pointers to results of the analyses, and the limits to which
 * they are shown. Nothing is owned. */
#ifndef ANALYZER_REPORT_DATA_H
#define ANALYZER_REPORT_DATA_H

#include <ttdtrace/redact.h>
#include <ttdtrace/verify.h>

#include "analyses/compare.h"
#include "analyses/diff.h"
#include "analyses/errors.h"
#include "analyses/fatal.h"
#include "analyses/fragmentation.h"
#include "analyses/history.h"
#include "analyses/leaks.h"
#include "analyses/memory.h"
#include "analyses/moves.h"
#include "analyses/peak.h"
#include "analyses/referrers.h"
#include "analyses/retained.h"
#include "analyses/search.h"
#include "analyses/snapshot_list.h"
#include "analyses/state.h"
#include "analyses/timeline.h"
#include "analyses/trace_stats.h"
#include "analyses/usage.h"
#include "report/certainty.h"
#include "report/report.h"
#include "symbols/definitions.h"
#include "view/tree.h"

/** The contents of a trace, for `info`. */
struct report_info {
    const struct heap_trace_stats *stats;
    const struct ttd_trace *trace;
    bool is_closed;
    const struct ttd_end *end;
    uint64_t file_bytes;
    /** Metadata, in the order of the file. */
    const struct ttd_metadata *metadata;
    size_t metadata_count;
};

/** One trace of a recording: the facts of its first chunk, its End and its metadata. */
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

/** The traces of one recording, for `info --group`. */
struct report_group {
    const struct ttd_group *id;
    const struct report_member *members;
    size_t count;
};

/** A tree of calls: the tree of any command that shows its findings by stack. */
struct report_tree {
    const struct view_tree *tree;
    const struct view_options *options;
    /** The unit that is counted, such as "block", and the one that is weighed, such as "bytes". */
    const char *unit;
    const char *weight;
    /** A frame that all folded stacks begin with, such as "[inferred]"; or NULL. */
    const char *root;
};

/** The findings of `leaks`. */
struct report_leaks {
    const struct heap_leaks *leaks;
    /** The groups of the kinds to list, one kind after the other. */
    const struct heap_groups *groups;
    /** Groups to show. */
    size_t limit;
    bool is_at_end;
    /** Whether the process may release blocks that it had before it was recorded. */
    bool has_early_blocks;
};

/** The findings of `moves`. */
struct report_moves {
    const struct heap_moves *moves;
    size_t limit;
};

/** The heap at a position, for `state`. */
struct report_state {
    struct heap_state *state;
    /** Groups to show. */
    size_t limit;
    /** The owners of the address that was asked for; NULL if none was. */
    const struct heap_history *history;
    /** Who points at the live block that the address lies in; NULL if no snapshot tells. */
    const struct heap_referrers *referrers;
    struct ttd_position at;
};

/** The findings of `peak`. */
struct report_peak {
    const struct heap_peak_state *peak;
    /** Groups to show. */
    size_t limit;
};

/** The findings of `diff` over a range of positions. */
struct report_diff {
    const struct heap_diff *diff;
    /** The blocks that the range has added, as a snapshot tells of them. */
    const struct heap_leaks *lost;
    /** Groups to show of each quadrant. */
    size_t limit;
};

/** One of the two heaps that `diff` compares. */
struct report_side {
    struct definitions *definitions;
    const struct view *view;
    const struct certainty *certainty;
    const struct report_runtime *runtime;
    uint64_t trace_id;
    struct ttd_position position;
};

/** The difference of two heaps, for `diff`. */
struct report_compare {
    /** Has no changes where there is a tree. */
    const struct heap_comparison *comparison;
    /** NULL for a list of changes. */
    const struct view_tree *tree;
    struct report_side sides[HEAP_SIDES];
    /** Changes to show, or branches of each in a tree. */
    size_t limit;
};

/** The findings of `hot`, `temporary` and `lifetimes`. */
struct report_usage {
    const struct heap_usage *usage;
    size_t limit;
};

/** Quantity that the bars of a timeline show. */
enum timeline_plot {
    /** Bytes that were live, at most. */
    TIMELINE_LIVE,
    /** Allocations a second. */
    TIMELINE_ALLOCATIONS,
    /** Bytes allocated a second. */
    TIMELINE_ALLOCATED
};

/** The findings of `timeline`. */
struct report_timeline {
    const struct heap_timeline *timeline;
    enum heap_axis axis;
    enum timeline_plot plot;
    /** Wall times are known. */
    bool has_times;
};

/** The findings of `fragmentation`. */
struct report_fragmentation {
    const struct heap_fragmentation *fragmentation;
    /** Regions to show. */
    size_t limit;
};

/** The memory that `memory` shows. */
struct report_memory {
    struct heap_memory *memory;
    /** The report reads pages: set to its first failure. */
    enum ttd_status status;
    struct ttd_error error;
};

/** The findings of `referrers`. */
struct report_referrers {
    const struct heap_referrers *referrers;
    /** The address that was asked about. */
    uint64_t address;
};

/** The findings of `retained` and `roots`. */
struct report_retained {
    const struct heap_retained *retained;
    const struct heap_retained_options *options;
};

/** The findings of `find`. */
struct report_search {
    const struct heap_search *search;
    const struct heap_search_options *options;
};

/** The findings of `errors`. */
struct report_errors {
    const struct heap_errors *errors;
    /** The signal that the program died of, or NULL. */
    const struct heap_fatal *fatal;
    /** Findings to show. */
    size_t limit;
};

/** The parts of an event that `events` shows. */
struct report_events {
    bool shows_parameters;
    bool shows_stacks;
    /** Wall times are known. */
    bool has_times;
};

/** An event, and the facts about it that are not among its members. */
struct report_event {
    const struct ttd_event *event;
    const struct report_events *options;
    /** No loss is known before it. */
    bool is_certain;
};

/** The outcome of `verify`. */
struct report_verification {
    /** Result of checking the trace, without its index. */
    struct ttd_verdict verdict;
    /** The index that was compared with the trace; NULL for none. */
    const char *index;
    bool is_index_wrong;
};

/** The outcome of `recover`. */
struct report_recovery {
    const struct ttd_verdict *verdict;
    /** Name of the file that was written. */
    const char *result;
};

/** The outcome of `redact`. */
struct report_redaction {
    const struct ttd_redaction *removed;
    /** Strings were kept. */
    bool has_strings;
    /** Name of the file that was written. */
    const char *result;
};

/** The index that `index` made. */
struct report_index {
    const char *file;
    uint64_t events;
    uint64_t keyframes;
    uint64_t summaries;
    uint64_t bytes;
};

#endif
