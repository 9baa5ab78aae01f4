/* SPDX-License-Identifier: MIT */
/* ttdanalyze hot */
#include "cli/exit.h"
#include "cli/numbers.h"
#include "cli/session.h"

#include <string.h>

enum { OPTION_LIMIT = OPTION_FIRST, OPTION_SORT };

static const struct option own_options[] = {{"limit", required_argument, NULL, OPTION_LIMIT},
                                            {"sort", required_argument, NULL, OPTION_SORT},
                                            {NULL, 0, NULL, 0}};

static const char help[] =
    "Usage: ttdanalyze hot [OPTIONS] TRACE\n"
    "\n"
    "Shows which stacks allocate most: number of calls, bytes, and bytes times the seconds\n"
    "for which they lived.\n"
    "\n"
    "      --sort ORDER  what comes first: calls, bytes (the default) or lifetime\n"
    "      --limit N     show at most N stacks (20; 0 for all). Totals count "
    "all\n" COMMAND_COMMON_HELP;

typedef struct hot_options {
    uint64_t limit;
    heap_site_order order;
} hot_options;

static bool take_order(const char *name, heap_site_order *order)
{
    static const char *const names[] = {"calls", "bytes", "lifetime"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0) {
            *order = (heap_site_order)i;
            return true;
        }
    }
    return false;
}

static bool take(void *context, int option, const char *argument)
{
    hot_options *options = context;
    if (option == OPTION_LIMIT)
        return number_parse(argument, &options->limit);
    return take_order(argument, &options->order);
}

static int find(session *work, const hot_options *options)
{
    heap_usage usage;
    ttd_error error = {.what = NULL};
    heap_batch_hook hook = source_hook(&work->trace);
    ttd_status found =
        heap_usage_find(work->trace.reader, 0, options->order, &hook, &usage, &error);
    if (found != TTD_OK)
        return source_fail(&work->trace, found, &error);
    work->uses_times = true;
    session_outcome(work, &usage.outcome, ttd_position_max());
    int status = STATUS_OK;
    if (usage.count)
        status = source_define(&work->trace, TTD_KINDS_DEFINITIONS, &work->names);
    if (status == STATUS_OK)
        status = session_output(work, true);
    report_usage data = {.usage = &usage,
                         .limit = options->limit ? (size_t)options->limit : SIZE_MAX};
    if (status == STATUS_OK)
        work->options.format->hot(&work->report, &data);
    heap_usage_free(&usage);
    return status;
}

static int run(const command *which, int count, char **arguments)
{
    hot_options options = {.limit = 20, .order = HEAP_SITES_BY_BYTES};
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

const command command_hot = {"hot", "which stacks allocate most", help, run};
