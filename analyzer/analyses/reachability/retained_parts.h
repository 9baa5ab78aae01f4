/* SPDX-License-Identifier: MIT */
/** Internals of the analysis of retained sizes, private to its files. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_RETAINED_PARTS_H
#define ANALYZER_ANALYSES_REACHABILITY_RETAINED_PARTS_H

#include "analyses/reachability/retained.h"

/** Adds a record. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status retained_add(struct heap_retained *retained, const struct heap_retainer *retainer);

/** Returns the record of a node of the dominator tree: a block, or a root group. */
struct heap_retainer retained_of_node(const struct heap_retained *retained, uint32_t node);

/** Compares records for qsort(): the one that retains more comes first. */
int retained_compare(const void *a, const void *b);

/** Sorts the records, and drops those behind the first `limit`. */
void retained_cut(struct heap_retained *retained, size_t limit);

/** Finds the records of a tree. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status retained_tree(struct heap_retained *retained,
                              const struct heap_retained_options *options);

/** Finds the records of groups of blocks. @return TTD_OK, TTD_ERROR_NO_MEMORY, and those of
 * options->labels. */
enum ttd_status retained_groups(struct heap_retained *retained,
                                const struct heap_retained_options *options, size_t limit);

/** Finds the records of root groups, in a list. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status retained_roots(struct heap_retained *retained, size_t limit);

#endif
