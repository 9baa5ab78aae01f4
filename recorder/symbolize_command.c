/* SPDX-License-Identifier: MIT */
#include "subcommands.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "later/add_names.h"
#include "launch.h"
#include "messages.h"
#include "options.h"

static const char help[] =
    "Usage: ttdrecord symbolize [OPTION]... TRACE\n"
    "Add names of functions, files, lines and variables to TRACE, which was recorded\n"
    "without them. They come from files with the build-ids of the recorded modules:\n"
    "debug files below /usr/lib/debug, the modules themselves, and debuginfod servers\n"
    "if the environment variable DEBUGINFOD_URLS names some.\n"
    "\n"
    "  -o, --output=FILE      write the trace with names to FILE; TRACE stays as it\n"
    "                         is. Without it TRACE is replaced, once all is written\n"
    "      --debug-path=DIRS  more directories with debug files below .build-id,\n"
    "                         separated by colons\n"
    "  -q, --quiet            do not report which frames got names\n"
    "  -h, --help             print this and exit\n";

enum { OPTION_DEBUG_PATH = 256 };

struct symbolize_arguments {
    const char *trace;
    char source[32];    /* the trace as it was opened, whatever file has its name by now */
    const char *output; /* NULL: in place */
    bool is_quiet;
};

bool symbolize_is_command(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "symbolize") == 0;
}

static _Noreturn void command_fail(void)
{
    fputs("Try 'ttdrecord symbolize --help'.\n", stderr);
    exit(EXIT_RECORDER);
}

static void symbolize_parse_option(int option, const char *argument,
                                   struct symbolize_arguments *arguments)
{
    switch (option) {
    case 'o':
        arguments->output = optarg;
        break;
    case 'q':
        arguments->is_quiet = true;
        break;
    case OPTION_DEBUG_PATH:
        symbolize_set_debug_path(optarg);
        break;
    case 'h':
        fputs(help, stdout);
        exit(EXIT_SUCCESS);
    default:
        options_refuse(option, argument);
        command_fail();
    }
}

static void symbolize_parse(int argc, char **argv, struct symbolize_arguments *arguments)
{
    static const struct option long_options[] = {
        {"output", required_argument, NULL, 'o'},
        {"debug-path", required_argument, NULL, OPTION_DEBUG_PATH},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    *arguments = (struct symbolize_arguments){.trace = NULL};
    optind = 2;
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":o:qh", long_options, NULL)) != -1)
        symbolize_parse_option(option, argv[optind - 1], arguments);
    if (optind == argc - 1) {
        arguments->trace = argv[optind];
        return;
    }
    message(optind < argc ? "more than one trace given" : "no trace given");
    command_fail();
}

static bool symbolize_is_same_file(const char *path, const char *other_path)
{
    struct stat a, b;
    return stat(path, &a) == 0 && stat(other_path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Whether a process has the file open for writing, or that is not known. */
static bool symbolize_may_be_written(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool is_idle = file >= 0 && fcntl(file, F_SETLEASE, F_RDLCK) == 0;
    if (file >= 0)
        close(file);
    return !is_idle;
}

static int symbolize_read_failure(const char *path, const struct ttd_error *error)
{
    message_error(path, error);
    return EXIT_RECORDER;
}

/* Copies the trace with names into a file that is there. Returns an exit status. */
static int symbolize_write_names(struct names_to_add *adding,
                                 const struct symbolize_arguments *arguments, int descriptor)
{
    struct ttd_error error = {.offset = TTD_NOWHERE, .chunk = TTD_NOWHERE};
    struct ttd_input input;
    struct ttd_output output;
    struct ttd_verdict verdict;
    enum ttd_status status = ttd_output_descriptor(descriptor, 0, NULL, &output);
    if (status == TTD_OK)
        status = ttd_input_file(arguments->source, NULL, &input, &error);
    if (status != TTD_OK)
        return symbolize_read_failure(arguments->trace, &error);
    const struct ttd_amendment amendment = {names_add, adding};
    status = ttd_amend(&input, &output, NULL, &amendment, &verdict, &error);
    if (adding->reason != 0) {
        message("names cannot be looked up: %s", strerror(adding->reason));
        return EXIT_RECORDER;
    }
    if (status != TTD_OK) {
        error.status = status;
        message_error(arguments->trace, &error);
        return status == TTD_ERROR_IO ? EXIT_OUTPUT : EXIT_RECORDER;
    }
    if (!verdict.ok)
        message("warning: %s is damaged, or was not closed; the new trace lists its losses",
                arguments->trace);
    return EXIT_SUCCESS;
}

static int symbolize_make_file(struct names_to_add *adding,
                               const struct symbolize_arguments *arguments, const char *path)
{
    struct replacement replacement;
    int reason = replacement_begin(&replacement, path);
    if (reason == 0) {
        int status = symbolize_write_names(adding, arguments, replacement.descriptor);
        if (status != EXIT_SUCCESS) {
            replacement_discard(&replacement);
            return status;
        }
        reason = replacement_publish(&replacement, arguments->source);
    }
    if (reason != 0) {
        message("%s: %s", path, strerror(reason));
        return EXIT_OUTPUT;
    }
    if (!arguments->is_quiet)
        report_names(adding, path);
    return EXIT_SUCCESS;
}

static int symbolize_add_names(struct wanted *wanted, const struct symbolize_arguments *arguments)
{
    const char *path = arguments->output ? arguments->output : arguments->trace;
    struct names_to_add adding = {.wanted = wanted,
                                  .shows_progress = !arguments->is_quiet && isatty(STDERR_FILENO)};
    if (!wanted->is_closed && symbolize_is_same_file(path, arguments->source) &&
        symbolize_may_be_written(arguments->source)) {
        message("%s may still be being recorded, and is not replaced: use -o", arguments->trace);
        return EXIT_RECORDER;
    }
    int status = symbolize_make_file(&adding, arguments, path);
    names_free(&adding);
    return status;
}

/* Opens the trace until this process ends. It is read twice, and the names fit only this file. */
static enum ttd_status symbolize_open(struct symbolize_arguments *arguments,
                                      struct ttd_input *input, struct ttd_error *error)
{
    int trace = open(arguments->trace, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (trace < 0)
        return ttd_input_file(arguments->trace, NULL, input, error); /* tells why */
    snprintf(arguments->source, sizeof arguments->source, "/proc/self/fd/%d", trace);
    return ttd_input_file(arguments->source, NULL, input, error);
}

int symbolize_command(int argc, char **argv)
{
    struct symbolize_arguments arguments;
    struct ttd_error error = {.offset = TTD_NOWHERE, .chunk = TTD_NOWHERE};
    struct ttd_input input;
    struct wanted wanted;
    symbolize_parse(argc, argv, &arguments);
    enum ttd_status status = symbolize_open(&arguments, &input, &error);
    if (status != TTD_OK)
        return symbolize_read_failure(arguments.trace, &error);
    status = wanted_read(&wanted, &input, &error);
    int result = EXIT_RECORDER;
    if (status == TTD_OK)
        result = symbolize_add_names(&wanted, &arguments);
    else
        symbolize_read_failure(arguments.trace, &error);
    wanted_free(&wanted);
    return result;
}
