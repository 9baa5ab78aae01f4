/* SPDX-License-Identifier: MIT */
/* ttdanalyze recover */
#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/session/new_trace.h"
#include "report/trace/trace_reports.h"

/* Problems that are reported one by one. */
#define REPORTED_MAX 10

static const char help[] =
    "Usage: ttdanalyze recover [OPTIONS] -o OUT IN\n"
    "\n"
    "Makes a new, clean trace OUT of all that is intact in IN, which may be damaged, cut\n"
    "off, or never have been closed. The missing parts are recorded in OUT as lost. IN stays\n"
    "as it is, and OUT must not exist, unless it is no file, such as a pipe.\n"
    "\n"
    "  -o, --output OUT     the trace to be made, readable by you only\n"
    "  -f, --format FORMAT  of the summary: text (the default), json or csv\n"
    "  -h, --help           this text\n"
    "  -V, --version        the version\n";

struct rescue {
    const char *path;
    uint64_t problems;
    struct ttd_verdict verdict;
};

/* A file with much damage has thousands of problems. The first ones show its damage.
 */
static bool recover_see_problem(void *context, const struct ttd_problem *problem)
{
    struct rescue *rescue = context;
    if (rescue->problems++ < REPORTED_MAX)
        message_error("warning: ", rescue->path, &problem->error);
    else if (rescue->problems == REPORTED_MAX + 1)
        message("warning: %s: more problems; 'ttdanalyze verify' lists them all", rescue->path);
    return true;
}

static enum ttd_status recover_write(void *context, const struct ttd_input *input,
                                     const struct ttd_output *output, struct ttd_error *error)
{
    struct rescue *rescue = context;
    return ttd_recover(input, output, NULL,
                       &(struct ttd_problem_observer){recover_see_problem, rescue},
                       &rescue->verdict, error);
}

static int recover_print(const struct common_options *options, const struct ttd_verdict *verdict)
{
    struct output_file summary;
    struct report report;
    int status = new_trace_summary(options, &summary, &report);
    if (status != STATUS_OK)
        return status;
    struct report_recovery data = {.verdict = verdict, .result = options->output};
    report_recover(&report, &data);
    return output_close(&summary, STATUS_OK, true);
}

static int recover_run(const struct command *command, int count, char **arguments)
{
    struct common_options options;
    bool has_summary = false;
    int status = command_options(&options, command, count, arguments, NULL);
    if (status >= 0)
        return status;
    struct rescue rescue = {.path = options.trace};
    status = new_trace_make(&options, recover_write, &rescue, &has_summary);
    return status == STATUS_OK && has_summary ? recover_print(&options, &rescue.verdict) : status;
}

const struct command command_recover = {
    .name = "recover",
    .summary = "save the intact parts of a damaged trace",
    .help = help,
    .run = recover_run,
};
