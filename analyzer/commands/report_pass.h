/* SPDX-License-Identifier: MIT */
/** The findings of several commands, found in one pass over the trace or in two at the same time:
 * for the page of `report`, and for `summary`. */
#ifndef ANALYZER_COMMANDS_REPORT_PASS_H
#define ANALYZER_COMMANDS_REPORT_PASS_H

#include "analyses/activity/ticks.h"
#include "analyses/state/fragmentation.h"
#include "analyses/state/peak.h"
#include "analyses/trace/trace_stats.h"
#include "commands/findings.h"
#include "report/page/page_model.h"
#include "report/memory/memory_reports.h"

struct report_findings {
    /** Those of the range; NULL for all calls and blocks. */
    const struct heap_islands *islands;
    /** See report_find(). */
    bool is_brief;
    /** For the page: ticks, snapshots, lifetimes in `usage`, and the graph in `reach`. For a
     * summary: the peak. */
    struct heap_ticks ticks;
    struct heap_peak_state peak;
    struct heap_usage usage;
    struct heap_moves moves;
    struct heap_errors errors;
    struct heap_fatal fatal;
    struct heap_leaks leaks;
    struct info_findings info;
    struct heap_snapshot_list snapshots;
    /** The blocks of the snapshot that leaks were found in. */
    struct heap_reach reach;
    /** For the page: at the end of the range. */
    struct heap_sparse_pages sparse;
};

/**
 * Finds everything, but with range->islands only calls and allocations in these. The names of the
 * session must have been read.
 *
 * @param range  the range of the page; NULL for a summary or a digest
 * @param trace  the result of session_trace()
 * @param is_brief  as much as a summary has, with a fraction of the work: see only_temporary of
 *                  struct heap_usage_options, only_screens of struct heap_errors_options, and
 *                  heap_trace_stats_watch()
 * @param findings  release with report_findings_free(), also on failure; stays where it is
 * @return as heap_replay_to().
 */
enum ttd_status report_find(struct session *session, const struct heap_ticks_options *range,
                            const struct heap_trace *trace, bool is_brief,
                            struct report_findings *findings, struct ttd_error *error);
void report_findings_free(struct report_findings *findings);

/** Prints the summary of the findings: a page's verdicts, or the lines of a summary. Filters apply.
 *
 * @param view  groups by function
 * @param page  NULL for a summary
 * @param is_brief  text has the first answers only
 * @return an exit status */
int summary_print(struct session *session, struct view *view, const struct page_facts *page,
                  struct report_findings *findings, bool is_brief);

#endif
