/* SPDX-License-Identifier: MIT */
/**
 * The reports about the heap at a position: their data, and the functions that write them in
 * all forms. Nothing is owned.
 */
#ifndef ANALYZER_REPORT_STATE_STATE_REPORTS_H
#define ANALYZER_REPORT_STATE_STATE_REPORTS_H

#include "analyses/state/diff.h"
#include "analyses/state/fragmentation.h"
#include "analyses/state/heap_tree.h"
#include "analyses/state/history.h"
#include "analyses/state/peak.h"
#include "analyses/state/state.h"
#include "report/reachability/reachability_reports.h"
#include "report/sections/sections.h"
#include "view/tree.h"

/** The heap at a position, for `state`. */
struct report_state {
    struct heap_state *state;
    /** The owners of the address that was asked about; NULL without an address. */
    const struct heap_owners *owners;
    /** The referrers of the live block that contains the address; NULL if there is no snapshot. */
    const struct heap_referrers *referrers;
    struct ttd_position at;
    /** The tree of heaps; NULL if it is not asked for. */
    const struct heap_tree *heaps;
};

/** The findings of `diff` over a range of positions. */
struct report_diff {
    const struct heap_diff *diff;
    /** The blocks that the range has added, classified by a snapshot. */
    const struct heap_leaks *lost;
    /** The range, both included. */
    struct ttd_position from;
    struct ttd_position last;
};

/** Live blocks: blocks of heaps without a parent, and the nested blocks that lie in them. Sums of
 * both would count memory twice. */
struct report_live {
    uint64_t blocks;
    uint64_t bytes;
    uint64_t nested_blocks;
    uint64_t nested_bytes;
    /** The blocks that those of a sample stand for, without nested ones. */
    struct heap_estimate estimate;
};

/** One of the two heaps that `diff` compares. */
struct report_side {
    struct definitions *definitions;
    const struct view *view;
    const struct certainty *certainty;
    const struct report_runtime *runtime;
    uint64_t trace_id;
    struct ttd_position position;
    struct report_live live;
};

/** The difference of two heaps, for `diff`. */
struct report_compare {
    /** The list of changes; empty if the report is a tree. */
    const struct heap_comparison *comparison;
    /** NULL if the report is a list. */
    const struct view_tree *tree;
    struct report_side sides[HEAP_SIDES];
    /** The list has groups that have not changed as well, behind the others. */
    bool has_same;
};

/** Sums up a table of live blocks by heap. */
struct report_live report_live_of(const struct report *report, const struct heap_groups *by_heap);

/** Write them as four members, and a line about the nested ones if there are any. */
void row_live(struct row *row, const struct report_live *live);
void report_live_nested_text(struct text_output *output, const char *indent,
                             const struct report_live *live);

void report_state(struct report *report, const struct report_state *data);
void report_history(struct report *report, const struct heap_history *history);
void report_peak(struct report *report, const struct heap_peak_state *peak);
void report_diff(struct report *report, const struct report_diff *data);
void report_compare(struct report *report, const struct report_compare *data);
void report_fragmentation(struct report *report, const struct heap_fragmentation *fragmentation);
/** Writes the sparse pages and their first keepers, `most` at most, in JSON. */
void report_sparse_pages(struct report *report, const struct heap_sparse_pages *sparse,
                         size_t most);

/** Whether an owner was not released, and may have been in a gap of recording. */
bool report_owner_is_unknown(const struct report *report, const struct heap_owner *owner);

/** Write the tree of heaps: as indented lines, and as a member, parents before children. */
void report_heap_tree_text(struct report *report, const struct heap_tree *tree);
void row_heap_tree(struct row *row, const struct heap_tree *tree);

/** Writes an owner of an address as an object; NULL gives null. */
void row_owner(struct row *row, const char *key, const struct heap_owner *owner);

/** Writes an owner in several lines: the block, and the calls that allocated and released it. */
void report_owner_text(struct report *report, const struct heap_owner *owner);

#endif
