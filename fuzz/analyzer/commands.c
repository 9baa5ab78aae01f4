/* SPDX-License-Identifier: MIT */
/*
 * Whatever a trace contains, every command line ends with a documented status, its output is
 * well-formed, and no descriptor stays open. The identifier of the trace, which no analysis uses,
 * chooses the command line, so that an input is a trace, as for the other targets.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../capture.h"
#include "../target.h"
#include "base/bytes.h"
#include "cli/process/limits.h"
#include "cli/process/message.h"
#include "cli/session/session.h"
#include "command_line.h"
#include "layout.h"
#include "well_formed.h"

#define PATH_SIZE 256

static char trace_path[PATH_SIZE];
static char index_path[PATH_SIZE];
static char output_path[PATH_SIZE];

static void require(bool holds, const char *what, const struct command_line *line)
{
    if (holds)
        return;
    for (int i = 0; i < line->count; i++)
        fprintf(stderr, "%s ", line->arguments[i]);
    fputc('\n', stderr);
    target_require(0, what);
}

static void remove_files(void)
{
    unlink(trace_path);
    unlink(index_path);
    unlink(output_path);
}

static void prepare(void)
{
    const char *directory = capture_directory();
    snprintf(trace_path, sizeof trace_path, "%s/trace", directory);
    snprintf(index_path, sizeof index_path, "%s/trace.idx", directory);
    snprintf(output_path, sizeof output_path, "%s/output", directory);
}

static void write_trace(const uint8_t *data, size_t size)
{
    int descriptor = open(trace_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    target_require(descriptor >= 0 && write(descriptor, data, size) == (ssize_t)size, "a file");
    close(descriptor);
}

static int next_descriptor(void)
{
    int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(descriptor);
    return descriptor;
}

static int run(const struct command *command, int count, char **arguments)
{
    capture_begin();
    int before = next_descriptor();
    int status = command->run ? command->run(command, count, arguments)
                              : session_run_defaults(command, count, arguments);
    capture_end();
    limits_lift();
    target_require(next_descriptor() == before, "nothing is left open");
    return status;
}

static bool may_end(int status, const struct command_line *line)
{
    bool may_find =
        line->command == &command_verify || line->command->shares & COMMAND_KNOWN_FINDINGS;
    return (status >= STATUS_OK && status <= STATUS_INTERNAL &&
            (status != STATUS_FINDINGS || may_find)) ||
           ((status == COMMAND_LINE_ERROR_EXITCODE || status == STATUS_UNJUDGED) &&
            line->command->shares & COMMAND_KNOWN_FINDINGS);
}

static const char *judge(const char *format, const char *data, size_t size)
{
    if (format && strcmp(format, "pprof") == 0) /* is binary */
        return NULL;
    const char *wrong = well_formed_text(data, size);
    if (wrong || !format)
        return wrong;
    if (size && data[size - 1] != '\n')
        return "output ends with the end of a line";
    if (strcmp(format, "text") == 0 || strcmp(format, "junit") == 0 ||
        strcmp(format, "github") == 0)
        return NULL;
    if (strcmp(format, "json") == 0 || strcmp(format, "sarif") == 0)
        return well_formed_json(data, size);
    return strcmp(format, "csv") == 0 ? well_formed_csv(data, size)
                                      : well_formed_folded(data, size);
}

/* A format of NULL means any, possibly cut short. */
static void require_format(const char *format, const char *data, size_t size,
                           const struct command_line *line)
{
    const char *wrong = judge(format, data, size);
    if (!wrong)
        return;
    fwrite(data, 1, size < 2000 ? size : 2000, stderr);
    require(false, wrong, line);
}

static void check_output(int descriptor, const char *format, const struct command_line *line)
{
    size_t size;
    char *data = capture_take(descriptor, &size);
    require_format(format, data, size, line);
    free(data);
}

/* Checks the output file, which exists only if it is complete. */
static void check_file(const struct command_line *line)
{
    struct stat status;
    int file = open(output_path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    require(fstat(file, &status) == 0, "output", line);
    size_t size = (size_t)status.st_size;
    char *data = malloc(size + 1);
    require(data && read(file, data, size) == (ssize_t)size, "output", line);
    close(file);
    if (line->command != &command_recover && line->command != &command_redact &&
        line->command != &command_index && line->command != &command_import &&
        line->command != &command_slice && line->command != &command_merge &&
        line->command != &command_repack)
        require_format(line->format, data, size, line);
    free(data);
}

static void check(int status, const struct command_line *line)
{
    require(may_end(status, line), "a documented status", line);
    /* A command that fails half-way may have written part of its output. */
    bool has_failed = status >= STATUS_USAGE && status != COMMAND_LINE_ERROR_EXITCODE;
    check_output(STDOUT_FILENO, has_failed ? NULL : line->format, line);
    check_output(STDERR_FILENO, "text", line);
    check_file(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!*trace_path)
        prepare();
    bool has_header = size >= TTD_HEADER_SIZE;
    struct command_line chosen = command_line_draw(
        has_header ? ttd_get64(data + TTD_HEADER_TRACE_ID) : 0, trace_path, output_path);
    write_trace(data, size);
    if (chosen.makes_index) {
        char name[] = "index";
        char *arguments[] = {name, trace_path, NULL};
        run(&command_index, 2, arguments);
        check_output(STDOUT_FILENO, "text", &chosen);
        check_output(STDERR_FILENO, "text", &chosen);
    }
    check(run(chosen.command, chosen.count, chosen.arguments), &chosen);
    remove_files();
    return 0;
}
