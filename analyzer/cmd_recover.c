/* SPDX-License-Identifier: MIT */
/* ttdanalyze recover */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/exit.h"
#include "cli/input.h"
#include "cli/message.h"
#include "cli/session.h"

/* Problems that are reported one by one. */
#define REPORTED_MAX 10

static const char help[] =
    "Usage: ttdanalyze recover [OPTIONS] -o OUT IN\n"
    "\n"
    "Makes a new, clean trace OUT of all that is intact in IN, which may be damaged, cut\n"
    "off, or never have been closed. What is missing is recorded in OUT as lost. IN stays\n"
    "as it is, and OUT must not exist, unless it is no file, such as a pipe.\n"
    "\n"
    "  -o, --output OUT     the trace to be made, readable by you only\n"
    "  -f, --format FORMAT  of the summary: text (the default), json or csv\n"
    "  -h, --help           this text\n"
    "  -V, --version        the version\n";

struct rescue {
    const char *path;
    uint64_t problems;
};

static bool see_problem(void *context, const struct ttd_problem *problem)
{
    struct rescue *rescue = context;
    if (rescue->problems++ < REPORTED_MAX)
        message_error("warning: ", rescue->path, &problem->error);
    else if (rescue->problems == REPORTED_MAX + 1)
        message("warning: %s: more problems; 'ttdanalyze verify' lists them all", rescue->path);
    return true;
}

/* Gives the complete file its name, unless that is taken. */
static int publish(const char *temporary, const char *path)
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

static int fail(const struct common_options *options, const struct target *target,
                enum ttd_status status, const struct ttd_error *error)
{
    if (target->error) {
        message("%s: %s", options->output, strerror(target->error));
        return STATUS_INTERNAL;
    }
    return input_fail(options->trace, status, error);
}

static int copy(const struct common_options *options, int descriptor, struct ttd_verdict *verdict)
{
    struct ttd_input input;
    struct target target = {.error = 0};
    struct ttd_error error = {.offset = TTD_NOWHERE, .chunk = TTD_NOWHERE, .what = ""};
    enum ttd_status status = ttd_output_descriptor(descriptor, 1, NULL, &target.file);
    if (status != TTD_OK)
        return fail(options, &target, status, &error);
    status = input_open(options->trace, &input, &error);
    if (status != TTD_OK) {
        target.file.close(target.file.context);
        return fail(options, &target, status, &error);
    }
    struct rescue rescue = {.path = options->trace};
    struct ttd_output counted = {&target, write_target, close_target};
    status = ttd_recover(&input, &counted, NULL,
                         &(struct ttd_problem_observer){see_problem, &rescue}, verdict, &error);
    return status == TTD_OK ? STATUS_OK : fail(options, &target, status, &error);
}

static int print(const struct common_options *options, const struct ttd_verdict *verdict)
{
    struct output summary;
    int status = output_open(&summary, NULL, options->trace, false);
    if (status != STATUS_OK)
        return status;
    struct report report = {.output = &summary.out, .path = options->trace};
    struct report_recovery data = {.verdict = verdict, .result = options->output};
    options->format->recover(&report, &data);
    return output_close(&summary, STATUS_OK, true);
}

static int make_file(const struct common_options *options)
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
    struct ttd_verdict verdict;
    if (descriptor < 0) {
        message("%s: %s", options->output, strerror(errno));
    } else {
        status = copy(options, descriptor, &verdict);
        if (status == STATUS_OK)
            status = publish(temporary, options->output);
        else
            unlink(temporary);
    }
    free(temporary);
    return status == STATUS_OK ? print(options, &verdict) : status;
}

/* Whether the summary would get between the trace's bytes. */
static bool is_standard_output(int descriptor)
{
    struct stat own, there;
    return fstat(STDOUT_FILENO, &own) == 0 && fstat(descriptor, &there) == 0 &&
           own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

static int recover(const struct common_options *options)
{
    struct output_path output;
    struct ttd_verdict verdict;
    int reason = output_path_resolve(options->output, &output);
    if (reason != 0) {
        message("%s: %s", options->output, strerror(reason));
        return STATUS_INTERNAL;
    }
    bool is_file = output.path != NULL;
    output_path_free(&output);
    if (is_file && output.exists)
        return message_usage("recover", "%s exists, and is not overwritten", options->output);
    if (is_file)
        return make_file(options);
    bool has_summary = !is_standard_output(output.descriptor);
    int status = copy(options, output.descriptor, &verdict);
    return status == STATUS_OK && has_summary ? print(options, &verdict) : status;
}

static int run(const struct command *command, int count, char **arguments)
{
    struct common_options options;
    int status = command_options(&options, command, count, arguments, NULL);
    if (status >= 0)
        return status;
    if (!options.output)
        return message_usage(command->name, "no output file is given: use -o");
    return recover(&options);
}

const struct command command_recover = {
    .name = "recover",
    .summary = "save what is intact of a damaged trace",
    .help = help,
    .run = run,
};
