/* SPDX-License-Identifier: MIT */
/** Details of a group of leaks: one of its blocks, who holds that, and the blocks below.
 * Private to leaks*.c. */
#ifndef ANALYZER_REPORT_REACHABILITY_LEAKS_DETAILS_H
#define ANALYZER_REPORT_REACHABILITY_LEAKS_DETAILS_H

#include "report/reachability/reachability_reports.h"

/* Possibly lost blocks, by the way in which they are held: part of the report of `leaks`. */

/** Columns of leaks_way_csv(), with a comma before. */
#define LEAKS_WAY_HEADER ",way,way_offset"

/** Returns the number of groups that are listed one by one. The others come last, and are possibly
 * lost. */
size_t leaks_listed(const struct report_leaks *data);

/** Writes the groups that are not listed one by one, if any, as one. */
void leaks_possible_text(struct report *report, const struct report_leaks *data);
/** Writes the sums of all possibly lost groups by way, as an array. */
void leaks_possible_json(struct json *json, const struct heap_groups *groups);

/** Writes the way in which a group is held: text as a line; nothing, or empty columns, if the group
 * is not possibly lost. */
void leaks_way_text(struct report *report, const struct heap_group *group);
void leaks_way_json(struct json *json, const struct heap_group *group);
void leaks_way_csv(struct csv *csv, const struct heap_group *group);

/** @param number  of the group, from 1, as `referrers --group` takes it */
void leaks_details_text(struct report *report, const struct report_leaks *data,
                        const struct heap_group *group, size_t number);
void leaks_details_json(struct report *report, struct json *json, const struct report_leaks *data,
                        const struct heap_group *group, size_t number);

/** The columns that leaks_details_csv() writes; empty for NULL. */
#define LEAKS_DETAILS_HEADER ",group,address,holder,below"
void leaks_details_csv(struct report *report, struct csv *csv, const struct report_leaks *data,
                       const struct heap_group *group, size_t number);

#endif
