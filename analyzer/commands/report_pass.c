/* SPDX-License-Identifier: MIT */
#include "commands/report_pass.h"

#include <string.h>

/* The search for leaks is the last of those that end with the range: see heap_leaks_watch(). */
static enum ttd_status watch(struct session *session, const struct heap_ticks_options *range,
                             const struct heap_trace *trace, struct report_findings *findings,
                             struct heap_pass *pass, struct ttd_error *error)
{
    enum heap_split split = view_split(&session->options.view);
    struct heap_usage_options usage = {.order = HEAP_RANK_BY_STACK,
                                       .islands = range->islands,
                                       .has_lifetimes = true,
                                       .filter = range->filter,
                                       .filter_context = range->filter_context};
    struct heap_moves_options moves = {
        .chains = MOVES_CHAINS, .split = split, .islands = range->islands};
    struct heap_errors_options errors = {.remembered = HEAP_FREED_DEFAULT,
                                         .islands = range->islands};
    struct heap_leaks_options leaks = {.at = range->last,
                                       .islands = range->islands,
                                       .split = split,
                                       .tells_when = true,
                                       .reach = &findings->reach};
    enum ttd_status status = heap_ticks_watch(&findings->ticks, range, trace->reader, pass);
    if (status == TTD_OK)
        status = heap_usage_watch(&findings->usage, &usage, pass);
    if (status == TTD_OK)
        status = heap_moves_watch(&findings->moves, &moves, pass);
    if (status == TTD_OK)
        status = heap_errors_watch(&findings->errors, &errors, trace->reader, pass, error);
    if (status == TTD_OK)
        status = info_watch(session, &findings->info, pass, error);
    if (status == TTD_OK)
        status = heap_snapshot_list_watch(&findings->snapshots, pass);
    return status == TTD_OK ? heap_leaks_watch(&findings->leaks, &leaks, trace, pass, error)
                            : status;
}

enum ttd_status report_find(struct session *session, const struct heap_ticks_options *range,
                            const struct heap_trace *trace, struct report_findings *findings,
                            struct ttd_error *error)
{
    struct heap_pass pass = {.count = 0};
    memset(findings, 0, sizeof *findings);
    findings->islands = range->islands;
    enum ttd_status status = heap_fatal_find(trace, &findings->fatal, error);
    if (status == TTD_OK)
        status = watch(session, range, trace, findings, &pass, error);
    if (status == TTD_OK)
        status = heap_pass_run(&pass, trace, error);
    findings->snapshots.outcome = findings->info.stats.outcome;
    heap_ticks_end(&findings->ticks);
    heap_usage_end(&findings->usage);
    heap_moves_end(&findings->moves);
    heap_errors_end(&findings->errors);
    return status == TTD_OK ? heap_leaks_end(&findings->leaks, trace, error) : status;
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
