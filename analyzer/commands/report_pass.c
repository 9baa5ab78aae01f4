/* SPDX-License-Identifier: MIT */
#include "commands/report_pass.h"

#include <string.h>

#include "base/table.h"
#include "base/task.h"
#include "report/memory/memory_reports.h"

/* Events of a trace whose moves the pass over the heap finds, and whose statistics the pass over
 * the calls counts. */
#define LONG_TRACE UINT64_C(200000000)

/* A pass and its trace. */
struct reading {
    struct heap_pass pass;
    struct heap_trace trace;
    struct ttd_error error;
};

/* Adds the analyses of the heap over time, and leaks. Leaks come last, because their watcher may
 * drop the index of live blocks. */
static enum ttd_status report_pass_watch_heap(struct session *session,
                                              const struct heap_ticks_options *range,
                                              struct report_findings *findings,
                                              struct reading *reading, struct ttd_error *error)
{
    struct heap_leaks_options leaks = {.at = range->last,
                                       .islands = range->islands,
                                       .split = view_split(&session->options.view),
                                       .tells_when = true,
                                       .lists_doubtful = true,
                                       .reach = &findings->reach};
    struct heap_pass *pass = &reading->pass;
    enum ttd_status status = heap_snapshot_list_watch(&findings->snapshots, pass);
    if (status == TTD_OK)
        status = heap_ticks_watch(&findings->ticks, range, reading->trace.reader, pass);
    heap_sparse_pages_watch(&findings->sparse, range->last, pass);
    return status == TTD_OK
               ? heap_leaks_watch(&findings->leaks, &leaks, &reading->trace, pass, error)
               : status;
}

/* Adds the peak, and leaks, for a summary. */
static enum ttd_status report_pass_watch_summary(struct report_findings *findings,
                                                 struct reading *reading, struct ttd_error *error)
{
    const struct heap_peak_state_options peak = {.split = HEAP_SPLIT_NONE};
    const struct heap_leaks_options leaks = {.at = ttd_position_max()};
    enum ttd_status status =
        heap_peak_state_watch(&findings->peak, &peak, &reading->trace, &reading->pass, error);
    return status == TTD_OK
               ? heap_leaks_watch(&findings->leaks, &leaks, &reading->trace, &reading->pass, error)
               : status;
}

static struct heap_errors_options report_pass_errors_options(const struct report_findings *findings,
                                                             const struct heap_trace *trace)
{
    return (struct heap_errors_options){.remembered = HEAP_FREED_DEFAULT,
                                        .islands = findings->islands,
                                        .fatal = &findings->fatal,
                                        .has_choice = trace->choice.is_made,
                                        .is_merged = trace->choice.is_merged};
}

/* Adds the analyses of calls: usage and errors. They need the whole trace. */
static enum ttd_status report_pass_watch_calls(const struct heap_ticks_options *range,
                                               struct report_findings *findings,
                                               struct reading *reading, struct ttd_error *error)
{
    struct heap_usage_options usage = {.order = HEAP_RANK_BY_STACK,
                                       .islands = findings->islands,
                                       .has_lifetimes = range,
                                       .filter = range ? range->filter : NULL,
                                       .filter_context = range ? range->filter_context : NULL,
                                       .only_temporary = findings->is_brief};
    struct heap_errors_options errors = report_pass_errors_options(findings, &reading->trace);
    errors.only_screens = findings->is_brief;
    enum ttd_status status = heap_usage_watch(&findings->usage, &usage, &reading->pass);
    return status == TTD_OK ? heap_errors_watch(&findings->errors, &errors, reading->trace.reader,
                                                &reading->pass, error)
                            : status;
}

/* A summary and a digest have the calls, and the bytes that they copied. */
static enum ttd_status report_pass_watch_moves(struct session *session,
                                               const struct heap_ticks_options *range,
                                               struct report_findings *findings,
                                               struct reading *reading)
{
    struct heap_moves_options moves = {.chains = MOVES_CHAINS,
                                       .split = view_split(&session->options.view),
                                       .islands = findings->islands,
                                       .only_copies = !range};
    return heap_moves_watch(&findings->moves, &moves, &reading->pass);
}

/* Whether a trace has so many events that the analyses of calls take longer than the analyses of
 * the heap, the search for leaks and the page. */
static bool report_pass_is_long(struct ttd_reader *reader)
{
    struct ttd_end end;
    return ttd_reader_end(reader, &end) == TTD_OK && end.events >= LONG_TRACE;
}

/* Adds all analyses. Those that use the session belong to the heap's reading. `calls` may be the
 * same one; if it is not, moves and statistics go where both readings then take about the same
 * time. */
static enum ttd_status report_watch(struct session *session, const struct heap_ticks_options *range,
                                    struct report_findings *findings, struct reading *heap,
                                    struct reading *calls)
{
    struct ttd_error *error = &heap->error;
    bool has_many_calls = report_pass_is_long(heap->trace.reader);
    struct reading *moves = has_many_calls ? heap : calls;
    struct reading *stats = has_many_calls ? calls : heap;
    enum ttd_status status = report_pass_watch_calls(range, findings, calls, error);
    if (status == TTD_OK)
        status = report_pass_watch_moves(session, range, findings, moves);
    if (status != TTD_OK)
        return status;
    info_watch(session, &findings->info, &heap->pass);
    status = heap_trace_stats_watch(&findings->info.stats, findings->is_brief, stats->trace.reader,
                                    &stats->pass, error);
    if (status != TTD_OK)
        return status;
    return range ? report_pass_watch_heap(session, range, findings, heap, error)
                 : report_pass_watch_summary(findings, heap, error);
}

static enum ttd_status report_end_findings(struct report_findings *findings)
{
    findings->snapshots.outcome = findings->info.stats.outcome;
    heap_ticks_end(&findings->ticks);
    heap_usage_end(&findings->usage);
    heap_moves_end(&findings->moves);
    heap_errors_end(&findings->errors);
    return findings->peak.finder ? heap_peak_state_end(&findings->peak) : TTD_OK;
}

static enum ttd_status report_run_pass(void *context)
{
    struct reading *reading = context;
    return heap_pass_run(&reading->pass, &reading->trace, &reading->error);
}

/* A summary looks for errors in a pass of its own if calls may be some: most traces have none. */
static enum ttd_status report_pass_search_errors(struct report_findings *findings,
                                                 struct reading *reading)
{
    struct heap_errors_options options = report_pass_errors_options(findings, &reading->trace);
    struct heap_trace checked_trace = reading->trace;
    checked_trace.is_checked = true;
    if (!findings->errors.must_search)
        return TTD_OK;
    heap_errors_free(&findings->errors);
    return heap_errors_find(&checked_trace, &options, &findings->errors, &reading->error);
}

/* Counts temporary blocks in a pass of their own if calls of a thread are nested. */
static enum ttd_status report_pass_count_again(struct report_findings *findings,
                                               struct reading *reading)
{
    struct heap_usage_options options = {.order = HEAP_RANK_BY_STACK, .islands = findings->islands};
    struct heap_trace checked_trace = reading->trace;
    checked_trace.is_checked = true;
    if (!findings->usage.must_count)
        return TTD_OK;
    heap_usage_free(&findings->usage);
    return heap_usage_find(&checked_trace, &options, &findings->usage, &reading->error);
}

/* Runs all analyses in one pass. */
static enum ttd_status report_pass_find_in_one(struct session *session,
                                               const struct heap_ticks_options *range,
                                               struct reading *reading,
                                               struct report_findings *findings)
{
    enum ttd_status status = report_watch(session, range, findings, reading, reading);
    if (status == TTD_OK)
        status = report_run_pass(reading);
    enum ttd_status end_status = report_end_findings(findings);
    status = status == TTD_OK ? end_status : status;
    if (findings->is_brief)
        findings->info.stats.thread_count = findings->usage.thread_count;
    if (status == TTD_OK)
        status = report_pass_search_errors(findings, reading);
    if (status == TTD_OK)
        status = report_pass_count_again(findings, reading);
    return status == TTD_OK ? heap_leaks_end(&findings->leaks, &reading->trace, &reading->error)
                            : status;
}

/* Makes two passes at the same time: two processors read and replay the trace twice sooner than one
 * of them feeds all analyses. */
static enum ttd_status report_pass_find_in_two(struct session *session,
                                               const struct heap_ticks_options *range,
                                               struct reading *first, struct reading *second,
                                               struct report_findings *findings)
{
    struct task task = {.is_running = false};
    first->trace.is_one_of_two = true;
    enum ttd_status status = report_watch(session, range, findings, first, second);
    if (status == TTD_OK) {
        task_start(&task, report_run_pass, second);
        status = report_run_pass(first);
    }
    if (status == TTD_OK)
        status = heap_leaks_end(&findings->leaks, &first->trace, &first->error);
    enum ttd_status second_status = task_wait(&task);
    enum ttd_status end_status = report_end_findings(findings);
    status = status == TTD_OK ? end_status : status;
    if (status != TTD_OK || second_status == TTD_OK)
        return status;
    first->error = second->error;
    return second_status;
}

/* Makes two passes, if `may_be_two`, where they save time. Only findings->is_brief is set before.
 */
static enum ttd_status report_find_all(struct session *session,
                                       const struct heap_ticks_options *range,
                                       const struct heap_trace *trace, bool may_be_two,
                                       struct report_findings *findings, struct ttd_error *error)
{
    struct reading first = {.trace = *trace}, second = {.pass.count = 0};
    bool is_brief = findings->is_brief;
    memset(findings, 0, sizeof *findings);
    findings->is_brief = is_brief;
    findings->islands = range ? range->islands : NULL;
    enum ttd_status status = heap_fatal_find(trace, &findings->fatal, error);
    if (status != TTD_OK)
        return status;
    status = may_be_two && source_second_trace(&session->source, &second.trace)
                 ? report_pass_find_in_two(session, range, &first, &second, findings)
                 : report_pass_find_in_one(session, range, &first, findings);
    *error = first.error;
    return status;
}

enum ttd_status report_find(struct session *session, const struct heap_ticks_options *range,
                            const struct heap_trace *trace, bool is_brief,
                            struct report_findings *findings, struct ttd_error *error)
{
    /* Names are looked up in one thread; and both passes are to reach the end. The analyses of a
     * summary take less time than another replay. */
    bool may_be_two = !is_brief && (!range || (!range->filter && heap_is_end(range->last)));
    findings->is_brief = is_brief;
    enum ttd_status status = report_find_all(session, range, trace, may_be_two, findings, error);
    if (status != TTD_ERROR_NO_MEMORY || !session->source.second)
        return status;
    /* Two replays take more memory than one. */
    report_findings_free(findings);
    source_end_second(&session->source);
    table_give_back_kept();
    return report_find_all(session, range, trace, false, findings, error);
}

void report_findings_free(struct report_findings *findings)
{
    heap_ticks_free(&findings->ticks);
    heap_peak_state_free(&findings->peak);
    heap_usage_free(&findings->usage);
    heap_moves_free(&findings->moves);
    heap_errors_free(&findings->errors);
    heap_leaks_free(&findings->leaks);
    info_free(&findings->info);
    heap_snapshot_list_free(&findings->snapshots);
    heap_reach_free(&findings->reach);
    heap_sparse_pages_free(&findings->sparse);
}
