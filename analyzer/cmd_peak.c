/* SPDX-License-Identifier: MIT */
/* ttdanalyze peak */
#include "cli/exit.h"
#include "cli/session.h"
#include "cli/sidecar.h"

static const char help[] =
    "Usage: ttdanalyze peak [OPTIONS] TRACE\n"
    "\n"
    "Finds the first position at which most bytes were live, and the stacks that had\n"
    "allocated them.\n"
    "\n" VIEWS_HELP COMMAND_COMMON_HELP;

static int print(session *work, const report_state *data)
{
    heap_rows rows = heap_groups_rows(&data->state->groups);
    int status = session_view(work, &rows);
    if (status == STATUS_OK)
        status = session_output(work, true);
    if (status == STATUS_OK && !session_print_tree(work, "block", "bytes"))
        work->options.format->peak(&work->report, data);
    return status;
}

static int find(session *work, const void *options)
{
    (void)options;
    heap_peak peak;
    heap_state state;
    heap_state_wishes wishes = {.split = view_split(&work->options.view)};
    ttd_error error = {.what = NULL};
    heap_batch_hook hook = source_hook(&work->trace);
    ttd_status found = heap_peak_find(work->trace.reader, &hook, &peak, &error);
    if (found == TTD_OK)
        found = heap_state_find(work->trace.reader, sidecar_use(work, peak.position), peak.position,
                                &wishes, &hook, &state, &error);
    if (found != TTD_OK)
        return source_fail(&work->trace, found, &error);
    session_outcome(work, &peak.outcome, ttd_position_max());
    report_state data = {.state = &state, .limit = work->options.view.limit, .at = peak.position};
    int status = print(work, &data);
    heap_state_free(&state);
    return status;
}

static int run(const command *which, int count, char **arguments)
{
    return session_run(which, count, arguments, NULL, NULL, NULL, find);
}

const command command_peak = {"peak", "when most bytes were live, and whose", help, run,
                              COMMAND_VIEWS};
