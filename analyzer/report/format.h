/* SPDX-License-Identifier: MIT */
/** The output formats: text, JSON, CSV and folded stacks. */
#ifndef ANALYZER_REPORT_FORMAT_H
#define ANALYZER_REPORT_FORMAT_H

#include "report/activity/activity_reports.h"
#include "report/errors/error_reports.h"
#include "report/memory/memory_reports.h"
#include "report/reachability/reachability_reports.h"
#include "report/sections/section_tree.h"
#include "report/state/state_reports.h"
#include "report/trace/trace_reports.h"

/** An output format: for each command the function that writes its report. */
struct report_format {
    const char *name;
    /** Has reports of trees of calls only; the other functions are NULL. */
    bool needs_tree;
    /** Positions are given with their time. */
    bool has_times;
    /** The report gives the reasons for uncertainty; otherwise they are warnings. */
    bool has_reasons;
    void (*tree)(struct report *report, const struct report_tree *data);
    void (*summary)(struct report *report, const struct report_summary *data);
    void (*info)(struct report *report, const struct report_info *data);
    void (*group)(struct report *report, const struct report_group *data);
    void (*family)(struct report *report, const struct report_family *data);
    void (*leaks)(struct report *report, const struct report_leaks *data);
    void (*moves)(struct report *report, const struct report_moves *data);
    void (*state)(struct report *report, const struct report_state *data);
    void (*history)(struct report *report, const struct heap_history *history);
    void (*peak)(struct report *report, const struct report_peak *data);
    void (*diff)(struct report *report, const struct report_diff *data);
    void (*compare)(struct report *report, const struct report_compare *data);
    void (*hot)(struct report *report, const struct report_usage *data);
    void (*temporary)(struct report *report, const struct report_usage *data);
    void (*lifetimes)(struct report *report, const struct report_usage *data);
    void (*timeline)(struct report *report, const struct report_timeline *data);
    void (*fragmentation)(struct report *report, const struct report_fragmentation *data);
    void (*memory)(struct report *report, struct report_memory *data);
    void (*snapshots)(struct report *report, const struct heap_snapshot_list *list);
    /** Called before all marks, and for each. */
    void (*marks_begin)(struct report *report);
    void (*mark)(struct report *report, const struct report_marks *options,
                 const struct heap_mark *mark);
    void (*find)(struct report *report, const struct report_search *data);
    void (*referrers)(struct report *report, const struct report_referrers *data);
    void (*retained)(struct report *report, const struct report_retained *data);
    void (*errors)(struct report *report, const struct report_errors *data);
    /** Called before all events, and for each. */
    void (*events_begin)(struct report *report, const struct report_events *options);
    void (*event)(struct report *report, const struct report_event *data);
    /** Called after all marks or events; NULL if the format has no end. */
    void (*rows_end)(struct report *report);
    /** `index` counts problems from 0. */
    void (*verify_begin)(struct report *report);
    void (*problem)(struct report *report, const struct ttd_problem *problem, uint64_t index);
    void (*verify_end)(struct report *report, const struct report_verification *data);
    void (*recover)(struct report *report, const struct report_recovery *data);
    void (*redact)(struct report *report, const struct report_redaction *data);
    void (*index)(struct report *report, const struct report_index *data);
};

/** Finds a format by name; NULL if there is none. */
const struct report_format *report_format_find(const char *name);

#endif
