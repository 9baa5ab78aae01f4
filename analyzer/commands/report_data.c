/* SPDX-License-Identifier: MIT */
#include "commands/report_data.h"

#include "cli/page/page.h"
#include "cli/process/exit.h"
#include "commands/report_pass.h"

/* Ticks at most, and changes of call sites: what a browser draws at once. And spans of blocks: what
 * a page has room for. */
#define TICKS_MAX   1400
#define CHANGES_MAX 2000000
#define SPANS_MAX   12000

/* See page_size_goal(), of which a change takes some three bytes: so many changes in any page, and
 * one more for so many bytes of the trace. */
#define CHANGES_SMALL    30000
#define BYTES_PER_CHANGE 128

static size_t changes_max(const struct session *session)
{
    uint64_t more = session->source.size / BYTES_PER_CHANGE;
    return more < CHANGES_MAX - CHANGES_SMALL ? CHANGES_SMALL + (size_t)more : CHANGES_MAX;
}

static enum ttd_status report_wants_stack(void *context, ttd_id stack, bool *is_wanted)
{
    struct session *session = context;
    return view_wants(&session->view, stack, is_wanted);
}

/* Writes two parts of the page: the heap in the course of time, and the lifetimes. The filters of
 * the user apply to both. */
static int write_heap(struct session *session, const struct page_facts *facts,
                      struct report_findings *findings, struct page_calls *calls)
{
    struct heap_site_table sites = heap_usage_site_table(&findings->usage);
    struct page_heap heap = {.ticks = &findings->ticks,
                             .usage = &findings->usage,
                             .leaks = &findings->leaks,
                             .calls = calls,
                             .sites_max = facts->is_exact ? SIZE_MAX : PAGE_SITES_MAX};
    session->uses_times = true;
    session_outcome(session, &findings->ticks.outcome, facts->last);
    int status = session_filter(session, &sites);
    for (int kind = 0; kind < HEAP_LEAK_KINDS && status == STATUS_OK; kind++) {
        struct heap_site_table leaks = heap_groups_site_table(&findings->leaks.kinds[kind]);
        status = session_filter(session, &leaks);
    }
    if (status == STATUS_OK)
        status = session_check(session, page_write_heap(&session->report, &heap));
    if (status != STATUS_OK)
        return status;
    page_begin_report(session, command_lifetimes.name);
    return lifetimes_print(session, &findings->usage);
}

static int write_leaks(struct session *session, const struct page_facts *facts,
                       struct heap_leaks *leaks)
{
    page_begin_report(session, command_leaks.name);
    return leaks_print(session, leaks, facts->last);
}

/* Writes the quadrants of a range that is not the whole trace. */
static int write_range(struct session *session, const struct page_facts *facts,
                       const struct heap_islands *islands)
{
    bool is_whole =
        facts->reaches_end && ttd_position_compare(facts->from, ttd_position_min()) == 0;
    if (is_whole)
        return STATUS_OK;
    page_begin_report(session, command_diff.name);
    return diff_print(session, facts->from, facts->last, islands);
}

/* Writes the blocks, the roots and the classes that hold most, by the graph of one snapshot. */
static int write_retained(struct session *session, const struct page_facts *facts,
                          const struct heap_trace *trace, struct heap_reach *reach)
{
    const struct {
        const char *name;
        enum heap_retained_by by;
    } parts[] = {{command_retained.name, HEAP_RETAINED_BY_BLOCK},
                 {command_roots.name, HEAP_RETAINED_BY_ROOT},
                 {"classes", HEAP_RETAINED_BY_CLASS}};
    struct heap_retained retained = {.count = 0};
    struct ttd_error error = {.what = NULL};
    enum ttd_status result = heap_held_build(trace, reach, &retained.held, &error);
    int status = STATUS_OK;
    for (size_t i = 0;
         i < sizeof parts / sizeof parts[0] && result == TTD_OK && status == STATUS_OK; i++) {
        struct heap_retained_options options = {
            .at = facts->last, .by = parts[i].by, .limit = REPORT_GROUPS_MAX};
        result = heap_retained_rank(&retained, &options);
        if (result != TTD_OK)
            break;
        page_begin_report(session, parts[i].name);
        status = retained_print(session, &options, &retained);
    }
    heap_retained_free(&retained);
    return result == TTD_OK ? status : source_fail(&session->source, result, &error);
}

static int write_snapshots(struct session *session, const struct heap_snapshot_list *list)
{
    page_begin_report(session, command_snapshots.name);
    session_outcome(session, &list->outcome, ttd_position_max());
    session->options.format->snapshots(&session->report, list);
    return STATUS_OK;
}

/* Writes the parts that other commands print. The commands run with the arguments that a user would
 * give, so a page cannot say anything else than they do. */
static int report_write_parts(struct session *session, const struct page_facts *facts,
                              const struct heap_trace *trace, struct report_findings *findings)
{
    int status = write_leaks(session, facts, &findings->leaks);
    if (status == STATUS_OK)
        status = write_range(session, facts, findings->islands);
    page_begin_report(session, command_info.name);
    if (status == STATUS_OK)
        status = info_print(session, &findings->info);
    page_begin_report(session, command_errors.name);
    if (status == STATUS_OK)
        status = errors_print(session, REPORT_GROUPS_MAX, &findings->errors, &findings->fatal);
    page_begin_report(session, command_moves.name);
    if (status == STATUS_OK)
        status = moves_print(session, &findings->moves);
    if (status == STATUS_OK)
        status = write_snapshots(session, &findings->snapshots);
    if (status == STATUS_OK)
        status = page_run_part(session, &command_marks);
    if (status == STATUS_OK && facts->has_snapshot)
        status = write_retained(session, facts, trace, &findings->reach);
    return status;
}

/* Writes the data of the page. Stacks are numbers of nodes in one tree of calls, which is written
 * last, when all parts have named the stacks that they need. */
static int write_data(struct session *session, const struct page_facts *facts,
                      const struct heap_trace *trace, struct report_findings *findings)
{
    struct view_options options = session->options.view;
    struct view view;
    struct page_calls calls;
    options.by = VIEW_BY_FUNCTION;
    view_init(&view, &options, &session->definitions);
    page_calls_init(&calls, &view);
    session->options.format = report_format_find("json");
    session->options.view.limit = REPORT_GROUPS_MAX;
    session->has_reasons = true;
    page_write_facts(&session->report, facts);
    int status = write_heap(session, facts, findings, &calls);
    page_begin_report(session, command_summary.name);
    if (status == STATUS_OK)
        status = summary_print(session, &view, facts, findings);
    session->report.stacks = (struct report_stacks){&calls, page_calls_number};
    if (status == STATUS_OK)
        status = report_write_parts(session, facts, trace, findings);
    if (status == STATUS_OK && facts->is_exact)
        status = session_check(session, page_write_stacks(&session->report, &calls));
    if (status == STATUS_OK)
        page_write_calls(&calls, "calls", &session->output.text);
    page_calls_free(&calls);
    view_free(&view);
    return status;
}

int report_data_write(struct session *session, struct page_facts *facts)
{
    struct heap_ticks_options range = {.from = facts->from,
                                       .last = facts->last,
                                       .max = TICKS_MAX,
                                       .changes_max = changes_max(session),
                                       .spans_max = SPANS_MAX,
                                       .filter_context = session};
    struct heap_trace trace;
    struct report_findings findings;
    struct ttd_error error = {.what = NULL};
    if (view_has_filter(&session->options.view))
        range.filter = report_wants_stack;
    int status = session_trace(session, &trace);
    if (status == STATUS_OK)
        status = session_islands(session, facts->island, &range.islands);
    if (status != STATUS_OK)
        return status;
    enum ttd_status result = report_find(session, &range, &trace, &findings, &error);
    facts->has_snapshot = findings.leaks.snapshot.number;
    status = result == TTD_OK ? page_begin(session) : source_fail(&session->source, result, &error);
    if (status == STATUS_OK)
        status = write_data(session, facts, &trace, &findings);
    report_findings_free(&findings);
    return status;
}
