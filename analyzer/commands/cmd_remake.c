/* SPDX-License-Identifier: MIT */
/* Commands that write a file made from a trace: recover, redact, index; that make a trace of the
 * records of others: slice, merge, repack; and import. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <ttdtrace/redact.h>

#include "cli/process/message.h"
#include "cli/session/new_trace.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "cli/traces/source.h"
#include "import/import.h"
#include "remake/remake.h"
#include "report/trace/trace_reports.h"

/* ttdanalyze recover */

/* Problems that are reported one by one. */
#define REPORTED_MAX 10

static const char recover_help[] =
    "Usage: ttdanalyze recover [OPTIONS] -o OUT IN\n"
    "\n"
    "Makes a new, clean trace OUT of all that is intact in IN, which may be damaged,\n"
    "cut off, or never have been closed. The missing parts are recorded in OUT as\n"
    "lost. IN stays as it is, and OUT must not exist, unless it is no file, such as a\n"
    "pipe.\n"
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

static enum ttd_status recover_write(void *context, const struct ttd_output *output,
                                     struct ttd_error *error)
{
    struct rescue *rescue = context;
    struct ttd_input input;
    enum ttd_status status = new_trace_input(rescue->path, output, &input, error);
    return status == TTD_OK
               ? ttd_recover(&input, output, NULL,
                             &(struct ttd_problem_observer){recover_see_problem, rescue},
                             &rescue->verdict, error)
               : status;
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
    const struct new_trace made = {.fill = recover_write, .context = &rescue};
    status = new_trace_make(&options, &made, &has_summary);
    return status == STATUS_OK && has_summary ? recover_print(&options, &rescue.verdict) : status;
}

const struct command command_recover = {
    .name = "recover",
    .summary = "save the intact parts of a damaged trace",
    .help = recover_help,
    .run = recover_run,
};

/* ttdanalyze redact */

static const char redact_help[] =
    "Usage: ttdanalyze redact [OPTIONS] -o OUT IN\n"
    "\n"
    "Makes a copy OUT of the trace IN without the contents of memory, so that it can\n"
    "be given to others. Events, positions and every answer that needs no contents\n"
    "stay the same. IN must be intact and stays as it is; OUT must not exist, unless\n"
    "it is no file, such as a pipe.\n"
    "\n"
    "      --strings        also remove the command line, directory, host and system,\n"
    "                       the names of functions, files, modules and threads,\n"
    "                       build-ids, and texts that the program itself wrote into\n"
    "                       the trace\n"
    "  -o, --output OUT     the trace to be made, readable by you only\n"
    "  -f, --format FORMAT  of the summary: text (the default), json or csv\n"
    "  -h, --help           this text\n"
    "  -V, --version        the version\n";

struct request {
    const char *path;
    bool removes_strings;
    struct ttd_redaction removed;
    bool is_refused;
};

static const struct own_option redact_own[] = {
    OWN_OPTION("strings", option_flag, struct request, removes_strings), OWN_OPTIONS_END};

/* A damaged trace is not redacted: contents in unreadable parts could not be found and removed.
 */
static enum ttd_status redact_write(void *context, const struct ttd_output *output,
                                    struct ttd_error *error)
{
    struct request *request = context;
    struct ttd_input input;
    enum ttd_status status = new_trace_input(request->path, output, &input, error);
    if (status != TTD_OK)
        return status;
    status = ttd_redact(&input, output, NULL, request->removes_strings ? TTD_REDACT_STRINGS : 0,
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
    request.path = options.trace;
    const struct new_trace made = {.fill = redact_write, .context = &request};
    status = new_trace_make(&options, &made, &has_summary);
    if (status == STATUS_DAMAGED && request.is_refused)
        message("'ttdanalyze recover' makes an intact trace of it, which can be redacted");
    return status == STATUS_OK && has_summary ? redact_print(&options, &request) : status;
}

const struct command command_redact = {
    .name = "redact",
    .summary = "copy a trace without the contents of memory",
    .help = redact_help,
    .own = {.table = redact_own},
    .run = redact_run,
};

/* ttdanalyze index */

static const char index_help[] =
    "Usage: ttdanalyze index [OPTIONS] [TRACE]\n"
    "\n"
    "Makes TRACE.idx: states of the heap at many positions, so that commands that are\n"
    "asked for a position start near it, whatever the length of the trace; those that\n"
    "only add up the live blocks, such as state and peak, are there at once.\n"
    "\n"
    "The index can be made again from the trace at any time. Commands make it\n"
    "themselves where that pays, use it only if it belongs to the trace as it is, and\n"
    "work without it where the directory cannot be written. A trace that is damaged\n"
    "or still growing has none. It is always beside the trace: --output is for the\n"
    "printed text.\n" COMMAND_COMMON_HELP;

static int index_print(struct session *session, const char *path,
                       const struct heap_index_facts *facts)
{
    struct stat file;
    if (stat(path, &file) != 0) {
        message("%s: %s", path, strerror(errno));
        return STATUS_INTERNAL;
    }
    struct report_index data = {.file = path,
                                .events = facts->events,
                                .keyframes = facts->keyframes,
                                .summaries = facts->summaries,
                                .bytes = (uint64_t)file.st_size};
    int status = session_output(session, false);
    if (status == STATUS_OK)
        report_index(&session->report, &data);
    return status;
}

static int index_make(struct session *session)
{
    struct heap_index_facts facts;
    char *path = sidecar_path(session->source.path);
    if (!path) {
        message("%s", strerror(ENOMEM));
        return STATUS_INTERNAL;
    }
    int status = sidecar_make(&session->source, path, false, &facts);
    if (status == STATUS_OK)
        status = index_print(session, path, &facts);
    free(path);
    return status;
}

/* The command does not use session_run(), because it must refuse standard input before that is
 * copied to a temporary file: nobody would find an index beside it. */
static int index_run(const struct command *command, int count, char **arguments)
{
    struct common_options options;
    int status = command_options(&options, command, count, arguments, NULL);
    if (status >= 0)
        return status;
    if (input_is_standard(options.trace))
        return message_usage(command->name, "an index stands beside a trace: name its file");
    struct session session;
    status = session_open(&session, &options);
    if (status != STATUS_OK)
        return status;
    return session_close(&session, index_make(&session), false);
}

const struct command command_index = {
    .name = "index",
    .summary = "make going to positions fast",
    .help = index_help,
    .run = index_run,
};

/* ttdanalyze import */

static const char import_help[] =
    "Usage: ttdanalyze import [OPTIONS] -o OUT FORMAT FILE\n"
    "\n"
    "Makes a trace OUT of another recorder's FILE. FILE is a text; - is standard\n"
    "input. OUT must not exist, unless it is no file, such as a pipe. FORMAT is one\n"
    "of:\n"
    "\n"
    "  heaptrack   raw data of heaptrack (heaptrack --raw)\n"
    "  windbg      heap objects of a TTD trace on Windows, printed by WinDbg's dx\n"
    "  mtrace      a log of glibc's mtrace()\n"
    "  lttng       events of LTTng's wrapper of the C library, printed by babeltrace2\n"
    "  xperf       heap events in the text of xperf -a dumper (experimental)\n"
    "\n"
    "No source has all calls for certain, so every answer about OUT is uncertain.\n"
    "\n"
    "  -o, --output OUT       the trace to be made, readable by you only\n"
    "  -f, --format FORMAT    of the summary: text (the default), json or csv\n"
    "      --max-memory SIZE  give up rather than use more memory\n"
    "  -h, --help             this text\n"
    "  -V, --version          the version\n";

struct import_request {
    const char *path;
    const struct import_format *format;
    struct import_result result;
};

static enum ttd_status import_write(void *context, const struct ttd_output *output,
                                    struct ttd_error *error)
{
    struct import_request *request = context;
    struct ttd_input input;
    enum ttd_status status = new_trace_input(request->path, output, &input, error);
    if (status != TTD_OK)
        return status;
    status = import_trace(request->format, &input, output, &request->result, error);
    if (request->result.reason[0])
        *error = (struct ttd_error){.status = status,
                                    .offset = TTD_NOWHERE,
                                    .chunk = TTD_NOWHERE,
                                    .what = request->result.reason};
    return status;
}

static int import_print(const struct common_options *options, const struct import_result *result)
{
    struct output_file summary;
    struct report report;
    int status = new_trace_summary(options, &summary, &report);
    if (status != STATUS_OK)
        return status;
    struct report_import data = {.events = result->events,
                                 .lines = result->lines,
                                 .ignored = result->ignored,
                                 .result = options->output};
    report_import(&report, &data);
    return output_close(&summary, STATUS_OK, true);
}

/* The first operand is the format, the second one the file. */
static int import_run(const struct command *command, int count, char **arguments)
{
    struct common_options options;
    struct import_request request;
    bool has_summary = false;
    int status = count < 2 ? message_usage(command->name, "no format is given")
                           : command_options(&options, command, count, arguments, NULL);
    if (status >= 0)
        return status;
    request.format = import_find(options.trace);
    if (!request.format)
        return message_usage(command->name, "%s is no format that can be imported", options.trace);
    if (!options.other_count)
        return message_usage(command->name, "no file is given");
    options.trace = request.path = options.others[0];
    const struct new_trace made = {.fill = import_write, .context = &request};
    status = new_trace_make(&options, &made, &has_summary);
    return status == STATUS_OK && has_summary ? import_print(&options, &request.result) : status;
}

const struct command command_import = {
    .name = "import",
    .summary = "make a trace from another recorder's data",
    .help = import_help,
    .traces_max = 2,
    .run = import_run,
};

/* Commands that make a trace of the records of others: slice, merge, repack. */

#define REMAKE_HELP                                                                                \
    "  -o, --output OUT       the trace to be made, readable by you only\n"                        \
    "  -f, --format FORMAT    of the summary: text (the default), json or csv\n"                   \
    "      --max-memory SIZE  give up rather than use more memory\n"                               \
    "  -h, --help             this text\n"                                                         \
    "  -V, --version          the version\n"

static const char slice_help[] =
    "Usage: ttdanalyze slice [--from POSITION] [--to POSITION] -o OUT [TRACE]\n"
    "\n"
    "Makes a trace OUT of the part of TRACE between two positions. It begins with the\n"
    "blocks that are live at --from, with their stacks. A question about the heap\n"
    "inside the part has the same answer; calls before and behind it are recorded in\n"
    "OUT as left out.\n"
    "\n"
    "OUT must not exist. It is read and compared with TRACE before it gets its name.\n"
    "\n"
    "      --from POSITION    the first position of the part (start)\n"
    "      --to POSITION      the first position after it (end)\n" REMAKE_HELP "\n"
    "A POSITION is one of:\n" POSITION_SPEC_FORMS;

static const char merge_help[] =
    "Usage: ttdanalyze merge -o OUT TRACE...\n"
    "\n"
    "Makes one trace OUT of the traces of a recording, with the calls of all\n"
    "processes in their order. Each process keeps its own heaps and threads, so equal\n"
    "addresses of two processes are two blocks. Snapshots belong to one process and\n"
    "are left out: leaks is asked of each trace, or with --group.\n"
    "\n"
    "OUT must not exist. It is read and compared with the traces before it gets its\n"
    "name.\n"
    "\n" REMAKE_HELP;

static const char repack_help[] =
    "Usage: ttdanalyze repack -o OUT [TRACE]\n"
    "\n"
    "Makes a copy OUT of TRACE that has the same records in fewer bytes: chunks are\n"
    "full and well compressed. All answers are the same.\n"
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
