/* SPDX-License-Identifier: MIT */
/* ttdanalyze report */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options/island_options.h"
#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/page/page.h"
#include "cli/page/page_exact.h"
#include "commands/cmd_compare.h"
#include "commands/report_data.h"

/* Traces at most in one page, and limits for texts. */
#define TRACES_MAX  64
#define TRACES_TEXT "64"
#define GROUPS_TEXT "200"
#define SITES_TEXT  "20,000"

_Static_assert(REPORT_GROUPS_MAX == 200, "GROUPS_TEXT");
_Static_assert(PAGE_SITES_MAX == 20000, "SITES_TEXT");

static const char help[] =
    "Usage: ttdanalyze report [OPTIONS] -o FILE [TRACE]\n"
    "       ttdanalyze report [OPTIONS] -o FILE TRACE TRACE...\n"
    "\n"
    "Makes a page for a browser in which one moves through time and sees the heap at each\n"
    "moment: how much was live, which calls had allocated it, what was lost, errors, moves,\n"
    "lifetimes. The page is one file that needs nothing else and loads nothing. Of several\n"
    "traces, up to " TRACES_TEXT ", it has all, one of which is shown at a time; of two also what\n"
    "'ttdanalyze diff' says of the first one and the second.\n"
    "\n"
    "      --from POSITION     show the time from this position on\n"
    "      --to POSITION       and before this one\n"
    "      --exact             put the trace and what answers from it into the page: exact\n"
    "                          at every call, with blocks, addresses and calls; without the\n"
    "                          contents of memory\n"
    "      --with-contents     with them\n"
    "      --title TEXT        the title of the page (the recorded command)\n" ISLAND_OPTIONS_HELP
        VIEW_FILTERS_HELP COMMAND_COMMON_HELP "\n"
    "The page has no --format. Lists have at most " GROUPS_TEXT " groups; totals count all.\n"
    "Of more than " SITES_TEXT " call sites those that have least are shown as one, unless the\n"
    "page is --exact.\n"
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

static bool parse_title(const char *argument, void *title)
{
    *(const char **)title = argument;
    return true;
}

static const struct own_option own_options[] = {
    OWN_OPTION("from", option_position, struct report_options, from),
    OWN_OPTION("to", option_position, struct report_options, to),
    OWN_OPTION("exact", option_flag, struct report_options, is_exact),
    OWN_OPTION("with-contents", option_flag, struct report_options, has_contents),
    OWN_OPTION("title", parse_title, struct report_options, title),
    ISLAND_OPTIONS(struct report_options, island),
    OWN_OPTIONS_END};

/* Finds the range of the page, which includes `from` and ends before `to`. */
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
    facts->reaches_end = ttd_position_compare(to, ttd_position_max()) == 0;
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
    if (strcmp(options->format->name, "text") != 0)
        return message_usage("report", "a page has no --format");
    if (!options->output && isatty(STDOUT_FILENO))
        return message_usage("report", "a page is for a browser: write it with '-o report.html'");
    return STATUS_OK;
}

/* Writes what a page has of a session's trace. */
static int write_block(struct session *session, const struct report_options *options,
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
static int add_trace(struct page *page, const struct common_options *common,
                     const struct report_options *options, struct page_facts *facts,
                     struct position_spec *last)
{
    struct common_options of_trace = *common;
    struct session session;
    of_trace.trace = facts->paths[facts->number - 1];
    int status = session_open(&session, &of_trace);
    if (status != STATUS_OK)
        return status;
    status = write_block(&session, options, facts, &page->blocks[page->count++]);
    *last = (struct position_spec){.kind = facts->reaches_end ? POSITION_SPEC_END
                                                              : POSITION_SPEC_POSITION,
                                   .position = facts->last};
    return session_close(&session, status, false);
}

/* Makes the page of some traces. Two of them are also compared, at the ends of their ranges. */
static int make_page(struct page *page, const struct common_options *common,
                     const struct report_options *options, const char *const *paths, size_t count)
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
    as_json.format = report_format_find("json");
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        facts.number = i + 1;
        status = add_trace(page, common, options, &facts, &last);
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
        status = make_page(&page, &common, &options, paths, trace_count);
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
    .shares = COMMAND_FILTERS,
    .own = {.table = own_options},
    .traces_max = TRACES_MAX,
    .run = report_run,
};
