/* SPDX-License-Identifier: MIT */
/* ttdanalyze lifetimes */
#include "cli/options/own_options.h"
#include "cli/process/exit.h"
#include "commands/findings.h"
#include "report/activity/activity_reports.h"

static const char help[] =
    "Usage: ttdanalyze lifetimes [OPTIONS] [TRACE]\n"
    "\n"
    "Shows how long blocks live: how many, and how many bytes, by time and by the number\n"
    "of heap calls from their allocation to their release. A reallocation releases a\n"
    "block and allocates another.\n"
    "\n" ISLAND_OPTIONS_HELP VIEW_FILTERS_HELP COMMAND_COMMON_HELP;

struct lifetimes_options {
    struct heap_island_filter island;
};

static const struct own_option own_options[] = {ISLAND_OPTIONS(struct lifetimes_options, island),
                                                OWN_OPTIONS_END};

int lifetimes_print(struct session *session, struct heap_usage *usage)
{
    session->uses_times = true;
    session_outcome(session, &usage->outcome, ttd_position_max());
    struct heap_site_table sites = heap_usage_site_table(usage);
    int status = session_filter(session, &sites);
    if (status == STATUS_OK)
        status = session_output(session, true);
    if (status == STATUS_OK)
        report_lifetimes(&session->report, usage);
    return status;
}

static enum ttd_status lifetimes_wants_stack(void *context, ttd_id stack, bool *is_wanted)
{
    struct session *session = context;
    return view_wants(&session->view, stack, is_wanted);
}

static int lifetimes_execute(struct session *session, const void *context)
{
    const struct lifetimes_options *options = context;
    struct heap_usage usage;
    bool has_filter = view_has_filter(&session->options.view);
    int status = session_names(session, has_filter);
    if (status != STATUS_OK)
        return status;
    struct question question = session_ask_all(session);
    struct heap_usage_options query = {.order = HEAP_RANK_BY_BYTES,
                                       .has_lifetimes = true,
                                       .filter = has_filter ? lifetimes_wants_stack : NULL,
                                       .filter_context = session};
    status = session_islands(session, &options->island, &query.islands);
    if (status != STATUS_OK)
        return status;
    enum ttd_status result = heap_usage_find(&question.trace, &query, &usage, &question.error);
    status = session_found(session, &question, result, &usage.outcome);
    if (status != STATUS_OK)
        return status;
    status = lifetimes_print(session, &usage);
    heap_usage_free(&usage);
    return status;
}

static const struct lifetimes_options defaults = {.island = {.has_client = false}};

const struct command command_lifetimes = {
    .name = "lifetimes",
    .summary = "how long blocks live",
    .help = help,
    .shares = COMMAND_FILTERS,
    .own = {own_options, &defaults, sizeof defaults},
    .execute = lifetimes_execute,
};
