/* SPDX-License-Identifier: MIT */
/* ttdanalyze redact */
#include <ttdtrace/redact.h>

#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/session/new_trace.h"
#include "report/trace/trace_reports.h"

static const char help[] =
    "Usage: ttdanalyze redact [OPTIONS] -o OUT IN\n"
    "\n"
    "Makes a copy OUT of the trace IN without the contents of memory, so that it can be\n"
    "given to others. Events, positions and every answer that needs no contents stay the\n"
    "same. IN must be intact and stays as it is; OUT must not exist, unless it is no file,\n"
    "such as a pipe.\n"
    "\n"
    "      --strings        also remove the command line, directory, host and system, the\n"
    "                       names of functions, files, modules and threads, build-ids, and\n"
    "                       texts that the program itself wrote into the trace\n"
    "  -o, --output OUT     the trace to be made, readable by you only\n"
    "  -f, --format FORMAT  of the summary: text (the default), json or csv\n"
    "  -h, --help           this text\n"
    "  -V, --version        the version\n";

struct request {
    bool removes_strings;
    struct ttd_redaction removed;
    bool is_refused;
};

static const struct own_option own_options[] = {
    OWN_OPTION("strings", option_flag, struct request, removes_strings), OWN_OPTIONS_END};

/* A damaged trace is not redacted: contents in unreadable parts could not be found and removed.
 */
static enum ttd_status redact_write(void *context, const struct ttd_input *input,
                                    const struct ttd_output *output, struct ttd_error *error)
{
    struct request *request = context;
    enum ttd_status status =
        ttd_redact(input, output, NULL, request->removes_strings ? TTD_REDACT_STRINGS : 0,
                   &request->removed, error);
    request->is_refused = exit_for(status) == STATUS_DAMAGED;
    return status;
}

static int redact_print(const struct common_options *options, const struct request *request)
{
    struct output_file summary;
    struct report report;
    int status = new_trace_summary(options, &summary, &report);
    if (status != STATUS_OK)
        return status;
    struct report_redaction data = {.removed = &request->removed,
                                    .has_strings = !request->removes_strings,
                                    .result = options->output};
    report_redact(&report, &data);
    return output_close(&summary, STATUS_OK, true);
}

static int redact_run(const struct command *command, int count, char **arguments)
{
    struct common_options options;
    struct request request = {.removes_strings = false};
    bool has_summary = false;
    int status = command_options(&options, command, count, arguments, &request);
    if (status >= 0)
        return status;
    status = new_trace_make(&options, redact_write, &request, &has_summary);
    if (status == STATUS_DAMAGED && request.is_refused)
        message("'ttdanalyze recover' makes an intact trace of it, which can be redacted");
    return status == STATUS_OK && has_summary ? redact_print(&options, &request) : status;
}

const struct command command_redact = {
    .name = "redact",
    .summary = "copy a trace without the contents of memory",
    .help = help,
    .own = {.table = own_options},
    .run = redact_run,
};
