/* SPDX-License-Identifier: MIT */
/* Live blocks that may have been released in a gap of recording. */
#include "report/sections/sections.h"

void report_unknown_text(struct report *report, const struct heap_groups *unknown)
{
    struct text_output *output = report->output;
    if (!unknown->blocks)
        return;
    report_sums_text(output, unknown);
    out_text(output, " of these are unknown: perhaps released while recording was off\n");
}

void report_unknown_json(struct json *json, const struct heap_groups *unknown)
{
    json_unsigned(json, "unknown_blocks", unknown->blocks);
    json_unsigned(json, "unknown_bytes", unknown->bytes);
}
