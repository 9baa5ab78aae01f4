/* SPDX-License-Identifier: MIT */
/** The records of `retained` and `roots`, for reports in several formats. Private to
 * report/reachability/. */
#ifndef ANALYZER_REPORT_REACHABILITY_RETAINED_PARTS_H
#define ANALYZER_REPORT_REACHABILITY_RETAINED_PARTS_H

#include "report/reachability/reports.h"

/** Returns the static name of the kind of retainers in a report, such as "block". */
const char *retained_key_name(const struct report *report, const struct report_retained *data);

/** Whether records are groups of blocks with the same label. */
static inline bool retained_is_by_label(const struct report_retained *data)
{
    return !data->options->depth && data->options->by == HEAP_RETAINED_BY_LABEL;
}

/** Returns the key of the label of a retainer, if retained_is_by_label(). */
static inline struct heap_key retained_label(const struct heap_retainer *retainer)
{
    return (struct heap_key){TTD_NONE, retainer->index};
}

/** Returns the root group that a retainer is; NULL if it is something else. */
const struct heap_root_group *retained_root(const struct heap_retained *retained,
                                            const struct heap_retainer *retainer);

/** Copies the block that a retainer is. Returns `copy`, or NULL if the retainer is something else.
 */
const struct heap_block *retained_block(const struct heap_retained *retained,
                                        const struct heap_retainer *retainer,
                                        struct heap_block *copy);

/** Returns the name of the class of a retainer; size 0 if it has none. */
struct ttd_string retained_class(struct report *report, const struct heap_retained *retained,
                                 const struct heap_retainer *retainer);

#endif
