/* SPDX-License-Identifier: MIT */
/* When blocks were lost, as snapshots and releases tell. */
#include "report/sections/sections.h"

/* The release of the only block that held a lost block is the likely error: the program should have
 * released what it held before. */
static void text_releases(struct report *report, const struct heap_lost_range *lost,
                          uint64_t blocks)
{
    struct text_output *output = report->output;
    bool is_one = lost->released == 1;
    out_text(output, is_one ? "; the only block that held " : "; the only blocks that held ");
    if (blocks == 1) {
        out_text(output, "it");
    } else {
        out_grouped(output, lost->released);
        out_text(output, " of them");
    }
    out_text(output, is_one ? " was released at " : " were released from ");
    report_position_text(report, lost->first_release);
    if (is_one)
        return;
    out_text(output, " to ");
    report_position_text(report, lost->last_release);
}

void report_lost_text(struct report *report, const struct heap_lost_range *lost, uint64_t blocks)
{
    struct text_output *output = report->output;
    out_text(output, "lost after ");
    report_position_text(report, lost->after);
    out_text(output, ", at ");
    report_position_text(report, lost->before);
    out_text(output, " at the latest");
    if (lost->released)
        text_releases(report, lost, blocks);
    out_char(output, '\n');
}

void report_lost_json(struct json *json, const struct heap_lost_range *lost)
{
    if (!lost)
        return;
    json_position(json, "lost_after", lost->after);
    json_position(json, "lost_before", lost->before);
    json_unsigned(json, "holders_released", lost->released);
    if (!lost->released)
        return;
    json_position(json, "first_release", lost->first_release);
    json_position(json, "last_release", lost->last_release);
}

/* The columns exist in each row, also where it is not known when blocks were lost. */
void report_lost_csv(struct csv *csv, const struct heap_lost_range *lost)
{
    bool is_released = lost && lost->released;
    csv_position(csv, lost ? lost->after : ttd_position_invalid());
    csv_position(csv, lost ? lost->before : ttd_position_invalid());
    csv_position(csv, is_released ? lost->first_release : ttd_position_invalid());
    csv_position(csv, is_released ? lost->last_release : ttd_position_invalid());
}
