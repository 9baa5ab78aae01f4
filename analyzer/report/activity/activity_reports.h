/* SPDX-License-Identifier: MIT */
/**
 * The reports about a program's use of its heap over time: their data, and the functions that write
 * them in all forms. Nothing is owned.
 */
#ifndef ANALYZER_REPORT_ACTIVITY_ACTIVITY_REPORTS_H
#define ANALYZER_REPORT_ACTIVITY_ACTIVITY_REPORTS_H

#include "analyses/activity/moves.h"
#include "analyses/activity/timeline.h"
#include "analyses/activity/usage.h"
#include "report/sections/sections.h"

/** Quantity that the bars of a timeline show. */
enum timeline_plot {
    /** Bytes that were live, at most. */
    TIMELINE_LIVE,
    /** Allocations a second. */
    TIMELINE_ALLOCATIONS,
    /** Bytes allocated a second. */
    TIMELINE_ALLOCATED,
    /** Memory of the process that was resident, at most. */
    TIMELINE_RESIDENT
};

/** The findings of `timeline`. */
struct report_timeline {
    const struct heap_timeline *timeline;
    enum heap_axis axis;
    enum timeline_plot plot;
    /** Wall times are known. */
    bool has_times;
    /** Only a part of the blocks counts. */
    bool is_part;
};

void report_moves(struct report *report, const struct heap_moves *moves);
void report_hot(struct report *report, const struct heap_usage *usage);
void report_temporary(struct report *report, const struct heap_usage *usage);
void report_lifetimes(struct report *report, const struct heap_usage *usage);
void report_timeline(struct report *report, const struct report_timeline *data);

#endif
