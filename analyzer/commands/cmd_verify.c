/* SPDX-License-Identifier: MIT */
/* ttdanalyze verify */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/process/exit.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "cli/session/sidecar.h"
#include "cli/traces/input.h"
#include "report/trace/trace_reports.h"

static const char help[] =
    "Usage: ttdanalyze verify [OPTIONS] [TRACE]\n"
    "\n"
    "Checks everything: every checksum, that nothing is missing, swapped or left over,\n"
    "that every part can be decoded and refers only to defined ids, and that the\n"
    "recording was closed. A line for each problem, then a line for the whole.\n"
    "An index TRACE.idx, or one that is named, is compared with the trace.\n"
    "\n"
    "Exit status 0: intact; 1: problems found. Every other command reads the intact parts\n"
    "of a damaged trace; 'ttdanalyze recover' makes a clean trace of "
    "it.\n" COMMAND_COMMON_HELP;

struct checker {
    struct report report;
    struct output_file output;
    uint64_t problems;
};

static bool verify_see_problem(void *context, const struct ttd_problem *problem)
{
    struct checker *checker = context;
    if (!checker->problems)
        report_verify_begin(&checker->report);
    report_problem(&checker->report, problem, checker->problems++);
    return !checker->output.text.error;
}

/* Names the trace and the index that belong together, `named` being one of them, in memory that is
 * freed by the caller. Returns false if there are not both. */
static bool find_pair(const char *named, char **trace, char **index)
{
    static const char suffix[] = ".idx";
    size_t size = strlen(named);
    size_t kept = size > strlen(suffix) ? size - strlen(suffix) : 0;
    bool is_index = kept && strcmp(named + kept, suffix) == 0;
    *trace = strndup(named, is_index ? kept : size);
    *index = *trace ? sidecar_path(*trace) : NULL;
    if (!*index)
        return false;
    if (is_index && access(*trace, F_OK) != 0)
        message("warning: %s: is not compared with its trace: %s: %s", named, *trace,
                strerror(errno));
    return access(*index, F_OK) == 0 && access(*trace, F_OK) == 0;
}

/* Compares the index with the trace, and reports if it differs. */
static int check_index(struct checker *checker, const char *trace, const char *index,
                       struct report_verification *result)
{
    enum sidecar_verdict verdict;
    struct ttd_problem problem = {.bytes = 0};
    const char *named = checker->report.path;
    int status = sidecar_check(trace, index, &verdict, &problem.error);
    if (status != STATUS_OK || verdict == SIDECAR_NONE)
        return status;
    result->index = index;
    result->is_index_wrong = verdict == SIDECAR_DIFFERS;
    checker->report.path = index;
    if (result->is_index_wrong)
        verify_see_problem(checker, &problem);
    checker->report.path = named;
    return STATUS_OK;
}

/* Ends the report of the verification, after the index. */
static int verify_finish(struct checker *checker, const struct common_options *options,
                         struct report_verification *result)
{
    char *trace = NULL;
    char *index = NULL;
    int status = STATUS_OK;
    if (result->verdict.ok && options->has_index && find_pair(options->trace, &trace, &index))
        status = check_index(checker, trace, index, result);
    if (!checker->problems)
        report_verify_begin(&checker->report);
    report_verify_end(&checker->report, result);
    free(trace);
    free(index);
    if (status == STATUS_OK && (!result->verdict.ok || result->is_index_wrong))
        status = STATUS_FINDINGS;
    return output_close(&checker->output, status, true);
}

static int verify(const struct common_options *options)
{
    struct ttd_input input;
    struct ttd_error error = {.offset = TTD_NOWHERE, .chunk = TTD_NOWHERE, .what = ""};
    enum ttd_status status = input_open(options->trace, &input, &error);
    if (status != TTD_OK)
        return input_fail(options->trace, status, &error);
    struct checker checker = {
        .report = {.output = &checker.output.text, .form = options->form, .path = options->trace}};
    int result = output_open(&checker.output, options->output, options->trace, false);
    if (result != STATUS_OK) {
        if (input.close)
            input.close(input.context);
        return result;
    }
    struct report_verification whole = {.index = NULL};
    error.status = TTD_OK;
    status = ttd_verify(&input, NULL, &(struct ttd_problem_observer){verify_see_problem, &checker},
                        &whole.verdict, &error);
    if (status == TTD_OK)
        return verify_finish(&checker, options, &whole);
    /* Closes a report that was begun, so that it can be parsed. */
    if (status != TTD_END && checker.problems)
        report_verify_end(&checker.report, &(struct report_verification){.index = NULL});
    if (status != TTD_END)
        input_fail(options->trace, status, &error);
    return output_close(&checker.output, exit_for(status), false);
}

static int verify_run(const struct command *command, int count, char **arguments)
{
    struct common_options options;
    int status = command_options(&options, command, count, arguments, NULL);
    return status >= 0 ? status : verify(&options);
}

const struct command command_verify = {
    .name = "verify",
    .summary = "check a trace completely",
    .help = help,
    .run = verify_run,
};
