/* SPDX-License-Identifier: MIT */
/* ttdanalyze hot */
#include "cli/exit.h"
#include "cli/session.h"

#include <string.h>

enum { OPTION_SORT = OPTION_FIRST };

static const struct option own_options[] = {{"sort", required_argument, NULL, OPTION_SORT},
                                            {NULL, 0, NULL, 0}};

static const char help[] =
    "Usage: ttdanalyze hot [OPTIONS] [TRACE]\n"
    "\n"
    "Shows which stacks allocate most: number of calls, bytes, and bytes times the seconds\n"
    "for which they lived.\n"
    "\n"
    "      --sort ORDER        what comes first: calls, bytes (the default) or "
    "lifetime\n" VIEW_HELP COMMAND_COMMON_HELP;

struct hot_options {
    enum heap_rank_order order;
};

/* Names of orders, by heap_rank_order. */
static const char *const orders[] = {"calls", "bytes", "lifetime"};

static bool take_order(const char *name, enum heap_rank_order *order)
{
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        if (strcmp(orders[i], name) == 0) {
            *order = (enum heap_rank_order)i;
            return true;
        }
    }
    return false;
}

static bool parse_option(void *context, int option, const char *argument)
{
    struct hot_options *options = context;
    (void)option;
    return take_order(argument, &options->order);
}

static int execute(struct session *session, const void *context)
{
    const struct hot_options *options = context;
    struct heap_usage usage;
    struct ttd_error error = {.what = NULL};
    struct heap_trace trace = source_trace(&session->source);
    struct heap_usage_options query = {.order = options->order,
                                       .split = view_split(&session->options.view)};
    enum ttd_status result = heap_usage_find(&trace, &query, &usage, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    session->uses_times = true;
    session_outcome(session, &usage.outcome, ttd_position_max());
    struct heap_site_table sites = heap_usage_site_table(&usage);
    int status = session_view(session, &sites);
    if (status == STATUS_OK)
        status = session_output(session, true);
    struct report_usage data = {.usage = &usage, .limit = session->options.view.limit};
    if (status == STATUS_OK && !session_print_tree(session, "call", orders[options->order]))
        session->options.format->hot(&session->report, &data);
    heap_usage_free(&usage);
    return status;
}

static const struct hot_options defaults = {.order = HEAP_RANK_BY_BYTES};

const struct command command_hot = {
    .name = "hot",
    .summary = "which stacks allocate most",
    .help = help,
    .shares = COMMAND_VIEWS,
    .own_options = own_options,
    .parse_option = parse_option,
    .own_defaults = &defaults,
    .own_size = sizeof defaults,
    .execute = execute,
};
