/* SPDX-License-Identifier: MIT */
/* ttdanalyze peak */
#include "cli/exit.h"
#include "cli/session.h"
#include "cli/sidecar.h"
#include "heap/peak.h"

static const char help[] =
    "Usage: ttdanalyze peak [OPTIONS] TRACE\n"
    "\n"
    "Finds the first position at which most bytes were live, and the stacks that had\n"
    "allocated them.\n"
    "\n" VIEWS_HELP COMMAND_COMMON_HELP;

static int print(session *work, const report_state *data)
{
    heap_rows rows = heap_groups_rows(&data->state->tables.by[HEAP_BY_STACK]);
    int status = session_view(work, &rows);
    if (status == STATUS_OK)
        status = session_output(work, true);
    if (status == STATUS_OK && !session_print_tree(work, "block", "bytes"))
        work->options.format->peak(&work->report, data);
    return status;
}

/* An index is not trusted: whether the state at its peak is as it says. */
static bool is_right(const heap_peak *peak, const heap_state *state)
{
    return state->tables.by[HEAP_BY_STACK].blocks == peak->blocks &&
           state->tables.by[HEAP_BY_STACK].bytes == heap_sum_value(peak->bytes);
}

static ttd_status find_peak(session *work, const heap_keyframes *keyframes, heap_outcome *outcome,
                            heap_peak *peak, heap_state *state, ttd_error *error)
{
    heap_state_wishes wishes = {.split = view_split(&work->options.view)};
    heap_batch_hook hook = source_hook(&work->trace);
    ttd_reader *reader = work->trace.reader;
    ttd_status status = heap_peak_find(reader, keyframes, &hook, peak, outcome, error);
    if (status == TTD_OK)
        status = heap_state_find(reader, keyframes, peak->position, &wishes, &hook, state, error);
    if (status != TTD_OK || !keyframes || is_right(peak, state))
        return status;
    heap_state_free(state);
    return find_peak(work, NULL, outcome, peak, state, error);
}

static int find(session *work, const void *options)
{
    (void)options;
    heap_peak peak;
    heap_outcome outcome;
    heap_state state;
    ttd_error error = {.what = NULL};
    const heap_keyframes *keyframes = sidecar_use_peak(work);
    ttd_status found = find_peak(work, keyframes, &outcome, &peak, &state, &error);
    if (found != TTD_OK)
        return source_fail(&work->trace, found, &error);
    session_outcome(work, &outcome, ttd_position_max());
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
