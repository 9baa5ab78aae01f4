/* SPDX-License-Identifier: MIT */
/* ttdanalyze report */
#include <string.h>
#include <unistd.h>

#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/page/page.h"
#include "commands/cmd_lifetimes.h"
#include "report/page/model.h"

/* Ticks at most, and changes of call sites: what a browser draws at once. */
#define TICKS_MAX   1400
#define CHANGES_MAX 2000000

/* Groups at most in parts that list stacks with all their frames. */
#define GROUPS_MAX  200
#define GROUPS_TEXT "200"

static const char help[] =
    "Usage: ttdanalyze report [OPTIONS] -o FILE [TRACE]\n"
    "\n"
    "Makes a page for a browser in which one moves through time and sees the heap at each\n"
    "moment: how much was live, which calls had allocated it, what was lost, errors, moves,\n"
    "lifetimes. The page is one file that needs nothing else and loads nothing.\n"
    "\n"
    "      --from POSITION     show the time from this position on\n"
    "      --to POSITION       and before this one\n"
    "      --title TEXT        the title of the page (the recorded command)\n" VIEW_FILTERS_HELP
        COMMAND_COMMON_HELP "\n"
    "The page has no --format. Lists have at most " GROUPS_TEXT " groups; totals count all.\n"
    "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct report_options {
    struct position_spec from;
    struct position_spec to;
    const char *title;
};

static bool parse_title(const char *argument, void *title)
{
    *(const char **)title = argument;
    return true;
}

static const struct own_option own_options[] = {
    OWN_OPTION("from", option_position, struct report_options, from),
    OWN_OPTION("to", option_position, struct report_options, to),
    OWN_OPTION("title", parse_title, struct report_options, title), OWN_OPTIONS_END};

static enum ttd_status wants(void *context, ttd_id stack, bool *is_wanted)
{
    struct session *session = context;
    return view_wants(&session->view, stack, is_wanted);
}

/* Writes what is live in the course of time, and the lifetimes. */
static int write_heap(struct session *session, const struct heap_ticks *ticks,
                      struct heap_usage *usage, struct page_calls *calls)
{
    struct heap_site_table sites = heap_usage_site_table(usage);
    struct page_heap heap = {.ticks = ticks, .usage = usage, .calls = calls};
    int status = session_filter(session, &sites);
    if (status == STATUS_OK)
        status = session_check(session, page_write_heap(&session->report, &heap));
    if (status != STATUS_OK)
        return status;
    session_outcome(session, &usage->outcome, ttd_position_max());
    page_begin_part(&session->output.out, command_lifetimes.name);
    return lifetimes_print(session, usage);
}

/* Finds both in one pass, or in two if one of them ends before the trace does. */
static enum ttd_status find_both(const struct heap_trace *trace,
                                 const struct heap_ticks_options *options, struct heap_ticks *ticks,
                                 struct heap_usage *usage, struct ttd_error *error)
{
    struct heap_usage_options usage_options = {.order = HEAP_RANK_BY_STACK, .has_lifetimes = true};
    struct heap_pass pass = {.count = 2};
    struct heap_route route = {.to = ttd_position_max(), .keeps_peak = true};
    enum ttd_status status = heap_ticks_watch(ticks, options, trace->reader, &pass.watchers[0]);
    enum ttd_status watched = heap_usage_watch(usage, &usage_options, &pass.watchers[1]);
    status = status == TTD_OK ? watched : status;
    bool reaches_end = ttd_position_compare(options->last, route.to) == 0;
    if (!reaches_end) {
        pass.count = 1;
        route.to = options->last;
    }
    if (status == TTD_OK)
        status = heap_pass_run(&pass, trace, &route, &ticks->outcome, error);
    usage->outcome = ticks->outcome;
    if (status == TTD_OK && !reaches_end) {
        pass.watchers[0] = pass.watchers[1];
        route = (struct heap_route){.to = ttd_position_max()};
        status = heap_pass_run(&pass, trace, &route, &usage->outcome, error);
    }
    heap_ticks_end(ticks);
    heap_usage_end(usage);
    return status;
}

static int find_heap(struct session *session, const struct page_facts *facts,
                     struct page_calls *calls)
{
    struct question question = session_ask_all(session);
    bool has_filter = view_has_filter(&session->options.view);
    struct heap_ticks_options query = {.from = facts->from,
                                       .last = facts->last,
                                       .max = TICKS_MAX,
                                       .changes_max = CHANGES_MAX,
                                       .filter = has_filter ? wants : NULL,
                                       .filter_context = session};
    struct heap_ticks ticks;
    struct heap_usage usage;
    enum ttd_status result = find_both(&question.trace, &query, &ticks, &usage, &question.error);
    session->uses_times = true;
    int status =
        result == TTD_OK ? STATUS_OK : source_fail(&session->source, result, &question.error);
    if (status == STATUS_OK) {
        session_outcome(session, &ticks.outcome, facts->last);
        status = write_heap(session, &ticks, &usage, calls);
    }
    heap_usage_free(&usage);
    heap_ticks_free(&ticks);
    return status;
}

/* Writes the parts that are reports of other commands. */
static int run_parts(struct session *session, const struct page_facts *facts)
{
    char last[TTD_POSITION_TEXT] = "end";
    if (!facts->reaches_end)
        ttd_position_format(facts->last, last);
    const char *const none[] = {NULL};
    const char *const at[] = {"at", last, NULL};
    const char *const limited[] = {"limit", GROUPS_TEXT, NULL};
    const char *const limited_at[] = {"at", last, "limit", GROUPS_TEXT, NULL};
    const struct {
        const struct command *command;
        const char *const *arguments;
        bool needs_snapshot;
    } parts[] = {{&command_info, none, false},          {&command_leaks, at, false},
                 {&command_errors, limited, false},     {&command_moves, none, false},
                 {&command_snapshots, none, false},     {&command_marks, none, false},
                 {&command_retained, limited_at, true}, {&command_roots, limited_at, true}};
    int status = STATUS_OK;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && status == STATUS_OK; i++) {
        if (facts->has_snapshot || !parts[i].needs_snapshot)
            status = page_run_part(session, parts[i].command, parts[i].arguments);
    }
    return status;
}

static int find_snapshot(struct session *session, struct page_facts *facts)
{
    struct question question = session_ask_all(session);
    struct heap_snapshots snapshots;
    enum ttd_status result = heap_snapshots_find(&question.trace, &snapshots, &question.error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &question.error);
    facts->has_snapshot =
        heap_snapshots_before(&snapshots, facts->last, TTD_SNAPSHOT_REFERENCES) != NULL;
    heap_snapshots_free(&snapshots);
    return STATUS_OK;
}

static int resolve(struct session *session, const struct report_options *options,
                   struct page_facts *facts)
{
    struct ttd_position to;
    int status =
        position_spec_resolve(&options->from, POSITION_FOR_ORDER, &session->source, &facts->from);
    if (status == STATUS_OK)
        status = position_spec_resolve(&options->to, POSITION_FOR_ORDER, &session->source, &to);
    if (status != STATUS_OK)
        return status;
    if (ttd_position_compare(to, facts->from) <= 0)
        return message_usage("report", "the range is empty: --to is not after --from");
    facts->reaches_end = ttd_position_compare(to, ttd_position_max()) == 0;
    facts->last = facts->reaches_end ? to : heap_position_before(to);
    return STATUS_OK;
}

static int check(const struct session *session)
{
    const struct common_options *options = &session->options;
    if (!page_is_built())
        return message_usage("report", "this ttdanalyze was built without the viewer: it takes "
                                       "libdeflate and -Dviewer=enabled");
    if (strcmp(options->format->name, "text") != 0)
        return message_usage("report", "a page has no --format");
    if (!options->output && isatty(STDOUT_FILENO))
        return message_usage("report", "a page is for a browser: write it with '-o report.html'");
    return STATUS_OK;
}

/* Writes the data of the page. */
static int collect(struct session *session, const struct page_facts *facts)
{
    struct view_options options = session->options.view;
    struct view view;
    struct page_calls calls;
    options.by = VIEW_BY_FUNCTION;
    view_init(&view, &options, &session->definitions);
    page_calls_init(&calls, &view);
    session->options.format = report_format_find("json");
    session->options.view.limit = GROUPS_MAX;
    session->has_reasons = true;
    page_write_facts(&session->report, facts);
    int status = find_heap(session, facts, &calls);
    session->report.stacks = (struct report_stacks){&calls, page_calls_number};
    if (status == STATUS_OK)
        status = run_parts(session, facts);
    if (status == STATUS_OK)
        page_write_calls(&calls, &session->output.out);
    page_calls_free(&calls);
    view_free(&view);
    return status;
}

static int execute(struct session *session, const void *context)
{
    const struct report_options *options = context;
    struct page_facts facts = {.title = options->title,
                               .filters = &session->options.view,
                               .has_times = source_has_times(&session->source)};
    int status = check(session);
    if (status == STATUS_OK)
        status = resolve(session, options, &facts);
    if (status == STATUS_OK)
        status = find_snapshot(session, &facts);
    if (status == STATUS_OK)
        status = session_names(session, true);
    if (status == STATUS_OK)
        status = page_begin(session);
    if (status != STATUS_OK)
        return status;
    status = collect(session, &facts);
    if (status != STATUS_OK) {
        page_drop(session);
        return status;
    }
    return page_write(session);
}

static const struct report_options defaults = {.from = {.kind = POSITION_SPEC_START},
                                               .to = {.kind = POSITION_SPEC_END}};

const struct command command_report = {
    .name = "report",
    .summary = "a page for a browser, in which one moves through time",
    .help = help,
    .shares = COMMAND_FILTERS,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = execute,
};
