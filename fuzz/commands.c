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

#include "base/bytes.h"
#include "capture.h"
#include "cli/command.h"
#include "cli/exit.h"
#include "cli/limits.h"
#include "layout.h"
#include "target.h"
#include "well_formed.h"

#define PATH_SIZE      256
#define ARGUMENTS_MAX  24
#define ERROR_EXITCODE 77

/* ---- Command lines ---- */

static const struct command *const commands[] = {
    &command_info,      &command_events,    &command_leaks,    &command_state,
    &command_history,   &command_peak,      &command_diff,     &command_hot,
    &command_temporary, &command_lifetimes, &command_timeline, &command_fragmentation,
    &command_moves,     &command_errors,    &command_verify,   &command_recover,
    &command_index};

static const char *const moments[] = {"start", "end",  "50%", "#3",    "+1us",
                                      "+0.5s", "FF:1", "1:0", "FF:4+", NULL};
static const char *const numbers[] = {"0", "1", "2", "7", "100", "99999", NULL};
static const char *const sizes[] = {"0", "1-", "8-100", "4K+1M", "0x10", NULL};
static const char *const addresses[] = {"0x1000", "0x1000-0x200000", "0+1T", "4096-", NULL};
static const char *const patterns[] = {"*", "main", "*a*", "lib*.so", "ma?n", NULL};
static const char *const actions[] = {"Alloc", "Free", "Alloc,Free", "ReAlloc,Destroy", NULL};
static const char *const threads[] = {"1", "2", "os:100", "os:0x7d1", NULL};
static const char *const heaps[] = {"1", "0x20", "main", NULL};
static const char *const stacks[] = {"1", "9", "main", "*", NULL};
static const char *const keys[] = {"stack", "function", "file", "module", "thread", "heap", NULL};
static const char *const shapes[] = {"top-down", "bottom-up", NULL};
static const char *const quadrants[] = {"aifi", "aifo", "aofi", "aofo", NULL};
static const char *const orders[] = {"calls", "bytes", "lifetime", NULL};
static const char *const plots[] = {"live", "allocations", "allocated", NULL};
static const char *const axes[] = {"time", "position", NULL};
static const char *const memories[] = {"1M", "64M", "1G", NULL};
static const char *const exitcodes[] = {"77", NULL};
static const char *const gaps[] = {"1", "16", "4K", NULL};
static const char *const flag[] = {NULL};

/* An option, its possible values, and the commands that have it: by name, by shared options, or
 * all.
 */
struct choice {
    const char *name;
    const char *const *values;
    const char *commands;
    unsigned shares;
};

#define ALL ~0u

static const struct choice choices[] = {
    {"--at", moments, " leaks state fragmentation ", 0},
    {"--from", moments, " events diff ", 0},
    {"--to", moments, " events diff ", 0},
    {"--action", actions, " events ", 0},
    {"--thread", threads, " events ", 0},
    {"--heap", heaps, " events ", 0},
    {"--address", addresses, " events state history ", 0},
    {"--size", sizes, " events history ", 0},
    {"--stack", stacks, " events ", 0},
    {"--stacks", flag, " events ", 0},
    {"--parameters", flag, " events ", 0},
    {"--limit", numbers, " events history fragmentation errors ", COMMAND_GROUPS},
    {"--gap", gaps, " fragmentation ", 0},
    {"--over", axes, " timeline ", 0},
    {"--points", numbers, " timeline ", 0},
    {"--plot", plots, " timeline ", 0},
    {"--changes", flag, " diff ", 0},
    {"--quadrant", quadrants, " diff ", 0},
    {"--remember", numbers, " errors ", 0},
    {"--error-exitcode", exitcodes, NULL, COMMAND_KNOWN_FINDINGS},
    {"--fail-on-growth", flag, NULL, COMMAND_KNOWN_FINDINGS},
    {"--chains", numbers, " moves ", 0},
    {"--sort", orders, " hot ", 0},
    {"--steps", numbers, " temporary ", 0},
    {"--group", flag, " info ", 0},
    {"--blocks", flag, " state ", 0},
    {"--show-runtime", flag, " leaks state peak diff ", 0},
    {"--by", keys, NULL, COMMAND_GROUPS},
    {"--tree", shapes, NULL, COMMAND_GROUPS},
    {"--depth", numbers, NULL, COMMAND_GROUPS},
    {"--skip", patterns, NULL, COMMAND_GROUPS},
    {"--include", patterns, " events ", COMMAND_FILTERS},
    {"--exclude", patterns, " events ", COMMAND_FILTERS},
    {"--full-stacks", flag, NULL, ALL},
    {"--no-index", flag, NULL, ALL},
    {"--no-pager", flag, NULL, ALL},
    {"--max-memory", memories, NULL, ALL},
};

struct line {
    const struct command *which;
    const char *format;
    int count;
    char *arguments[ARGUMENTS_MAX + 1];
    bool makes_index;
};

static char trace_path[PATH_SIZE];
static char index_path[PATH_SIZE];
static char output_path[PATH_SIZE];

static unsigned draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*state >> 33);
}

static void add(struct line *line, const char *argument)
{
    union {
        const char *text;
        char *argument;
    } as = {argument};
    line->arguments[line->count++] = as.argument;
}

static const char *draw_value(const char *const *values, uint64_t *state)
{
    size_t count = 0;
    while (values[count])
        count++;
    return values[draw(state) % count];
}

static bool has_option(const struct line *line, const struct choice *option)
{
    char name[32];
    snprintf(name, sizeof name, " %s ", line->which->name);
    return option->shares == ALL || option->shares & line->which->shares ||
           (option->commands && strstr(option->commands, name));
}

static void add_options(struct line *line, uint64_t *state)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        if (!has_option(line, &choices[i]) || draw(state) % 4 || line->count + 8 > ARGUMENTS_MAX)
            continue;
        add(line, choices[i].name);
        if (*choices[i].values)
            add(line, draw_value(choices[i].values, state));
    }
}

static struct line draw_line(uint64_t state)
{
    static const char *const formats[] = {"text", "json", "csv", "folded"};
    struct line result = {.which = commands[draw(&state) % (sizeof commands / sizeof *commands)]};
    add(&result, result.which->name);
    result.format = formats[draw(&state) % (result.which->shares & COMMAND_GROUPS ? 4 : 3)];
    add(&result, "--format");
    add(&result, result.format);
    bool makes_file = result.which == &command_recover;
    if (makes_file || draw(&state) % 16 == 0) {
        add(&result, "--output");
        add(&result, output_path);
    }
    result.makes_index = draw(&state) % 8 == 0;
    add_options(&result, &state);
    add(&result, trace_path);
    if (result.which == &command_diff && draw(&state) % 2)
        add(&result, trace_path);
    return result;
}

/* ---- Running one ---- */

static void require(bool holds, const char *what, const struct line *line)
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

static int run(const struct command *which, int count, char **arguments)
{
    capture_begin();
    int before = next_descriptor();
    int status = which->run(which, count, arguments);
    capture_end();
    limits_lift();
    target_require(next_descriptor() == before, "nothing is left open");
    return status;
}

static bool may_end(int status, const struct line *line)
{
    bool may_find = line->which == &command_verify || line->which->shares & COMMAND_KNOWN_FINDINGS;
    return (status >= STATUS_OK && status <= STATUS_INTERNAL &&
            (status != STATUS_FINDINGS || may_find)) ||
           (status == ERROR_EXITCODE && line->which->shares & COMMAND_KNOWN_FINDINGS);
}

static const char *judge(const char *format, const char *data, size_t size)
{
    const char *wrong = well_formed_text(data, size);
    if (wrong || !format)
        return wrong;
    if (size && data[size - 1] != '\n')
        return "output ends with the end of a line";
    if (strcmp(format, "text") == 0)
        return NULL;
    if (strcmp(format, "json") == 0)
        return well_formed_json(data, size);
    return strcmp(format, "csv") == 0 ? well_formed_csv(data, size)
                                      : well_formed_folded(data, size);
}

/* A format of NULL means any, possibly cut short. */
static void require_format(const char *format, const char *data, size_t size,
                           const struct line *line)
{
    const char *wrong = judge(format, data, size);
    if (!wrong)
        return;
    fwrite(data, 1, size < 2000 ? size : 2000, stderr);
    require(false, wrong, line);
}

static void check_output(int descriptor, const char *format, const struct line *line)
{
    size_t size;
    char *data = capture_take(descriptor, &size);
    require_format(format, data, size, line);
    free(data);
}

/* Checks the output file, which exists only if it is complete. */
static void check_file(const struct line *line)
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
    if (line->which != &command_recover && line->which != &command_index)
        require_format(line->format, data, size, line);
    free(data);
}

static void check(int status, const struct line *line)
{
    require(may_end(status, line), "a documented status", line);
    /* A command that fails half-way may have written part of its output. */
    bool has_failed = status >= STATUS_USAGE && status != ERROR_EXITCODE;
    check_output(STDOUT_FILENO, has_failed ? NULL : line->format, line);
    check_output(STDERR_FILENO, "text", line);
    check_file(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!*trace_path)
        prepare();
    bool has_header = size >= TTD_HEADER_SIZE;
    struct line chosen = draw_line(has_header ? ttd_get64(data + TTD_HEADER_TRACE_ID) : 0);
    write_trace(data, size);
    if (chosen.makes_index) {
        char name[] = "index";
        char *arguments[] = {name, trace_path, NULL};
        run(&command_index, 2, arguments);
        check_output(STDOUT_FILENO, "text", &chosen);
        check_output(STDERR_FILENO, "text", &chosen);
    }
    check(run(chosen.which, chosen.count, chosen.arguments), &chosen);
    remove_files();
    return 0;
}
