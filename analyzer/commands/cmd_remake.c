/* SPDX-License-Identifier: MIT */
/* Commands that make a trace of the records of others: slice, merge, repack. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/process/message.h"
#include "cli/session/new_trace.h"
#include "cli/session/session.h"
#include "cli/traces/input.h"
#include "cli/traces/source.h"
#include "remake/remake.h"
#include "report/trace/trace_reports.h"

#define REMAKE_HELP                                                                                \
    "  -o, --output OUT       the trace to be made, readable by you only\n"                        \
    "  -f, --format FORMAT    of the summary: text (the default), json or csv\n"                   \
    "      --max-memory SIZE  give up rather than use more memory\n"                               \
    "  -h, --help             this text\n"                                                         \
    "  -V, --version          the version\n"

static const char slice_help[] =
    "Usage: ttdanalyze slice [--from POSITION] [--to POSITION] -o OUT [TRACE]\n"
    "\n"
    "Makes a trace OUT of the part of TRACE between two positions. It begins with the blocks\n"
    "that are live at --from, with their stacks. A question about the heap inside the part\n"
    "has the same answer; calls before and behind it are recorded in OUT as left out.\n"
    "\n"
    "OUT must not exist. It is read and compared with TRACE before it gets its name.\n"
    "\n"
    "      --from POSITION    the first position of the part (start)\n"
    "      --to POSITION      the first position after it (end)\n" REMAKE_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

static const char merge_help[] =
    "Usage: ttdanalyze merge -o OUT TRACE...\n"
    "\n"
    "Makes one trace OUT of the traces of a recording, with the calls of all processes in\n"
    "their order. Each process keeps its own heaps and threads, so equal addresses of two\n"
    "processes are two blocks. Snapshots belong to one process and are left out: leaks is\n"
    "asked of each trace, or with --group.\n"
    "\n"
    "OUT must not exist. It is read and compared with the traces before it gets its name.\n"
    "\n" REMAKE_HELP;

static const char repack_help[] =
    "Usage: ttdanalyze repack -o OUT [TRACE]\n"
    "\n"
    "Makes a copy OUT of TRACE that has the same records in fewer bytes: chunks are full and\n"
    "well compressed. All answers are the same.\n"
    "\n"
    "OUT must not exist. It is read and compared with TRACE before it gets its name.\n"
    "\n" REMAKE_HELP;

struct remake_request {
    struct position_spec from;
    struct position_spec to;
    /** The traces, and how many of them are open; `traces` has their readers. */
    struct source *sources;
    struct heap_trace *traces;
    size_t count;
    /** A slice is made. */
    bool is_slice;
    struct remake_range range;
    struct remake_result result;
    bool is_damaged;
};

static const struct remake_request remake_defaults = {.from = {.kind = POSITION_SPEC_START},
                                                      .to = {.kind = POSITION_SPEC_END}};

static const struct own_option slice_own[] = {
    OWN_OPTION("from", option_position, struct remake_request, from),
    OWN_OPTION("to", option_position, struct remake_request, to), OWN_OPTIONS_END};

static enum ttd_status remake_fill(void *context, const struct ttd_output *output,
                                   struct ttd_error *error)
{
    struct remake_request *request = context;
    enum ttd_status status;
    if (request->is_slice)
        status = remake_slice(request->traces, &request->range, output, &request->result, error);
    else if (request->count > 1)
        status = remake_merge(request->traces, request->count, output, &request->result, error);
    else
        status = remake_repack(request->traces, output, &request->result, error);
    request->is_damaged = exit_for(status) == STATUS_DAMAGED;
    return status;
}

static int remake_compare(void *context, const char *path)
{
    struct remake_request *request = context;
    struct ttd_input input;
    struct ttd_error error = {.what = NULL};
    enum ttd_status status = ttd_input_file(path, NULL, &input, &error);
    if (status == TTD_OK)
        status = remake_check(&input, request->traces, request->count,
                              request->is_slice ? &request->range : NULL, &request->result, &error);
    if (status == TTD_OK)
        return STATUS_OK;
    int failed = input_fail(request->sources[0].path, status, &error);
    return status == TTD_ERROR_CORRUPT ? STATUS_INTERNAL : failed;
}

static int remake_print(const struct common_options *options, const struct remake_request *request)
{
    struct output_file summary;
    struct report report;
    int status = new_trace_summary(options, &summary, &report);
    if (status != STATUS_OK)
        return status;
    const struct remake_result *result = &request->result;
    struct report_remake data = {.result = options->output,
                                 .traces = request->count,
                                 .events = result->events,
                                 .kept = result->kept,
                                 .left_out = result->left_out,
                                 .records_left_out = result->records_left_out,
                                 .unknown_chunks = result->unknown_chunks,
                                 .source_bytes = result->source_bytes,
                                 .bytes = result->bytes};
    report_remake(&report, &data);
    return output_close(&summary, STATUS_OK, true);
}

static int remake_make(const struct common_options *options, struct remake_request *request)
{
    const struct new_trace made = {
        .fill = remake_fill, .check = remake_compare, .context = request};
    bool has_summary = false;
    int status = new_trace_make(options, &made, &has_summary);
    for (size_t i = 0; i < request->count; i++)
        progress_end(&request->sources[i].progress);
    if (status == STATUS_DAMAGED && request->is_damaged)
        message("'ttdanalyze recover' makes an intact trace of it");
    return status == STATUS_OK && has_summary ? remake_print(options, request) : status;
}

/* Resolves the positions of a slice. */
static int slice_resolve(struct remake_request *request)
{
    struct source *source = &request->sources[0];
    int status =
        position_spec_resolve(&request->from, POSITION_FOR_ORDER, source, &request->range.from);
    if (status == STATUS_OK)
        status =
            position_spec_resolve(&request->to, POSITION_FOR_ORDER, source, &request->range.to);
    return status == STATUS_OK
               ? position_range_check("slice", source, request->range.from, request->range.to)
               : status;
}

/* Opens the traces, and makes the new one. */
static int remake_open(const struct common_options *options, struct remake_request *request)
{
    size_t opened = 0;
    int status = STATUS_OK;
    for (; opened < request->count && status == STATUS_OK; opened++) {
        const char *path = opened ? options->others[opened - 1] : options->trace;
        status = source_open(&request->sources[opened], path, false);
        if (status != STATUS_OK)
            break;
        request->traces[opened] = source_trace(&request->sources[opened]);
    }
    if (status == STATUS_OK && request->is_slice)
        status = slice_resolve(request);
    if (status == STATUS_OK)
        status = remake_make(options, request);
    while (opened--)
        source_close(&request->sources[opened]);
    return status;
}

static int remake_run(const struct command *command, int count, char **arguments)
{
    struct common_options options;
    struct remake_request request = remake_defaults;
    int status = command_options(&options, command, count, arguments, &request);
    if (status >= 0)
        return status;
    request.is_slice = command == &command_slice;
    request.count = 1 + options.other_count;
    if (command == &command_merge && request.count < 2)
        return message_usage(command->name, "it takes two traces or more");
    request.sources = calloc(request.count, sizeof *request.sources);
    request.traces = calloc(request.count, sizeof *request.traces);
    if (request.sources && request.traces)
        status = remake_open(&options, &request);
    else
        status = message_status(command->name, TTD_ERROR_NO_MEMORY);
    free(request.sources);
    free(request.traces);
    return status;
}

const struct command command_slice = {
    .name = "slice",
    .summary = "make a trace of a part of a trace",
    .help = slice_help,
    .own = {.table = slice_own},
    .run = remake_run,
};

const struct command command_merge = {
    .name = "merge",
    .summary = "make one trace of the processes of a recording",
    .help = merge_help,
    .traces_max = REMAKE_SOURCES_MAX,
    .run = remake_run,
};

const struct command command_repack = {
    .name = "repack",
    .summary = "copy a trace into fewer bytes",
    .help = repack_help,
    .run = remake_run,
};
