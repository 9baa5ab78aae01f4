/* SPDX-License-Identifier: MIT */
/* ttdanalyze report */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options/command.h"
#include "cli/page/page.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "commands/findings.h"
#include "commands/report_pass.h"
#include "report/memory/memory_reports.h"
#include "report/page/page_model.h"
#include "report/trace/trace_reports.h"

/* The data of one trace in a page. */

/** Groups at most in parts that list stacks with all their frames. */
#define REPORT_GROUPS_MAX 200

/** Call sites at most that keep sparse pages. */
#define REPORT_KEEPERS_MAX 50

/* Ticks at most, and changes of call sites: the number that a browser draws at once. And spans of
 * blocks: the room of a page. */
#define TICKS_MAX   1400
#define CHANGES_MAX 2000000
#define SPANS_MAX   12000

/* See page_size_goal(); a change takes some three bytes: so many changes in any page, and one more
 * for so many bytes of the trace. */
#define CHANGES_SMALL    30000
#define BYTES_PER_CHANGE 128

static size_t cmd_report_changes_max(const struct session *session)
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
static int cmd_report_write_heap(struct session *session, const struct page_facts *facts,
                                 const struct heap_trace *trace, struct report_findings *findings,
                                 struct page_calls *calls)
{
    struct heap_site_table sites = heap_usage_site_table(&findings->usage);
    struct page_heap heap = {.ticks = &findings->ticks,
                             .usage = &findings->usage,
                             .moves = &findings->moves.reallocs,
                             .memory = &findings->info.stats.memory,
                             .leaks = &findings->leaks,
                             .judge = &trace->hook.judge,
                             .calls = calls,
                             .has_blocks = facts->is_exact,
                             .sites_max = facts->is_exact ? SIZE_MAX : PAGE_SITES_MAX};
    session->uses_times = true;
    session_outcome(session, &findings->ticks.outcome, facts->last);
    certainty_add_snapshot(&session->report.certainty, &findings->leaks.snapshot,
                           findings->leaks.misplaced);
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

/* Writes the quadrants of a range that is not the whole trace. */
static int cmd_report_write_range(struct session *session, const struct page_facts *facts,
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
static int cmd_report_write_retained(struct session *session, const struct page_facts *facts,
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

/* Writes the sparse pages at the end of the range. The engine of an exact page finds
 * the sparse pages of any moment. */
static int cmd_report_write_sparse(struct session *session, const struct page_facts *facts,
                                   struct heap_sparse_pages *sparse)
{
    struct heap_site_table sites = heap_sparse_site_table(sparse);
    if (facts->is_exact)
        return STATUS_OK;
    page_begin_report(session, "sparse");
    int status = session_group(session, &sites);
    if (status == STATUS_OK)
        report_sparse_pages(&session->report, sparse, REPORT_KEEPERS_MAX);
    return status;
}

static int cmd_report_write_snapshots(struct session *session,
                                      const struct heap_snapshot_list *list)
{
    page_begin_report(session, command_snapshots.name);
    session_outcome(session, &list->outcome, ttd_position_max());
    report_snapshots(&session->report, list);
    return STATUS_OK;
}

/* Writes the parts that other commands print. The commands run with the arguments that a user would
 * give, so a page cannot say anything else than they do. */
static int report_write_parts(struct session *session, const struct page_facts *facts,
                              const struct heap_trace *trace, struct report_findings *findings)
{
    page_begin_report(session, command_leaks.name);
    int status = leaks_print(session, &findings->leaks, facts->last);
    if (status == STATUS_OK)
        status = cmd_report_write_range(session, facts, findings->islands);
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
        status = cmd_report_write_snapshots(session, &findings->snapshots);
    if (status == STATUS_OK)
        status = page_run_part(session, &command_marks);
    if (status == STATUS_OK)
        status = cmd_report_write_sparse(session, facts, &findings->sparse);
    if (status == STATUS_OK && facts->has_snapshot)
        status = cmd_report_write_retained(session, facts, trace, &findings->reach);
    return status;
}

/* Drops the blocks that the runtimes keep from those live at the peak, as `peak` does. */
static void cmd_report_drop_kept(const struct heap_stack_judge *judge,
                                 struct report_findings *findings)
{
    struct heap_groups *groups = &findings->ticks.at_peak;
    for (size_t i = 0; i < findings->leaks.runtime_block_count; i++) {
        const struct heap_block *block = &findings->leaks.runtime_blocks[i];
        if (ttd_position_compare(block->allocated, findings->ticks.peak.position) <= 0)
            heap_groups_subtract(groups, block);
    }
    for (size_t i = 0; i < groups->count && judge->keeps; i++) {
        struct heap_group *group = &groups->items[i];
        if (!judge->keeps(judge->context, group->key.stack))
            continue;
        groups->blocks -= group->blocks;
        groups->bytes -= group->bytes;
        group->blocks = group->bytes = 0;
    }
}

/* Writes the data of the page. Stacks are numbers of nodes in one tree of calls. The tree is
 * written last, when all parts have named their stacks. */
static int cmd_report_write_data(struct session *session, const struct page_facts *facts,
                                 const struct heap_trace *trace, struct report_findings *findings)
{
    struct view_options options = session->options.view;
    struct view view;
    struct page_calls calls;
    options.by = VIEW_BY_FUNCTION;
    view_init(&view, &options, &session->definitions);
    page_calls_init(&calls, &view);
    session->options.form = session->report.form = REPORT_JSON;
    session->options.view.limit = session->report.limit = REPORT_GROUPS_MAX;
    session->has_reasons = true;
    page_write_facts(&session->report, facts);
    int status = cmd_report_write_heap(session, facts, trace, findings, &calls);
    cmd_report_drop_kept(&trace->hook.judge, findings);
    page_begin_report(session, command_summary.name);
    if (status == STATUS_OK)
        status = summary_print(session, &view, facts, findings, false);
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

/**
 * Computes the page's data of a trace, and writes them into memory: see page_begin().
 *
 * @param facts  of the page; has_snapshot is set
 * @return an exit status; on failure the data may have been begun
 */
static int report_data_write(struct session *session, struct page_facts *facts)
{
    struct heap_ticks_options range = {.from = facts->from,
                                       .last = facts->last,
                                       .max = TICKS_MAX,
                                       .changes_max = cmd_report_changes_max(session),
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
    enum ttd_status result = report_find(session, &range, &trace, false, &findings, &error);
    facts->has_snapshot = findings.leaks.snapshot.number;
    status = result == TTD_OK ? page_begin(session) : source_fail(&session->source, result, &error);
    if (status == STATUS_OK)
        status = cmd_report_write_data(session, facts, &trace, &findings);
    report_findings_free(&findings);
    return status;
}

/* Traces at most in one page, and limits for texts. */
#define TRACES_MAX  64
#define TRACES_TEXT "64"
#define GROUPS_TEXT "200"
#define SITES_TEXT  "11,000"

_Static_assert(REPORT_GROUPS_MAX == 200, "GROUPS_TEXT");
_Static_assert(PAGE_SITES_MAX == 11000, "SITES_TEXT");

static const char help[] =
    "Usage: ttdanalyze report [OPTIONS] -o FILE [TRACE]\n"
    "       ttdanalyze report [OPTIONS] -o FILE TRACE TRACE...\n"
    "\n"
    "Makes a page for a browser in which one moves through time and sees the heap at\n"
    "each moment: live bytes, the calls that allocated them, lost blocks, errors,\n"
    "moves, lifetimes. The page is one file that needs nothing else and loads\n"
    "nothing. Of several traces, up to " TRACES_TEXT ", it shows one at a time; of two also the\n"
    "comparison of 'ttdanalyze diff'.\n"
    "\n"
    "      --from POSITION     show the time from this position on\n"
    "      --to POSITION       and before this one\n"
    "      --exact             put the trace and an engine into the page: exact at\n"
    "                          every call, with blocks, addresses and calls; without\n"
    "                          the contents of memory\n"
    "      --with-contents     also embed recorded contents of memory\n"
    "      --title TEXT        the title of the page (the recorded command)\n" ISLAND_OPTIONS_HELP
        VIEW_FILTERS_HELP "\n"
    "  -o, --output FILE    write the page there; the file is readable by you only,\n"
    "                       and replaced only when complete\n"
    "      --no-index       neither use nor make the index TRACE.idx\n" COMMAND_LIMITS_HELP "\n"
    "Lists have at most " GROUPS_TEXT " groups; totals count all.\n"
    "Of more than " SITES_TEXT " call sites the smallest are known by function at most,\n"
    "unless the page is --exact.\n"
    "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

struct report_options {
    struct heap_island_filter island;
    struct position_spec from;
    struct position_spec to;
    const char *title;
    bool is_exact;
    bool has_contents;
};

static bool cmd_report_parse_title(const char *argument, void *title)
{
    *(const char **)title = argument;
    return true;
}

static const struct own_option own_options[] = {
    OWN_OPTION("from", option_position, struct report_options, from),
    OWN_OPTION("to", option_position, struct report_options, to),
    OWN_OPTION("exact", option_flag, struct report_options, is_exact),
    OWN_OPTION("with-contents", option_flag, struct report_options, has_contents),
    OWN_OPTION("title", cmd_report_parse_title, struct report_options, title),
    ISLAND_OPTIONS(struct report_options, island),
    OWN_OPTIONS_END};

/* Finds the range of the page: from `from` inclusive to `to` exclusive. */
static int report_resolve_range(struct session *session, const struct report_options *options,
                                struct page_facts *facts)
{
    struct ttd_position to;
    int status =
        position_spec_resolve(&options->from, POSITION_FOR_ORDER, &session->source, &facts->from);
    if (status == STATUS_OK)
        status = position_spec_resolve(&options->to, POSITION_FOR_ORDER, &session->source, &to);
    if (status != STATUS_OK)
        return status;
    status = position_range_check("report", &session->source, facts->from, to);
    if (status != STATUS_OK)
        return status;
    facts->reaches_end = heap_is_end(to);
    facts->last = facts->reaches_end ? to : heap_position_before(to);
    return STATUS_OK;
}

static int report_check_options(const struct common_options *options,
                                const struct report_options *own)
{
    if (!page_is_built())
        return message_usage("report", "this ttdanalyze was built without the viewer: it takes "
                                       "libdeflate and -Dviewer=enabled");
    if (own->is_exact && !page_has_engine())
        return message_usage("report", "this ttdanalyze was built without the engine of exact "
                                       "pages: it takes clang, lld, wasi-libc and "
                                       "libclang-rt-dev-wasm32");
    if (own->is_exact && heap_island_filter_is_given(&own->island))
        return message_usage("report", "--client and --activity do not go with --exact: an exact "
                                       "page answers for all blocks of the trace");
    if (own->has_contents && !own->is_exact)
        return message_usage("report", "--with-contents goes with --exact");
    if (!options->output && isatty(STDOUT_FILENO))
        return message_usage("report", "a page is for a browser: write it with '-o report.html'");
    return STATUS_OK;
}

/* Writes the page's data of a session's trace. */
static int cmd_report_write_block(struct session *session, const struct report_options *options,
                                  struct page_facts *facts, struct page_block *block)
{
    facts->has_times = source_has_times(&session->source);
    int status = report_resolve_range(session, options, facts);
    if (status == STATUS_OK)
        status = session_names(session, true);
    if (status == STATUS_OK)
        status = report_data_write(session, facts);
    if (status == STATUS_OK && session->report.status == TTD_OK)
        status = page_end(session, &block->data);
    else
        page_drop(session);
    if (status == STATUS_OK && options->is_exact)
        status = page_trace_read(session, options->has_contents, &block->trace);
    return status;
}

/* Adds a trace to the page. Sets `last` to the position in it that two traces are compared at. */
static int cmd_report_add_trace(struct page *page, const struct common_options *common,
                                const struct report_options *options, struct page_facts *facts,
                                struct position_spec *last)
{
    struct common_options of_trace = *common;
    struct session session;
    of_trace.trace = facts->paths[facts->number - 1];
    int status = session_open(&session, &of_trace);
    if (status != STATUS_OK)
        return status;
    status = cmd_report_write_block(&session, options, facts, &page->blocks[page->count++]);
    *last = (struct position_spec){.kind = facts->reaches_end ? POSITION_SPEC_END
                                                              : POSITION_SPEC_POSITION,
                                   .position = facts->last};
    return session_close(&session, status, false);
}

/* Makes the page of some traces. Two of them are also compared, at the ends of their ranges. */
static int cmd_report_make_page(struct page *page, const struct common_options *common,
                                const struct report_options *options, const char *const *paths,
                                size_t count)
{
    struct common_options as_json = *common;
    struct page_facts facts = {.title = options->title,
                               .filters = &common->view,
                               .island = &options->island,
                               .paths = paths,
                               .path_count = count,
                               .is_exact = options->is_exact};
    struct compare_options two = {
        .limit = SIZE_MAX, .island = options->island, .page = &page->comparison, .facts = &facts};
    struct position_spec last;
    int status = STATUS_OK;
    as_json.form = REPORT_JSON;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        facts.number = i + 1;
        status = cmd_report_add_trace(page, common, options, &facts, &last);
        if (i < HEAP_SIDES)
            two.specs[i] = last;
    }
    if (status == STATUS_OK && count == HEAP_SIDES)
        status = compare_heaps(&as_json, &two);
    if (status == STATUS_OK && options->is_exact && !page_pack_engine(&page->engine))
        status = message_status("report", TTD_ERROR_NO_MEMORY);
    return status == STATUS_OK ? page_write(common, page) : status;
}

static int report_run(const struct command *command, int count, char **arguments)
{
    struct report_options options = {.from = {.kind = POSITION_SPEC_START},
                                     .to = {.kind = POSITION_SPEC_END}};
    struct common_options common;
    int status = command_options(&common, command, count, arguments, &options);
    if (status >= 0)
        return status;
    status = report_check_options(&common, &options);
    if (status != STATUS_OK)
        return status;
    size_t trace_count = 1 + common.other_count;
    const char **paths = malloc(trace_count * sizeof *paths);
    struct page page = {.blocks = calloc(trace_count, sizeof *page.blocks)};
    if (paths && page.blocks) {
        paths[0] = common.trace;
        for (size_t i = 1; i < trace_count; i++)
            paths[i] = common.others[i - 1];
        status = cmd_report_make_page(&page, &common, &options, paths, trace_count);
    } else {
        status = message_status("report", TTD_ERROR_NO_MEMORY);
    }
    free(paths);
    page_free(&page);
    return status;
}

const struct command command_report = {
    .name = "report",
    .summary = "a page for a browser, in which one moves through time",
    .help = help,
    .shares = COMMAND_FILTERS | COMMAND_PAGE,
    .own = {.table = own_options},
    .traces_max = TRACES_MAX,
    .run = report_run,
};
