/* SPDX-License-Identifier: MIT */
/* ttdanalyze leaks */
#include "cli/exit.h"
#include "cli/moment.h"
#include "cli/numbers.h"
#include "cli/session.h"
#include "cli/sidecar.h"

enum { OPTION_AT = OPTION_FIRST, OPTION_LIMIT, OPTION_ERROR, OPTION_RUNTIME };

static const struct option own_options[] = {
    {"at", required_argument, NULL, OPTION_AT},
    {"limit", required_argument, NULL, OPTION_LIMIT},
    {"error-exitcode", required_argument, NULL, OPTION_ERROR},
    {"show-runtime", no_argument, NULL, OPTION_RUNTIME},
    {NULL, 0, NULL, 0}};

static const char help[] =
    "Usage: ttdanalyze leaks [OPTIONS] TRACE\n"
    "\n"
    "Lists the blocks that were never released, grouped by the stack that allocated\n"
    "them, those with the most bytes first.\n"
    "\n"
    "      --at POSITION       what was live at that moment instead of at the end\n"
    "      --limit N           show at most N stacks (20; 0 for all). Totals count all\n"
    "      --show-runtime      list as well what the C and C++ runtimes keep for\n"
    "                          themselves until the end, which is not a leak\n"
    "      --error-exitcode N  exit with status N if there are leaks\n" COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" MOMENT_FORMS "\n"
    "If events were lost, or the trace is incomplete, a block that seems leaked may have\n"
    "been released: lines that begin with \"Uncertain\" say so.\n";

typedef struct leaks_options {
    bool has_at;
    moment at;
    uint64_t limit;
    uint64_t error_status;
    bool shows_runtime;
} leaks_options;

static bool take(void *context, int option, const char *argument)
{
    leaks_options *options = context;
    switch (option) {
    case OPTION_AT:
        options->has_at = true;
        return moment_parse(argument, &options->at);
    case OPTION_LIMIT:
        return number_parse(argument, &options->limit);
    case OPTION_ERROR:
        return number_parse(argument, &options->error_status) && options->error_status < 256;
    default:
        options->shows_runtime = true;
        return true;
    }
}

static int print(session *work, const leaks_options *options, const heap_leaks *leaks,
                 ttd_position at)
{
    session_doubts(work, &leaks->losses, &leaks->counts, at, leaks->reached_end, leaks->position);
    bool needs_names = leaks->groups.count || (options->shows_runtime && leaks->runtime.count);
    int status = STATUS_OK;
    if (needs_names)
        status = source_define(&work->trace, TTD_KINDS_DEFINITIONS, &work->names);
    if (status == STATUS_OK)
        status = session_output(work, true);
    if (status != STATUS_OK)
        return status;
    report_leaks data = {.leaks = leaks,
                         .limit = options->limit ? (size_t)options->limit : SIZE_MAX,
                         .shows_runtime = options->shows_runtime,
                         .is_at_end = ttd_position_compare(at, ttd_position_max()) == 0};
    work->options.format->leaks(&work->report, &data);
    return STATUS_OK;
}

static int find(session *work, const leaks_options *options)
{
    ttd_position at;
    int status = moment_resolve(&options->at, MOMENT_STATE, &work->trace, &at);
    if (status != STATUS_OK)
        return status;
    heap_leaks leaks;
    ttd_error error = {.what = NULL};
    heap_batch_hook hook = source_hook(&work->trace);
    ttd_status found =
        heap_leaks_find(work->trace.reader, sidecar_use(work, at), at, &hook, &leaks, &error);
    if (found != TTD_OK)
        return source_fail(&work->trace, found, &error);
    if (leaks.truncated)
        source_truncated(&work->trace, &leaks.error);
    status = print(work, options, &leaks, at);
    if (status == STATUS_OK && leaks.groups.blocks)
        status = (int)options->error_status;
    heap_leaks_free(&leaks);
    return status;
}

static int run(const command *which, int count, char **arguments)
{
    leaks_options options = {.at = {.kind = MOMENT_END}, .limit = 20};
    common common_options;
    int status =
        command_options(&common_options, which, count, arguments, own_options, take, &options);
    if (status >= 0)
        return status;
    session work;
    status = session_open(&work, &common_options);
    if (status != STATUS_OK)
        return status;
    status = find(&work, &options);
    /* A chosen exit status is no failure: the report is complete once its output is open. */
    return session_close(&work, status, work.has_output);
}

const command command_leaks = {"leaks", "blocks that were never released, by stack", help, run};
