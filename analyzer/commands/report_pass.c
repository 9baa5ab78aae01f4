/* SPDX-License-Identifier: MIT */
#include "commands/report_pass.h"

#include <string.h>

#include "base/table.h"
#include "base/task.h"

/* Events of a trace whose moves the first of two passes finds. */
#define LONG_TRACE UINT64_C(200000000)

/* Adds the analyses that use the session, and those of the heap over time: statistics, snapshots,
 * ticks and leaks. Leaks come last, because their watcher may drop the index of live blocks. */
static enum ttd_status watch_heap(struct session *session, const struct heap_ticks_options *range,
                                  const struct heap_trace *trace, struct report_findings *findings,
                                  struct heap_pass *pass, struct ttd_error *error)
{
    struct heap_leaks_options leaks = {.at = range->last,
                                       .islands = range->islands,
                                       .split = view_split(&session->options.view),
                                       .tells_when = true,
                                       .reach = &findings->reach};
    enum ttd_status status = info_watch(session, &findings->info, pass, error);
    if (status == TTD_OK)
        status = heap_snapshot_list_watch(&findings->snapshots, pass);
    if (status == TTD_OK)
        status = heap_ticks_watch(&findings->ticks, range, trace->reader, pass);
    return status == TTD_OK ? heap_leaks_watch(&findings->leaks, &leaks, trace, pass, error)
                            : status;
}

static enum ttd_status watch_moves(struct session *session, const struct heap_ticks_options *range,
                                   struct report_findings *findings, struct heap_pass *pass)
{
    struct heap_moves_options moves = {.chains = MOVES_CHAINS,
                                       .split = view_split(&session->options.view),
                                       .islands = range->islands};
    return heap_moves_watch(&findings->moves, &moves, pass);
}

/* Adds the analyses of calls but for moves: usage and errors. They need the whole trace. */
static enum ttd_status watch_calls(const struct heap_ticks_options *range,
                                   const struct heap_trace *trace, struct report_findings *findings,
                                   struct heap_pass *pass, struct ttd_error *error)
{
    struct heap_usage_options usage = {.order = HEAP_RANK_BY_STACK,
                                       .islands = range->islands,
                                       .has_lifetimes = true,
                                       .filter = range->filter,
                                       .filter_context = range->filter_context};
    struct heap_errors_options errors = {.remembered = HEAP_FREED_DEFAULT,
                                         .islands = range->islands};
    enum ttd_status status = heap_usage_watch(&findings->usage, &usage, pass);
    return status == TTD_OK
               ? heap_errors_watch(&findings->errors, &errors, trace->reader, pass, error)
               : status;
}

/* A pass that runs as a task. */
struct second_pass {
    struct heap_pass pass;
    struct heap_trace trace;
    struct ttd_error error;
};

static enum ttd_status run_second(void *context)
{
    struct second_pass *second = context;
    return heap_pass_run(&second->pass, &second->trace, &second->error);
}

static void end(struct report_findings *findings)
{
    findings->snapshots.outcome = findings->info.stats.outcome;
    heap_ticks_end(&findings->ticks);
    heap_usage_end(&findings->usage);
    heap_moves_end(&findings->moves);
    heap_errors_end(&findings->errors);
}

/* Runs all analyses in one pass. */
static enum ttd_status find_in_one(struct session *session, const struct heap_ticks_options *range,
                                   const struct heap_trace *trace, struct report_findings *findings,
                                   struct ttd_error *error)
{
    struct heap_pass pass = {.count = 0};
    enum ttd_status status = watch_calls(range, trace, findings, &pass, error);
    if (status == TTD_OK)
        status = watch_moves(session, range, findings, &pass);
    if (status == TTD_OK)
        status = watch_heap(session, range, trace, findings, &pass, error);
    if (status == TTD_OK)
        status = heap_pass_run(&pass, trace, error);
    end(findings);
    return status == TTD_OK ? heap_leaks_end(&findings->leaks, trace, error) : status;
}

/* Whether a trace has so many events that the analyses of calls take longer than those of the heap,
 * the search for leaks and the page. */
static bool is_long(struct ttd_reader *reader)
{
    struct ttd_end end;
    return ttd_reader_end(reader, &end) == TTD_OK && end.events >= LONG_TRACE;
}

/* Makes two passes at the same time: two processors read and replay the trace sooner twice than one
 * of them tells all analyses of it. */
static enum ttd_status find_in_two(struct session *session, const struct heap_ticks_options *range,
                                   const struct heap_trace *trace, struct second_pass *second,
                                   struct report_findings *findings, struct ttd_error *error)
{
    struct heap_pass pass = {.count = 0};
    struct heap_trace first = *trace;
    struct task task = {.is_running = false};
    first.is_one_of_two = true;
    enum ttd_status status = watch_calls(range, &second->trace, findings, &second->pass, error);
    if (status == TTD_OK)
        status =
            watch_moves(session, range, findings, is_long(trace->reader) ? &pass : &second->pass);
    if (status == TTD_OK)
        status = watch_heap(session, range, &first, findings, &pass, error);
    if (status == TTD_OK) {
        task_start(&task, run_second, second);
        status = heap_pass_run(&pass, &first, error);
    }
    if (status == TTD_OK)
        status = heap_leaks_end(&findings->leaks, &first, error);
    enum ttd_status second_status = task_wait(&task);
    if (status == TTD_OK && second_status != TTD_OK)
        *error = second->error;
    end(findings);
    return status == TTD_OK ? second_status : status;
}

/* Makes two passes, if `may_be_two`, where they save time. */
static enum ttd_status find(struct session *session, const struct heap_ticks_options *range,
                            const struct heap_trace *trace, bool may_be_two,
                            struct report_findings *findings, struct ttd_error *error)
{
    struct second_pass second = {.pass.count = 0};
    memset(findings, 0, sizeof *findings);
    findings->islands = range->islands;
    enum ttd_status status = heap_fatal_find(trace, &findings->fatal, error);
    if (status != TTD_OK)
        return status;
    return may_be_two && source_second_trace(&session->source, &second.trace)
               ? find_in_two(session, range, trace, &second, findings, error)
               : find_in_one(session, range, trace, findings, error);
}

enum ttd_status report_find(struct session *session, const struct heap_ticks_options *range,
                            const struct heap_trace *trace, struct report_findings *findings,
                            struct ttd_error *error)
{
    /* Names are looked up in one thread; and both passes are to reach the end. */
    bool may_be_two = !range->filter && ttd_position_compare(range->last, ttd_position_max()) == 0;
    enum ttd_status status = find(session, range, trace, may_be_two, findings, error);
    if (status != TTD_ERROR_NO_MEMORY || !session->source.second)
        return status;
    /* Two replays take more memory than one. */
    report_findings_free(findings);
    source_end_second(&session->source);
    table_give_back_kept();
    return find(session, range, trace, false, findings, error);
}

void report_findings_free(struct report_findings *findings)
{
    heap_ticks_free(&findings->ticks);
    heap_usage_free(&findings->usage);
    heap_moves_free(&findings->moves);
    heap_errors_free(&findings->errors);
    heap_leaks_free(&findings->leaks);
    info_free(&findings->info);
    heap_snapshot_list_free(&findings->snapshots);
    heap_reach_free(&findings->reach);
}
