/* SPDX-License-Identifier: MIT */
/** What trees of one heap and of two have in common. */
#ifndef ANALYZER_REPORT_TREE_H
#define ANALYZER_REPORT_TREE_H

#include "report/data.h"
#include "report/sections.h"

/** Writes `sign` and a number that end at a column. */
void report_tree_number(struct out *output, const char *sign, uint64_t value, size_t end);

/** Writes what a column is called, so that it ends there. */
void report_tree_heading(struct out *output, const char *name, size_t end);

/** Writes what a node stands for, as far to the right as it is deep, and ends the line. */
void report_tree_name(struct report *report, const struct view_tree *tree,
                      const struct view_node *node, size_t limit);

/** Writes how many of the outermost nodes are not shown, if any; and a blank line after a tree. */
void report_tree_more(struct report *report, const struct view_tree *tree, size_t limit);

/** Writes the members of an object that say what a tree is. */
void report_tree_json(struct json *json, const struct view_options *options);

/** Writes fields of what a node stands for, which are called REPORT_TREE_FIELDS. */
#define REPORT_TREE_FIELDS "kind,name,module,number"
void report_tree_csv(struct report *report, struct csv *csv, const struct view_label *label);

/** For folded stacks: what leads to a node, with its own name last. `path` has room for all. */
void report_tree_path(struct report *report, const struct view_tree *tree, uint32_t node,
                      uint32_t *path);

/** Room for the path to any node; NULL, and to->status set, without memory. */
uint32_t *report_tree_path_room(struct report *report, const struct view_tree *tree,
                                struct arena *arena);

#endif
