/* SPDX-License-Identifier: MIT */
/** Sorting groups: the largest first. Private to heap/groups.c. */
#ifndef ANALYZER_HEAP_GROUPS_SORT_H
#define ANALYZER_HEAP_GROUPS_SORT_H

#include "heap/groups.h"

/** Compares two groups for qsort(): by total bytes, bytes and blocks, then by key. */
int heap_group_compare(const void *a, const void *b);

/** Sorts groups in the order of heap_group_compare(). @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_groups_order(struct heap_groups *groups);

#endif
