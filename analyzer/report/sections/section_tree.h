/* SPDX-License-Identifier: MIT */
/** Trees of calls: the report of a tree of one heap, and the parts that it shares with the report
 * of a tree of two heaps. */
#ifndef ANALYZER_REPORT_SECTIONS_SECTION_TREE_H
#define ANALYZER_REPORT_SECTIONS_SECTION_TREE_H

#include "report/sections/sections.h"
#include "view/tree.h"

/** A tree of calls: the tree of any command that shows its findings by stack. */
struct report_tree {
    const struct view_tree *tree;
    const struct view_options *options;
    /** The units of counts, such as "block", and of weights, such as "bytes". */
    const char *unit;
    const char *weight;
    /** A frame that all folded stacks begin with, such as "[inferred]"; or NULL. */
    const char *root;
};

void report_tree(struct report *report, const struct report_tree *data);

/** Writes `sign` and a number, right-aligned at column `end`. */
void report_tree_number(struct text_output *output, const char *sign, uint64_t value, size_t end);

/** Writes the name of a column, right-aligned at `end`. */
void report_tree_heading(struct text_output *output, const char *name, size_t end);

/** Writes the label of a node, indented by its branchings, and ends the line. */
void report_tree_name(struct report *report, const struct view_tree *tree,
                      const struct view_node *node, size_t limit);

/** Writes the number of outermost nodes that are not shown, if there are any, and a blank line. */
void report_tree_more(struct report *report, const struct view_tree *tree, size_t limit);

/** Writes the members of an object that describe a tree: its shape and grouping. */
void row_tree(struct row *row, const struct view_options *options);

/** Returns the name of a kind of labels, such as "function". Static. */
const char *report_tree_kind(enum label_kind kind);

/** Writes the label of a node: the members of its kind; in CSV four columns for all kinds. */
void row_tree_label(struct row *row, const struct view_tree *tree, uint32_t node);

/** Visits a node of a tree. */
typedef void row_tree_visitor(struct row *row, const struct view_tree *tree, uint32_t node);

/** Writes the nodes that a report shows. */
void row_tree_nodes(struct row *row, const struct view_tree *tree, row_tree_visitor *visit);

/** Writes a label in a folded stack. A frame needs a text, even without a name. */
void report_folded_label(struct report *report, const struct view_label *label);

/** Writes a folded stack: the labels from the root to a node. `path` is from
 * report_tree_path_room(). */
void report_tree_path(struct report *report, const struct view_tree *tree, uint32_t node,
                      uint32_t *path);

/** Allocates room for the path to any node; NULL without memory, with report->status set. */
uint32_t *report_tree_path_room(struct report *report, const struct view_tree *tree,
                                struct arena *arena);

#endif
