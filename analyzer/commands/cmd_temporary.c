/* SPDX-License-Identifier: MIT */
/* ttdanalyze temporary */
#include "cli/exit.h"
#include "cli/numbers.h"
#include "cli/session.h"

enum { OPTION_STEPS = OPTION_FIRST };

static const struct option own_options[] = {{"steps", required_argument, NULL, OPTION_STEPS},
                                            {NULL, 0, NULL, 0}};

static const char help[] =
    "Usage: ttdanalyze temporary [OPTIONS] [TRACE]\n"
    "\n"
    "Finds blocks that were allocated and freed by the same thread with no other heap call\n"
    "of it between: the stacks that allocate them might do without.\n"
    "\n"
    "      --steps N           with at most N other calls of the thread between "
    "(0)\n" VIEW_HELP COMMAND_COMMON_HELP;

static bool parse_option(void *context, int option, const char *argument)
{
    (void)option;
    return number_parse(argument, context);
}

static int execute(struct session *session, const void *context)
{
    const uint64_t *steps = context;
    struct heap_usage usage;
    struct ttd_error error = {.what = NULL};
    struct heap_trace trace = source_trace(&session->source);
    struct heap_usage_options options = {.steps = *steps,
                                         .order = HEAP_RANK_BY_TEMPORARY,
                                         .split = view_split(&session->options.view)};
    enum ttd_status result = heap_usage_find(&trace, &options, &usage, &error);
    if (result != TTD_OK)
        return source_fail(&session->source, result, &error);
    session_outcome(session, &usage.outcome, ttd_position_max());
    struct heap_site_table sites = heap_usage_site_table(&usage);
    int status = session_view(session, &sites);
    if (status == STATUS_OK)
        status = session_output(session, true);
    struct report_usage data = {.usage = &usage, .limit = session->options.view.limit};
    if (status == STATUS_OK && !session_print_tree(session, "temporary block", "temporary blocks"))
        session->options.format->temporary(&session->report, &data);
    heap_usage_free(&usage);
    return status;
}

/* Calls between the two of a temporary block. */
static const uint64_t defaults = 0;

const struct command command_temporary = {
    .name = "temporary",
    .summary = "blocks freed as soon as they were allocated",
    .help = help,
    .shares = COMMAND_VIEWS,
    .own_options = own_options,
    .parse_option = parse_option,
    .own_defaults = &defaults,
    .own_size = sizeof defaults,
    .execute = execute,
};
