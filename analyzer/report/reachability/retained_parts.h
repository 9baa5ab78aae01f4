/* SPDX-License-Identifier: MIT */
/** The records of `retained` and `roots`, for reports in several formats. Private to
 * report/reachability/. */
#ifndef ANALYZER_REPORT_REACHABILITY_RETAINED_PARTS_H
#define ANALYZER_REPORT_REACHABILITY_RETAINED_PARTS_H

#include "report/reachability/reports.h"

/** The name of what goes away, such as "block". */
const char *retained_key_name(const struct report *report, const struct report_retained *data);

/** Whether records are groups of blocks with the same label. */
static inline bool retained_is_by_label(const struct report_retained *data)
{
    return !data->options->depth && data->options->by == HEAP_RETAINED_BY_LABEL;
}

/** The key of such a record. */
static inline struct heap_key retained_label(const struct heap_retainer *item)
{
    return (struct heap_key){TTD_NONE, item->index};
}

/** The root that a record is of; NULL if it is of none. */
const struct heap_root_group *retained_root(const struct heap_retained *retained,
                                            const struct heap_retainer *item);

/** Copies the block that a record is of. Returns the copy, or NULL if it is of none. */
const struct heap_block *retained_block(const struct heap_retained *retained,
                                        const struct heap_retainer *item, struct heap_block *copy);

/** The name of the class that a record is of; size 0 if it has none. */
struct ttd_string retained_class(struct report *report, const struct heap_retained *retained,
                                 const struct heap_retainer *item);

#endif
