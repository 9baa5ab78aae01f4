/* SPDX-License-Identifier: MIT */
/* ttdanalyze verify */
#include "cli/exit.h"
#include "cli/input.h"
#include "cli/message.h"
#include "cli/session.h"

static const char help[] =
    "Usage: ttdanalyze verify [OPTIONS] [TRACE]\n"
    "\n"
    "Checks everything: every checksum, that nothing is missing, swapped or left over,\n"
    "that every part can be decoded and refers only to what is defined, and that the\n"
    "recording was closed. A line for each problem, then a line for the whole.\n"
    "\n"
    "Exit status 0: intact; 1: problems found. What is intact of a damaged trace can be\n"
    "read by every other command; 'ttdanalyze recover' makes a clean trace of "
    "it.\n" COMMAND_COMMON_HELP;

struct checker {
    struct report report;
    struct output output;
    const struct report_format *format;
    uint64_t problems;
};

static bool see_problem(void *context, const struct ttd_problem *problem)
{
    struct checker *checker = context;
    if (!checker->problems)
        checker->format->verify_begin(&checker->report);
    checker->format->problem(&checker->report, problem, checker->problems++);
    return !checker->output.out.error;
}

static int finish(struct checker *checker, const struct ttd_verdict *verdict)
{
    if (!checker->problems)
        checker->format->verify_begin(&checker->report);
    checker->format->verify_end(&checker->report, verdict);
    return output_close(&checker->output, verdict->ok ? STATUS_OK : STATUS_FINDINGS, true);
}

static int verify(const struct common_options *options)
{
    struct ttd_input input;
    struct ttd_error error = {.offset = TTD_NOWHERE, .chunk = TTD_NOWHERE, .what = ""};
    enum ttd_status status = input_open(options->trace, &input, &error);
    if (status != TTD_OK)
        return input_fail(options->trace, status, &error);
    struct checker checker = {.format = options->format};
    checker.report = (struct report){.output = &checker.output.out, .path = options->trace};
    int result = output_open(&checker.output, options->output, options->trace, false);
    if (result != STATUS_OK) {
        if (input.close)
            input.close(input.context);
        return result;
    }
    struct ttd_verdict verdict;
    error.status = TTD_OK;
    status = ttd_verify(&input, NULL, see_problem, &checker, &verdict, &error);
    if (status == TTD_OK)
        return finish(&checker, &verdict);
    /* Closes a report that was begun, so that it can be parsed. */
    if (status != TTD_END && checker.problems)
        checker.format->verify_end(&checker.report, &(struct ttd_verdict){.ok = false});
    if (status != TTD_END)
        input_fail(options->trace, status, &error);
    return output_close(&checker.output, exit_for(status), false);
}

static int run(const struct command *command, int count, char **arguments)
{
    struct common_options options;
    int status = command_options(&options, command, count, arguments, NULL);
    return status >= 0 ? status : verify(&options);
}

const struct command command_verify = {
    .name = "verify",
    .summary = "check a trace completely",
    .help = help,
    .run = run,
};
