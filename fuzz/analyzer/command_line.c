/* SPDX-License-Identifier: MIT */
#include "command_line.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "../target.h"

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
static const char *const keys[] = {"stack",  "function", "file",  "module",
                                   "thread", "heap",     "class", NULL};
static const char *const retainers[] = {"block", "site", "class", "root", NULL};
static const char *const shapes[] = {"top-down", "bottom-up", NULL};
static const char *const quadrants[] = {"aifi", "aifo", "aofi", "aofo", NULL};
static const char *const orders[] = {"calls", "bytes", "lifetime", NULL};
static const char *const measures[] = {"live", "peak", "allocated", "temporary", "x", NULL};
static const char *const plots[] = {"live", "allocations", "allocated", NULL};
static const char *const axes[] = {"time", "position", NULL};
static const char *const memories[] = {"1M", "64M", "1G", NULL};
static const char *const exitcodes[] = {"77", NULL};
static const char *const texts[] = {"a", "lib", "", NULL};
static const char *const bytes[] = {"01", "00 01", "xx", NULL};
static const char *const gaps[] = {"1", "16", "4K", NULL};
static const char *const guids[] = {"00000000-0000-0000-0000-000000000001",
                                    "0123456789abcdef0123456789abcdef", "x", NULL};
static const char *const kinds[] = {"all", "definite", "reachable,indirect", "unknown", NULL};
static const char *const files[] = {"/dev/null", "/nonexistent", "/", NULL};
static const char *const empty[] = {"/dev/null", NULL};
static const char *const seconds[] = {"1", NULL};
static const char *const flag[] = {NULL};

/* An option and its possible values: none for a flag; of one command before the common ones. */
struct choice {
    const char *name;
    const char *const *values;
    const struct command *command;
};

static const struct choice choices[] = {
    {"--at", moments, NULL},
    {"--from", moments, NULL},
    {"--to", moments, NULL},
    {"--action", actions, NULL},
    {"--thread", threads, NULL},
    {"--heap", heaps, NULL},
    {"--address", addresses, NULL},
    {"--size", sizes, NULL},
    {"--stack", stacks, NULL},
    {"--stacks", flag, NULL},
    {"--parameters", flag, NULL},
    {"--limit", numbers, NULL},
    {"--length", sizes, NULL},
    {"--raw", flag, NULL},
    {"--string", texts, NULL},
    {"--bytes", bytes, NULL},
    {"--pointer-to", numbers, NULL},
    {"--gap", gaps, NULL},
    {"--over", axes, NULL},
    {"--points", numbers, NULL},
    {"--plot", plots, NULL},
    {"--measure", measures, NULL},
    {"--changes", flag, NULL},
    {"--quadrant", quadrants, NULL},
    {"--remember", numbers, NULL},
    {"--error-exitcode", exitcodes, NULL},
    {"--fail-on-growth", flag, NULL},
    {"--chains", numbers, NULL},
    {"--sort", orders, NULL},
    {"--steps", numbers, NULL},
    {"--group", flag, NULL},
    {"--strings", flag, NULL},
    {"--blocks", flag, NULL},
    {"--heaps", flag, NULL},
    {"--brief", flag, NULL},
    {"--sites", numbers, NULL},
    {"--show-runtime", flag, NULL},
    {"--by", retainers, &command_retained},
    {"--by", keys, NULL},
    {"--tree", flag, &command_retained},
    {"--tree", shapes, NULL},
    {"--depth", numbers, NULL},
    {"--skip", patterns, NULL},
    {"--include", patterns, NULL},
    {"--exclude", patterns, NULL},
    {"--full-stacks", flag, NULL},
    {"--no-index", flag, NULL},
    {"--no-pager", flag, NULL},
    {"--max-memory", memories, NULL},
    {"--threads", numbers, NULL},
    {"--client", guids, NULL},
    {"--activity", numbers, NULL},
    {"--show", kinds, NULL},
    {"--errors-for", kinds, NULL},
    {"--baseline", files, NULL},
    {"--suppressions", files, NULL},
    {"--write-baseline", empty, NULL},
    {"--title", texts, NULL},
    {"--timeout", seconds, &command_query},
    {"--explain", flag, NULL},
    {"--interactive", flag, NULL},
    {"--exact", flag, NULL},
    {"--with-contents", flag, NULL},
};

static const char *const queries[] = {
    "SELECT * FROM events",
    "SELECT * FROM events WHERE number BETWEEN 3 AND 9 AND position > pos('1:0')",
    "SELECT * FROM events WHERE position < 'x' OR position <= pos('FFFF:0')",
    "SELECT number FROM events WHERE thread = 1 AND action = 'Free' AND base_address > 0",
    "SELECT * FROM events WHERE stack_id IN (1, NULL, 'x') AND api IN ('free') ORDER BY 2",
    "SELECT * FROM events WHERE time_start > pos('50%') AND time_end < pos('+1s') OR size < 1e99",
    "SELECT *, folded(stack_id) FROM stacks",
    "SELECT site(stack_id), stack_has(stack_id, 'm*') FROM frames WHERE stack_id IN (1, 3, 'x')",
    "SELECT folded(stack), sum(n) FROM (SELECT stack_id AS stack, 1 AS n FROM events) GROUP BY 1",
    "SELECT * FROM blocks",
    "SELECT * FROM history('0x1000') UNION ALL SELECT * FROM blocks",
    "SELECT * FROM live('50%')",
    "SELECT * FROM live_sites('50%') JOIN sites USING (stack_id)",
    "SELECT * FROM heaps, threads, modules",
    "SELECT class, sum(bytes) FROM leaks GROUP BY class",
    "SELECT * FROM leaks('50%')",
    "SELECT * FROM errors",
    "SELECT * FROM moves",
    "SELECT * FROM timeline(5)",
    "SELECT * FROM diff('20%', '80%')",
    "SELECT * FROM retained",
    "SELECT * FROM fragmentation",
    "SELECT holder, count(*) FROM refs GROUP BY 1",
    "SELECT (SELECT count(*) FROM losses), (SELECT count(*) FROM marks), count(*) FROM snapshots",
    "SELECT l.api FROM live JOIN events l ON l.number = live.number",
    "SELECT char(27), x'00ff', 1e999, -9223372036854775808, NULL",
    "SELECT trace, site(trace, stack_id), pos(trace, '50%') FROM live_sites",
    "DELETE FROM events",
    "",
    ".schema",
    NULL,
};

static const char *const export_names[] = {
    "folded", "pprof",    "speedscope", "svg",   "firefox", "callgrind", "massif", "heaptrack",
    "chrome", "graphviz", "csv",        "jsonl", "sqlite",  "none",      NULL};
static const char *const import_names[] = {"heaptrack", "windbg", "mtrace", "lttng",
                                           "xperf",     "none",   NULL};

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

/* An option of a command without values here would never be tried. */
static const struct choice *find_choice(const struct command *command, const char *name)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        if (strcmp(choices[i].name + 2, name) == 0 &&
            (!choices[i].command || choices[i].command == command))
            return &choices[i];
    }
    fprintf(stderr, "%s --%s\n", command->name, name);
    target_require(0, "values for each option");
    return NULL;
}

static void add_option(struct command_line *line, const char *name, uint64_t *state)
{
    const struct choice *choice = find_choice(line->command, name);
    if (draw(state) % 4 || line->count + 8 > COMMAND_LINE_ARGUMENTS_MAX)
        return;
    add(line, choice->name);
    if (*choice->values)
        add(line, draw_value(choice->values, state));
}

static void add_shared_options(struct command_line *line, const struct option *options,
                               uint64_t *state)
{
    for (; options->name; options++)
        add_option(line, options->name, state);
}

static void add_options(struct command_line *line, uint64_t *state)
{
    static const char *const common[] = {"full-stacks", "no-index", "no-pager", "max-memory",
                                         "threads"};
    unsigned shares = line->command->shares;
    const struct own_option *own = line->command->own.table;
    for (; own && own->name; own++)
        add_option(line, own->name, state);
    if (shares & COMMAND_KNOWN_FINDINGS)
        add_shared_options(line, known_findings_long_options, state);
    if (shares & COMMAND_GROUPS)
        add_shared_options(line, view_long_options, state);
    if (shares & COMMAND_FILTERS)
        add_shared_options(line, filter_long_options, state);
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        add_option(line, common[i], state);
}

static const struct command *draw_command(uint64_t *state)
{
    size_t count = 0;
    while (command_table[count].command)
        count++;
    return command_table[draw(state) % count].command;
}

struct command_line command_line_draw(uint64_t state, const char *trace_path,
                                      const char *output_path)
{
    static const char *const formats[] = {"text",  "json",  "csv",   "folded",
                                          "sarif", "junit", "github"};
    struct command_line line = {.command = draw_command(&state)};
    add(&line, line.command->name);
    if (line.command != &command_report && line.command != &command_export &&
        line.command != &command_digest) {
        unsigned shares = line.command->shares;
        line.format = formats[draw(&state) % (shares & COMMAND_KNOWN_FINDINGS ? 7
                                              : shares & COMMAND_GROUPS       ? 4
                                                                              : 3)];
        add(&line, "--format");
        add(&line, line.format);
    }
    if (line.command == &command_digest)
        line.format = "json";
    bool makes_file = line.command == &command_recover || line.command == &command_redact ||
                      line.command == &command_import || line.command == &command_slice ||
                      line.command == &command_merge || line.command == &command_repack;
    if (makes_file || draw(&state) % 16 == 0) {
        add(&line, "--output");
        add(&line, output_path);
    }
    line.makes_index = draw(&state) % 8 == 0;
    add_options(&line, &state);
    if (line.command == &command_query)
        add(&line, draw_value(queries, &state));
    if (line.command == &command_export) {
        const char *name = draw_value(export_names, &state);
        bool is_binary = strcmp(name, "pprof") == 0 || strcmp(name, "sqlite") == 0;
        line.format = is_binary ? "pprof" : strcmp(name, "csv") == 0 ? name : NULL;
        add(&line, name);
    }
    if (line.command == &command_import)
        add(&line, draw_value(import_names, &state));
    add(&line, trace_path);
    if (line.command->traces_max > 1 && draw(&state) % 2)
        add(&line, trace_path);
    return line;
}
