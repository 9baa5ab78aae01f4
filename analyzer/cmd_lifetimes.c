/* SPDX-License-Identifier: MIT */
/* ttdanalyze lifetimes */
#include "cli/exit.h"
#include "cli/session.h"

static const char help[] =
    "Usage: ttdanalyze lifetimes [OPTIONS] TRACE\n"
    "\n"
    "Shows how long blocks live: how many, and how many bytes, by time and by the number\n"
    "of heap calls from their allocation to their release. A reallocation releases a\n"
    "block and allocates another.\n" COMMAND_COMMON_HELP;

static int find(session *work, const void *options)
{
    (void)options;
    heap_usage usage;
    ttd_error error = {.what = NULL};
    heap_batch_hook hook = source_hook(&work->trace);
    ttd_status found = heap_usage_find(work->trace.reader, 0, HEAP_SITES_BY_BYTES, HEAP_SPLIT_NONE,
                                       &hook, &usage, &error);
    if (found != TTD_OK)
        return source_fail(&work->trace, found, &error);
    work->uses_times = true;
    session_outcome(work, &usage.outcome, ttd_position_max());
    int status = session_output(work, true);
    report_usage data = {.usage = &usage, .limit = 0};
    if (status == STATUS_OK)
        work->options.format->lifetimes(&work->report, &data);
    heap_usage_free(&usage);
    return status;
}

static int run(const command *which, int count, char **arguments)
{
    return session_run(which, count, arguments, NULL, NULL, NULL, find);
}

const command command_lifetimes = {"lifetimes", "how long blocks live", help, run, 0};
