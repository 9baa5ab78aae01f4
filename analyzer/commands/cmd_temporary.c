/* SPDX-License-Identifier: MIT */
/* ttdanalyze temporary */
#include "cli/process/exit.h"
#include "cli/session/session.h"

static const char help[] =
    "Usage: ttdanalyze temporary [OPTIONS] [TRACE]\n"
    "\n"
    "Finds blocks that were allocated and freed by the same thread with no other heap call\n"
    "of it between: the stacks that allocate them might do without.\n"
    "\n"
    "      --steps N           with at most N other calls of the thread between "
    "(0)\n" VIEW_HELP COMMAND_COMMON_HELP;

static const struct own_option own_options[] = {OWN_CHOICE("steps", option_number),
                                                OWN_OPTIONS_END};

static int execute(struct session *session, const void *context)
{
    const uint64_t *steps = context;
    struct heap_usage usage;
    struct question question = session_ask_all(session);
    struct heap_usage_options options = {.steps = *steps,
                                         .order = HEAP_RANK_BY_TEMPORARY,
                                         .split = view_split(&session->options.view)};
    enum ttd_status result = heap_usage_find(&question.trace, &options, &usage, &question.error);
    int status = session_answer(session, &question, result, &usage.outcome);
    if (status != STATUS_OK)
        return status;
    struct heap_site_table sites = heap_usage_site_table(&usage);
    status = session_view(session, &sites);
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
    .own = {own_options, &defaults, sizeof defaults},
    .execute = execute,
};
