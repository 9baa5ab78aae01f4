/* SPDX-License-Identifier: MIT */
/* The blocks that the C and C++ runtimes keep until the end, told apart from all others. */
#include "report/sections/sections.h"

/* A program that was killed had no time to say which blocks its runtimes keep. Then these blocks
 * are among the others, and a reader must not take them for leaks. */
static void text_counted(struct text_output *output, const struct report_runtime *runtime)
{
    if (runtime->is_counted)
        out_text(output, runtime->was_killed
                             ? "The program was killed: what the C/C++ runtime keeps until "
                               "exit is counted as well\n"
                             : "What the C/C++ runtime keeps until exit is not, or not all, "
                               "known: the rest is counted as well\n");
}

void report_runtime_sums(struct text_output *output, const struct report_runtime *runtime)
{
    report_count(output, runtime->groups->blocks, "block");
    out_text(output, ", ");
    report_count(output, runtime->groups->bytes, "byte");
    out_text(output, " kept by the C/C++ runtime, not counted");
}

void report_runtime_text(struct report *report)
{
    const struct report_runtime *runtime = &report->runtime;
    if (!runtime->groups)
        return;
    text_counted(report->output, runtime);
    if (!runtime->groups->blocks)
        return;
    report_runtime_sums(report->output, runtime);
    out_text(report->output,
             runtime->is_shown ? "; they come last\n" : " (--show-runtime to list)\n");
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
