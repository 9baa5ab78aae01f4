/* SPDX-License-Identifier: MIT */
/* ttdanalyze peak */
#include "cli/exit.h"
#include "cli/numbers.h"
#include "cli/session.h"
#include "cli/sidecar.h"

enum { OPTION_LIMIT = OPTION_FIRST };

static const struct option own_options[] = {{"limit", required_argument, NULL, OPTION_LIMIT},
                                            {NULL, 0, NULL, 0}};

static const char help[] =
    "Usage: ttdanalyze peak [OPTIONS] TRACE\n"
    "\n"
    "Finds the first position at which most bytes were live, and the stacks that had\n"
    "allocated them.\n"
    "\n"
    "      --limit N  show at most N stacks (20; 0 for all). Totals count "
    "all\n" COMMAND_COMMON_HELP;

static bool take(void *context, int option, const char *argument)
{
    (void)option;
    return number_parse(argument, context);
}

static int print(session *work, const report_state *data)
{
    int status = STATUS_OK;
    if (data->state->stacks.count)
        status = source_define(&work->trace, TTD_KINDS_DEFINITIONS, &work->names);
    if (status == STATUS_OK)
        status = session_output(work, true);
    if (status == STATUS_OK)
        work->options.format->peak(&work->report, data);
    return status;
}

static int find(session *work, uint64_t limit)
{
    heap_peak peak;
    heap_state state;
    ttd_error error = {.what = NULL};
    heap_batch_hook hook = source_hook(&work->trace);
    ttd_status found = heap_peak_find(work->trace.reader, &hook, &peak, &error);
    if (found == TTD_OK)
        found = heap_state_find(work->trace.reader, sidecar_use(work, peak.position), peak.position,
                                false, &hook, &state, &error);
    if (found != TTD_OK)
        return source_fail(&work->trace, found, &error);
    session_outcome(work, &peak.outcome, ttd_position_max());
    report_state data = {
        .state = &state, .limit = limit ? (size_t)limit : SIZE_MAX, .at = peak.position};
    int status = print(work, &data);
    heap_state_free(&state);
    return status;
}

static int run(const command *which, int count, char **arguments)
{
    uint64_t limit = 20;
    common common_options;
    int status =
        command_options(&common_options, which, count, arguments, own_options, take, &limit);
    if (status >= 0)
        return status;
    session work;
    status = session_open(&work, &common_options);
    if (status != STATUS_OK)
        return status;
    return session_close(&work, find(&work, limit), false);
}

const command command_peak = {"peak", "when most bytes were live, and whose", help, run};
