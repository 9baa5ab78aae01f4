/* SPDX-License-Identifier: MIT */
/** What leads on from a group of leaks: one of its blocks, who holds that, and what hangs below.
 * Private to leaks*.c. */
#ifndef ANALYZER_REPORT_REACHABILITY_LEAKS_DETAILS_H
#define ANALYZER_REPORT_REACHABILITY_LEAKS_DETAILS_H

#include "report/reachability/reports.h"

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
