/* SPDX-License-Identifier: MIT */
#include "command_line.h"

#include <stdio.h>
#include <string.h>

static const struct command *const commands[] = {
    &command_info,      &command_events,    &command_leaks,    &command_state,
    &command_history,   &command_peak,      &command_diff,     &command_hot,
    &command_temporary, &command_lifetimes, &command_timeline, &command_fragmentation,
    &command_moves,     &command_errors,    &command_verify,   &command_recover,
    &command_redact,    &command_index,     &command_memory,   &command_snapshots,
    &command_find,      &command_referrers, &command_retained, &command_roots};

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
static const char *const retainers[] = {"block", "site", "class", "root", NULL};
static const char *const shapes[] = {"top-down", "bottom-up", NULL};
static const char *const quadrants[] = {"aifi", "aifo", "aofi", "aofo", NULL};
static const char *const orders[] = {"calls", "bytes", "lifetime", NULL};
static const char *const plots[] = {"live", "allocations", "allocated", NULL};
static const char *const axes[] = {"time", "position", NULL};
static const char *const memories[] = {"1M", "64M", "1G", NULL};
static const char *const exitcodes[] = {"77", NULL};
static const char *const texts[] = {"a", "lib", "", NULL};
static const char *const bytes[] = {"01", "00 01", "xx", NULL};
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
    {"--at", moments, " leaks state fragmentation memory find referrers retained roots ", 0},
    {"--from", moments, " events diff ", 0},
    {"--to", moments, " events diff ", 0},
    {"--action", actions, " events ", 0},
    {"--thread", threads, " events ", 0},
    {"--heap", heaps, " events ", 0},
    {"--address", addresses, " events state history memory find referrers ", 0},
    {"--size", sizes, " events history ", 0},
    {"--stack", stacks, " events ", 0},
    {"--stacks", flag, " events ", 0},
    {"--parameters", flag, " events ", 0},
    {"--limit", numbers, " events history fragmentation errors find referrers retained roots ",
     COMMAND_GROUPS},
    {"--length", sizes, " memory ", 0},
    {"--raw", flag, " memory ", 0},
    {"--string", texts, " find ", 0},
    {"--bytes", bytes, " find ", 0},
    {"--pointer-to", numbers, " find ", 0},
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
    {"--strings", flag, " redact ", 0},
    {"--blocks", flag, " state ", 0},
    {"--heaps", flag, " state ", 0},
    {"--show-runtime", flag, " leaks state peak diff ", 0},
    {"--by", keys, NULL, COMMAND_GROUPS},
    {"--by", retainers, " retained ", 0},
    {"--tree", shapes, NULL, COMMAND_GROUPS},
    {"--tree", flag, " retained ", 0},
    {"--depth", numbers, " referrers retained ", COMMAND_GROUPS},
    {"--skip", patterns, NULL, COMMAND_GROUPS},
    {"--include", patterns, " events ", COMMAND_FILTERS},
    {"--exclude", patterns, " events ", COMMAND_FILTERS},
    {"--full-stacks", flag, NULL, ALL},
    {"--no-index", flag, NULL, ALL},
    {"--no-pager", flag, NULL, ALL},
    {"--max-memory", memories, NULL, ALL},
};

static unsigned draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*state >> 33);
}

static void add(struct command_line *line, const char *argument)
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

static bool has_option(const struct command_line *line, const struct choice *option)
{
    char name[32];
    snprintf(name, sizeof name, " %s ", line->command->name);
    return option->shares == ALL || option->shares & line->command->shares ||
           (option->commands && strstr(option->commands, name));
}

static void add_options(struct command_line *line, uint64_t *state)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        if (!has_option(line, &choices[i]) || draw(state) % 4 ||
            line->count + 8 > COMMAND_LINE_ARGUMENTS_MAX)
            continue;
        add(line, choices[i].name);
        if (*choices[i].values)
            add(line, draw_value(choices[i].values, state));
    }
}

struct command_line command_line_draw(uint64_t state, const char *trace_path,
                                      const char *output_path)
{
    static const char *const formats[] = {"text", "json", "csv", "folded"};
    struct command_line line = {.command =
                                    commands[draw(&state) % (sizeof commands / sizeof *commands)]};
    add(&line, line.command->name);
    line.format = formats[draw(&state) % (line.command->shares & COMMAND_GROUPS ? 4 : 3)];
    add(&line, "--format");
    add(&line, line.format);
    bool makes_file = line.command == &command_recover || line.command == &command_redact;
    if (makes_file || draw(&state) % 16 == 0) {
        add(&line, "--output");
        add(&line, output_path);
    }
    line.makes_index = draw(&state) % 8 == 0;
    add_options(&line, &state);
    add(&line, trace_path);
    if (line.command == &command_diff && draw(&state) % 2)
        add(&line, trace_path);
    return line;
}
