/* SPDX-License-Identifier: MIT */
/* ttdanalyze snapshots */
#include "cli/process/exit.h"
#include "cli/session/session.h"
#include "report/trace/trace_reports.h"

static const char help[] =
    "Usage: ttdanalyze snapshots [OPTIONS] [TRACE]\n"
    "\n"
    "Lists the snapshots of a trace: when and why each was taken, its contents, for how\n"
    "long the program was held, and whether it is consistent and complete.\n" COMMAND_COMMON_HELP;

static int snapshots_execute(struct session *session, const void *context)
{
    (void)context;
    struct question question = session_ask_all(session);
    struct heap_snapshot_list list;
    enum ttd_status result = heap_snapshot_list_find(&question.trace, &list, &question.error);
    int status = session_answer(session, &question, result, &list.outcome);
    if (status != STATUS_OK)
        return status;
    status = session_output(session, true);
    if (status == STATUS_OK)
        report_snapshots(&session->report, &list);
    heap_snapshot_list_free(&list);
    return status;
}

const struct command command_snapshots = {
    .name = "snapshots",
    .summary = "the snapshots that a trace has",
    .help = help,
    .execute = snapshots_execute,
};
