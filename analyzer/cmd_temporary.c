/* SPDX-License-Identifier: MIT */
/* ttdanalyze temporary */
#include "cli/exit.h"
#include "cli/numbers.h"
#include "cli/session.h"

enum { OPTION_LIMIT = OPTION_FIRST, OPTION_STEPS };

static const struct option own_options[] = {{"limit", required_argument, NULL, OPTION_LIMIT},
                                            {"steps", required_argument, NULL, OPTION_STEPS},
                                            {NULL, 0, NULL, 0}};

static const char help[] =
    "Usage: ttdanalyze temporary [OPTIONS] TRACE\n"
    "\n"
    "Finds blocks that were allocated and freed by the same thread with no other heap call\n"
    "of it between: the stacks that allocate them might do without.\n"
    "\n"
    "      --steps N  with at most N other calls of the thread between (0)\n"
    "      --limit N  show at most N stacks (20; 0 for all). Totals count "
    "all\n" COMMAND_COMMON_HELP;

typedef struct temporary_options {
    uint64_t limit;
    uint64_t steps;
} temporary_options;

static bool take(void *context, int option, const char *argument)
{
    temporary_options *options = context;
    return number_parse(argument, option == OPTION_LIMIT ? &options->limit : &options->steps);
}

static int find(session *work, const temporary_options *options)
{
    heap_usage usage;
    ttd_error error = {.what = NULL};
    heap_batch_hook hook = source_hook(&work->trace);
    ttd_status found = heap_usage_find(work->trace.reader, options->steps, HEAP_SITES_BY_TEMPORARY,
                                       &hook, &usage, &error);
    if (found != TTD_OK)
        return source_fail(&work->trace, found, &error);
    session_outcome(work, &usage.outcome, ttd_position_max());
    int status = STATUS_OK;
    if (usage.count)
        status = source_define(&work->trace, TTD_KINDS_DEFINITIONS, &work->names);
    if (status == STATUS_OK)
        status = session_output(work, true);
    report_usage data = {.usage = &usage,
                         .limit = options->limit ? (size_t)options->limit : SIZE_MAX};
    if (status == STATUS_OK)
        work->options.format->temporary(&work->report, &data);
    heap_usage_free(&usage);
    return status;
}

static int run(const command *which, int count, char **arguments)
{
    temporary_options options = {.limit = 20};
    common common_options;
    int status =
        command_options(&common_options, which, count, arguments, own_options, take, &options);
    if (status >= 0)
        return status;
    session work;
    status = session_open(&work, &common_options);
    if (status != STATUS_OK)
        return status;
    return session_close(&work, find(&work, &options), false);
}

const command command_temporary = {"temporary", "blocks freed as soon as they were allocated", help,
                                   run};
