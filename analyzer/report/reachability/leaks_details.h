/* SPDX-License-Identifier: MIT */
/** Details of a group of leaks: one of its blocks, who holds that, and the blocks below.
 * Private to leaks*.c. */
#ifndef ANALYZER_REPORT_REACHABILITY_LEAKS_DETAILS_H
#define ANALYZER_REPORT_REACHABILITY_LEAKS_DETAILS_H

#include "report/reachability/reachability_reports.h"

/* Possibly lost blocks, by the way in which they are held: part of the report of `leaks`. */

/** Returns the number of groups that are listed one by one. The others come last, and are possibly
 * lost. */
size_t leaks_listed(const struct report_leaks *data);

/** Writes the groups that are not listed one by one, if any, as one. */
void leaks_possible_text(struct report *report, const struct report_leaks *data);
/** Writes the sums of all possibly lost groups by way, as an array. */
void row_possible_ways(struct row *row, const struct heap_groups *groups);

/** Writes the way in which a group is held: text as a line; nothing, or empty columns, if the group
 * is not possibly lost. */
void leaks_way_text(struct report *report, const struct heap_group *group);
void row_way(struct row *row, struct heap_way way);

/** @param number  of the group, from 1, as `referrers --group` takes it */
void leaks_details_text(struct report *report, const struct report_leaks *data,
                        const struct heap_group *group, size_t number);
/** @param group  NULL for empty columns in CSV */
void row_leak_details(struct row *row, const struct report_leaks *data,
                      const struct heap_group *group, size_t number);

#endif
