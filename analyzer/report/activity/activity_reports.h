/* SPDX-License-Identifier: MIT */
/**
 * The reports about what a program did with its heap over time: their data, and the function of
 * each format that writes them. Nothing is owned.
 */
#ifndef ANALYZER_REPORT_ACTIVITY_ACTIVITY_REPORTS_H
#define ANALYZER_REPORT_ACTIVITY_ACTIVITY_REPORTS_H

#include "analyses/activity/moves.h"
#include "analyses/activity/timeline.h"
#include "analyses/activity/usage.h"
#include "report/sections/sections.h"

/** The findings of `moves`. */
struct report_moves {
    const struct heap_moves *moves;
    size_t limit;
};

/** The findings of `hot`, `temporary` and `lifetimes`. */
struct report_usage {
    const struct heap_usage *usage;
    /** Sites are ranked by calls, not by bytes. */
    bool is_by_calls;
    size_t limit;
};

/** Quantity that the bars of a timeline show. */
enum timeline_plot {
    /** Bytes that were live, at most. */
    TIMELINE_LIVE,
    /** Allocations a second. */
    TIMELINE_ALLOCATIONS,
    /** Bytes allocated a second. */
    TIMELINE_ALLOCATED
};

/** The findings of `timeline`. */
struct report_timeline {
    const struct heap_timeline *timeline;
    enum heap_axis axis;
    enum timeline_plot plot;
    /** Wall times are known. */
    bool has_times;
};

void text_moves(struct report *report, const struct report_moves *data);
void json_moves(struct report *report, const struct report_moves *data);
void csv_moves(struct report *report, const struct report_moves *data);

void text_hot(struct report *report, const struct report_usage *data);
void json_hot(struct report *report, const struct report_usage *data);
void csv_hot(struct report *report, const struct report_usage *data);

void text_temporary(struct report *report, const struct report_usage *data);

void text_lifetimes(struct report *report, const struct report_usage *data);
void json_lifetimes(struct report *report, const struct report_usage *data);
void csv_lifetimes(struct report *report, const struct report_usage *data);

void text_timeline(struct report *report, const struct report_timeline *data);
void json_timeline(struct report *report, const struct report_timeline *data);
void csv_timeline(struct report *report, const struct report_timeline *data);

#endif
