/* SPDX-License-Identifier: MIT */
/* ttdanalyze peak */
#include "cli/exit.h"
#include "cli/session.h"
#include "cli/sidecar.h"
#include "heap/peak.h"

static const char help[] =
    "Usage: ttdanalyze peak [OPTIONS] [TRACE]\n"
    "\n"
    "Finds the first position at which most bytes were live, and the stacks that had\n"
    "allocated them.\n"
    "\n" VIEWS_HELP COMMAND_COMMON_HELP;

static int print(session *work, heap_peak_state *found)
{
    heap_rows rows = heap_groups_rows(&found->groups);
    report_peak data = {.found = found, .limit = work->options.view.limit};
    int status = session_view(work, &rows);
    if (status == STATUS_OK)
        status = session_output(work, true);
    if (status == STATUS_OK && !session_print_tree(work, "block", "bytes"))
        work->options.format->peak(&work->report, &data);
    return status;
}

static int find(session *work, const void *options)
{
    (void)options;
    heap_peak_state peak;
    ttd_error error = {.what = NULL};
    heap_batch_hook hook = source_hook(&work->trace);
    const heap_keyframes *keyframes = sidecar_use(work, ttd_position_max());
    ttd_status found = heap_peak_find(work->trace.reader, keyframes,
                                      view_split(&work->options.view), &hook, &peak, &error);
    if (found != TTD_OK)
        return source_fail(&work->trace, found, &error);
    session_outcome(work, &peak.outcome, ttd_position_max());
    int status = print(work, &peak);
    heap_peak_state_free(&peak);
    return status;
}

static int run(const command *which, int count, char **arguments)
{
    return session_run(which, count, arguments, NULL, NULL, NULL, find);
}

const command command_peak = {"peak", "when most bytes were live, and whose", help, run,
                              COMMAND_VIEWS};
