/* SPDX-License-Identifier: MIT */
/* ttdanalyze diff */
#include "cli/exit.h"
#include "cli/message.h"
#include "cli/moment.h"
#include "cli/numbers.h"
#include "cli/session.h"

enum { OPTION_FROM = OPTION_FIRST, OPTION_TO, OPTION_LIMIT };

static const struct option own_options[] = {{"from", required_argument, NULL, OPTION_FROM},
                                            {"to", required_argument, NULL, OPTION_TO},
                                            {"limit", required_argument, NULL, OPTION_LIMIT},
                                            {NULL, 0, NULL, 0}};

static const char help[] =
    "Usage: ttdanalyze diff [--from POSITION] [--to POSITION] [OPTIONS] TRACE\n"
    "\n"
    "Tells what became of blocks in a range of positions, by the stack that allocated:\n"
    "AIFI, allocated inside the range and freed inside; AIFO, allocated inside and not\n"
    "freed in it: what the range has added; AOFI, allocated before and freed inside; and\n"
    "AOFO, allocated before and not freed in it.\n"
    "\n"
    "      --from POSITION  the first position of the range (start)\n"
    "      --to POSITION    the first position after it (end)\n"
    "      --limit N        show at most N stacks of each (20; 0 for all). Totals count\n"
    "                       all\n" COMMAND_COMMON_HELP "\n"
    "A POSITION is one of:\n" MOMENT_FORMS;

typedef struct diff_options {
    moment from;
    moment to;
    uint64_t limit;
} diff_options;

static bool take(void *context, int option, const char *argument)
{
    diff_options *options = context;
    switch (option) {
    case OPTION_FROM:
        return moment_parse(argument, &options->from);
    case OPTION_TO:
        return moment_parse(argument, &options->to);
    default:
        return number_parse(argument, &options->limit);
    }
}

static int print(session *work, const diff_options *options, const heap_diff *diff,
                 ttd_position last)
{
    session_outcome(work, &diff->outcome, last);
    size_t groups = 0;
    for (size_t i = 0; i < HEAP_QUADRANTS; i++)
        groups += diff->quadrants[i].count;
    int status = STATUS_OK;
    if (groups)
        status = source_define(&work->trace, TTD_KINDS_DEFINITIONS, &work->names);
    if (status == STATUS_OK)
        status = session_output(work, true);
    if (status != STATUS_OK)
        return status;
    report_diff data = {.diff = diff, .limit = options->limit ? (size_t)options->limit : SIZE_MAX};
    work->options.format->diff(&work->report, &data);
    return STATUS_OK;
}

static int find(session *work, const diff_options *options)
{
    ttd_position from, to;
    int status = moment_resolve(&options->from, MOMENT_ORDER, &work->trace, &from);
    if (status == STATUS_OK)
        status = moment_resolve(&options->to, MOMENT_ORDER, &work->trace, &to);
    if (status != STATUS_OK)
        return status;
    if (ttd_position_compare(to, from) <= 0)
        return message_usage("diff", "the range is empty: --to is not after --from");
    bool is_end = ttd_position_compare(to, ttd_position_max()) == 0;
    ttd_position last = is_end ? to : moment_before(to);
    heap_diff diff;
    ttd_error error = {.what = NULL};
    heap_batch_hook hook = source_hook(&work->trace);
    ttd_status found = heap_diff_find(work->trace.reader, from, last, &hook, &diff, &error);
    if (found != TTD_OK)
        return source_fail(&work->trace, found, &error);
    status = print(work, options, &diff, last);
    heap_diff_free(&diff);
    return status;
}

static int run(const command *which, int count, char **arguments)
{
    diff_options options = {
        .from = {.kind = MOMENT_START}, .to = {.kind = MOMENT_END}, .limit = 20};
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

const command command_diff = {"diff", "what a range of positions has added and freed", help, run};
