/* SPDX-License-Identifier: MIT */
#include "cli/session/new_trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/process/message.h"
#include "cli/traces/source.h"

enum ttd_status new_trace_input(const char *path, const struct ttd_output *output,
                                struct ttd_input *input, struct ttd_error *error)
{
    enum ttd_status status = input_open(path, input, error);
    if (status != TTD_OK)
        output->close(output->context);
    return status;
}

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

static int new_trace_target_write(void *context, const void *data, size_t size)
{
    struct target *target = context;
    int error = target->file.write(target->file.context, data, size);
    if (error)
        target->error = error;
    return error;
}

static int new_trace_target_close(void *context)
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

static int new_trace_fill(const struct common_options *options, int descriptor,
                          const struct new_trace *made)
{
    struct target target = {.error = 0};
    struct ttd_error error = {.offset = TTD_NOWHERE, .chunk = TTD_NOWHERE, .what = ""};
    enum ttd_status status = ttd_output_descriptor(descriptor, 1, NULL, &target.file);
    if (status == TTD_OK)
        status = made->fill(
            made->context,
            &(struct ttd_output){&target, new_trace_target_write, new_trace_target_close}, &error);
    return status == TTD_OK ? STATUS_OK : new_trace_fail(options, &target, status, &error);
}

static int new_trace_fill_file(const struct common_options *options, const struct new_trace *made)
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
        status = new_trace_fill(options, descriptor, made);
        if (status == STATUS_OK && made->check)
            status = made->check(made->context, temporary);
        if (status == STATUS_OK)
            status = new_trace_publish(temporary, options->output);
        else
            unlink(temporary);
    }
    free(temporary);
    return status;
}

/* Whether the summary would get between the trace's bytes. */
static bool new_trace_is_standard_output(int descriptor)
{
    struct stat standard_output, file;
    return fstat(STDOUT_FILENO, &standard_output) == 0 && fstat(descriptor, &file) == 0 &&
           standard_output.st_dev == file.st_dev && standard_output.st_ino == file.st_ino;
}

int new_trace_make(const struct common_options *options, const struct new_trace *made,
                   bool *has_summary)
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
    if (!is_file && made->check) {
        close(output.descriptor);
        return message_usage(command, "%s is no file: a trace that is checked before it is there",
                             options->output);
    }
    *has_summary = is_file || !new_trace_is_standard_output(output.descriptor);
    return is_file ? new_trace_fill_file(options, made)
                   : new_trace_fill(options, output.descriptor, made);
}

int new_trace_summary(const struct common_options *options, struct output_file *summary,
                      struct report *report)
{
    int status = output_open(summary, NULL, options->trace, false);
    *report =
        (struct report){.output = &summary->text, .form = options->form, .path = options->trace};
    return status;
}
