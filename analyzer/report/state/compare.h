/* SPDX-License-Identifier: MIT */
/** Parts of a comparison of two heaps that the list of changes and the tree share. */
#ifndef ANALYZER_REPORT_STATE_COMPARE_H
#define ANALYZER_REPORT_STATE_COMPARE_H

#include "report/state/reports.h"

/** Writes the sums of both heaps and their difference, without ending the last line. */
void text_compare_sums(struct report *report, const struct report_compare *data);

/** Writes, for each heap, the sums of the blocks that the runtimes keep, which are not counted. */
void text_compare_runtime(struct report *report, const struct report_compare *data);

/** Writes a line for each reason why one of the heaps is uncertain. */
void text_compare_certainty(struct report *report, const struct report_compare *data);

/** Whether both heaps are certain. */
static inline bool report_compare_is_certain(const struct report_compare *data)
{
    return !data->sides[HEAP_OLD].certainty->count && !data->sides[HEAP_NEW].certainty->count;
}

/* Write data->tree: a whole text or CSV file, or members of an object. */
void text_compare_tree(struct report *report, const struct report_compare *data);
void json_compare_tree(struct report *report, struct json *json, const struct report_compare *data);
void csv_compare_tree(struct report *report, const struct report_compare *data);

#endif
