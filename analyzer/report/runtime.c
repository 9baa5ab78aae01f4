/* SPDX-License-Identifier: MIT */
/* Reports the blocks that the C and C++ runtimes keep until the end, apart from all others. */
#include "report/format.h"

static void text_counted(struct out *output, const struct report_runtime *runtime)
{
    if (runtime->is_counted)
        out_text(output, runtime->was_killed
                             ? "The program was killed: what the C/C++ runtime keeps until "
                               "exit is counted as well\n"
                             : "What the C/C++ runtime keeps until exit is not, or not all, "
                               "known: the rest is counted as well\n");
}

void report_runtime_sums(struct out *output, const struct report_runtime *runtime)
{
    report_count(output, runtime->groups->blocks, "block");
    out_text(output, ", ");
    report_count(output, runtime->groups->bytes, "byte");
    out_text(output, " kept by the C/C++ runtime, not counted");
}

void report_runtime_text(struct report *to)
{
    const struct report_runtime *runtime = &to->runtime;
    if (!runtime->groups)
        return;
    text_counted(to->output, runtime);
    if (!runtime->groups->blocks)
        return;
    report_runtime_sums(to->output, runtime);
    out_text(to->output, runtime->is_shown ? "; they come last\n" : " (--show-runtime to list)\n");
}

void report_runtime_groups_text(struct report *to, size_t limit, bool shows_positions)
{
    if (to->runtime.is_shown)
        report_groups_text(to, to->runtime.groups, limit, shows_positions);
}

void report_runtime_json(const struct report_runtime *runtime, struct json *writer)
{
    if (!runtime->groups)
        return;
    json_bool(writer, "runtime_counted", runtime->is_counted);
    json_unsigned(writer, "runtime_blocks", runtime->groups->blocks);
    json_unsigned(writer, "runtime_bytes", runtime->groups->bytes);
}

void report_runtime_groups_json(struct report *to, struct json *writer, size_t limit)
{
    if (to->runtime.is_shown)
        report_groups_json(to, writer, "runtime_groups", to->runtime.groups, limit);
}

void report_runtime_csv(struct report *to, struct csv *writer, size_t limit)
{
    if (to->runtime.is_shown)
        report_kind_csv(to, writer, "runtime", to->runtime.groups, limit);
}
