/* SPDX-License-Identifier: MIT */
/* The blocks that the C and C++ runtimes keep until the end, told apart from all others. */
#include "report/sections/sections.h"

void report_runtime_sums(struct text_output *output, const struct report_runtime *runtime)
{
    report_count(output, runtime->groups->blocks, "block");
    out_text(output, ", ");
    report_count(output, runtime->groups->bytes, "byte");
    out_text(output, " kept by the C/C++ runtime, not counted");
}

/* A program that was killed had no time to say which blocks its runtimes keep. Then these blocks
 * are among the others, and a reader must not take them for leaks. */
static void text_counted(struct text_output *output, const struct report_runtime *runtime)
{
    out_text(output, runtime->groups->blocks ? "It may keep more blocks, which are counted: "
                                             : "Blocks that the C/C++ runtime keeps are counted: ");
    out_text(output, runtime->was_killed ? "the program was killed\n"
                                         : "the trace does not list them all\n");
}

void report_runtime_text(struct report *report)
{
    const struct report_runtime *runtime = &report->runtime;
    struct text_output *output = report->output;
    if (!runtime->groups)
        return;
    if (runtime->groups->blocks) {
        report_runtime_sums(output, runtime);
        out_text(output, runtime->is_shown     ? "; they come last\n"
                         : runtime->has_option ? " (--show-runtime to list)\n"
                                               : "\n");
    }
    if (runtime->is_counted)
        text_counted(output, runtime);
}

void report_runtime_groups_text(struct report *report, size_t limit, bool shows_positions)
{
    if (report->runtime.is_shown)
        report_groups_text(report, report->runtime.groups, limit, shows_positions);
}

void report_runtime_json(const struct report_runtime *runtime, struct json *json)
{
    if (!runtime->groups)
        return;
    json_bool(json, "runtime_counted", runtime->is_counted);
    json_unsigned(json, "runtime_blocks", runtime->groups->blocks);
    json_unsigned(json, "runtime_bytes", runtime->groups->bytes);
}

void report_runtime_groups_json(struct report *report, struct json *json, size_t limit)
{
    if (report->runtime.is_shown)
        report_groups_json(report, json, "runtime_groups", report->runtime.groups, limit);
}

void report_runtime_csv(struct report *report, struct csv *csv, size_t limit)
{
    if (report->runtime.is_shown)
        report_kind_csv(report, csv, "runtime", report->runtime.groups, limit);
}
