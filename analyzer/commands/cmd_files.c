/* SPDX-License-Identifier: MIT */
/* Commands that write a file made from a trace: recover, redact, index; and import. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ttdtrace/redact.h>

#include "cli/process/message.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "cli/traces/input.h"
#include "import/import.h"
#include "report/trace/trace_reports.h"

/* Making a trace of another one, for recover and redact. */

/* Fills the new trace from the old one. Closes both in any case. */
typedef enum ttd_status (*new_trace_function)(void *context, const struct ttd_input *input,
                                              const struct ttd_output *output,
                                              struct ttd_error *error);

/* Gives the complete file its name, unless that is taken. */
static int new_trace_publish(const char *temporary, const char *path)
{
    if (link(temporary, path) == 0) {
        unlink(temporary);
        return STATUS_OK;
    }
    /* Not every file system has links. */
    if (errno != EEXIST && access(path, F_OK) != 0 && rename(temporary, path) == 0)
        return STATUS_OK;
    message("%s: %s", path, strerror(errno));
    unlink(temporary);
    return STATUS_INTERNAL;
}

/* The new file, remembering whether it was the one that failed. */
struct target {
    struct ttd_output file;
    int error;
};

static int write_target(void *context, const void *data, size_t size)
{
    struct target *target = context;
    int error = target->file.write(target->file.context, data, size);
    if (error)
        target->error = error;
    return error;
}

static int close_target(void *context)
{
    struct target *target = context;
    int error = target->file.close(target->file.context);
    if (error)
        target->error = error;
    return error;
}

static int new_trace_fail(const struct common_options *options, const struct target *target,
                          enum ttd_status status, const struct ttd_error *error)
{
    if (target->error) {
        message("%s: %s", options->output, strerror(target->error));
        return STATUS_INTERNAL;
    }
    return input_fail(options->trace, status, error);
}

static int fill_descriptor(const struct common_options *options, int descriptor,
                           new_trace_function fill, void *context)
{
    struct ttd_input input;
    struct target target = {.error = 0};
    struct ttd_error error = {.offset = TTD_NOWHERE, .chunk = TTD_NOWHERE, .what = ""};
    enum ttd_status status = ttd_output_descriptor(descriptor, 1, NULL, &target.file);
    if (status != TTD_OK)
        return new_trace_fail(options, &target, status, &error);
    status = input_open(options->trace, &input, &error);
    if (status != TTD_OK) {
        target.file.close(target.file.context);
        return new_trace_fail(options, &target, status, &error);
    }
    struct ttd_output counted = {&target, write_target, close_target};
    status = fill(context, &input, &counted, &error);
    return status == TTD_OK ? STATUS_OK : new_trace_fail(options, &target, status, &error);
}

static int fill_file(const struct common_options *options, new_trace_function fill, void *context)
{
    size_t size = strlen(options->output) + sizeof ".XXXXXX";
    char *temporary = malloc(size);
    if (!temporary) {
        message("%s", strerror(ENOMEM));
        return STATUS_INTERNAL;
    }
    snprintf(temporary, size, "%s.XXXXXX", options->output);
    int descriptor = mkstemp(temporary);
    int status = STATUS_INTERNAL;
    if (descriptor < 0) {
        message("%s: %s", options->output, strerror(errno));
    } else {
        status = fill_descriptor(options, descriptor, fill, context);
        if (status == STATUS_OK)
            status = new_trace_publish(temporary, options->output);
        else
            unlink(temporary);
    }
    free(temporary);
    return status;
}

/* Whether the summary would get between the trace's bytes. */
static bool is_standard_output(int descriptor)
{
    struct stat standard_output, file;
    return fstat(STDOUT_FILENO, &standard_output) == 0 && fstat(descriptor, &file) == 0 &&
           standard_output.st_dev == file.st_dev && standard_output.st_ino == file.st_ino;
}

/*
 * Makes a trace from options->trace under the name options->output: a regular file is readable by
 * its owner only, is there only if it is complete, and never replaces one; anything else, such as
 * a pipe, is written to directly.
 *
 * @param fill         called once with `context`, unless a file could not be opened
 * @param has_summary  set on STATUS_OK: standard output is not the new trace
 * @return an exit status; on failure a message was printed
 */
static int new_trace_make(const struct common_options *options, new_trace_function fill,
                          void *context, bool *has_summary)
{
    const char *command = options->command->name;
    struct output_path output;
    if (!options->output)
        return message_usage(command, "no output file is given: use -o");
    int reason = output_path_resolve(options->output, &output);
    if (reason != 0) {
        message("%s: %s", options->output, strerror(reason));
        return STATUS_INTERNAL;
    }
    bool is_file = output.path != NULL;
    output_path_free(&output);
    if (is_file && output.exists)
        return message_usage(command, "%s exists, and is not overwritten", options->output);
    *has_summary = is_file || !is_standard_output(output.descriptor);
    return is_file ? fill_file(options, fill, context)
                   : fill_descriptor(options, output.descriptor, fill, context);
}

/* Opens standard output for the summary. Returns an exit status; on failure a message was printed.
 */
static int new_trace_summary(const struct common_options *options, struct output_file *summary,
                             struct report *report)
{
    int status = output_open(summary, NULL, options->trace, false);
    *report =
        (struct report){.output = &summary->text, .form = options->form, .path = options->trace};
    return status;
}

/* ttdanalyze recover */

/* Problems that are reported one by one. */
#define REPORTED_MAX 10

static const char recover_help[] =
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
    .help = recover_help,
    .run = recover_run,
};

/* ttdanalyze redact */

static const char redact_help[] =
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

static const struct own_option redact_own[] = {
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
    "themselves where that pays, use it only if it belongs to the trace as it is, and work\n"
    "without it where the directory cannot be written. A trace that is damaged or still\n"
    "growing has none. It is always beside the trace: --output is for the "
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
    "Makes a trace OUT of what another recorder has written. FILE is a text; - is standard\n"
    "input. OUT must not exist, unless it is no file, such as a pipe. FORMAT is one of:\n"
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
    const struct import_format *format;
    struct import_result result;
};

static enum ttd_status import_write(void *context, const struct ttd_input *input,
                                    const struct ttd_output *output, struct ttd_error *error)
{
    struct import_request *request = context;
    enum ttd_status status = import_trace(request->format, input, output, &request->result, error);
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
    options.trace = options.others[0];
    status = new_trace_make(&options, import_write, &request, &has_summary);
    return status == STATUS_OK && has_summary ? import_print(&options, &request.result) : status;
}

const struct command command_import = {
    .name = "import",
    .summary = "make a trace from another recorder's data",
    .help = import_help,
    .traces_max = 2,
    .run = import_run,
};
