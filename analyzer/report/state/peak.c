/* SPDX-License-Identifier: MIT */
/* The report of `peak`. */
#include "report/state/reports.h"

void text_peak(struct report *report, const struct report_peak *data)
{
    const struct heap_groups *groups = &data->peak->groups;
    out_bold(report->output);
    out_text(report->output, "Peak at ");
    report_position_text(report, data->peak->peak.position);
    out_text(report->output, ": ");
    report_count(report->output, groups->bytes, "byte");
    out_text(report->output, " in ");
    report_count(report->output, groups->blocks, "block");
    report_from_sites(report, groups);
    out_plain(report->output);
    out_char(report->output, '\n');
    report_runtime_text(report);
    report_certainty_text(report);
    report_groups_text(report, groups, data->limit, false);
    report_runtime_groups_text(report, data->limit, false);
}

void json_peak(struct report *report, const struct report_peak *data)
{
    const struct heap_groups *groups = &data->peak->groups;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_position(&json, "position", data->peak->peak.position);
    report_certainty_json(report, &json);
    json_unsigned(&json, "live_bytes", groups->bytes);
    json_unsigned(&json, "live_blocks", groups->blocks);
    report_runtime_json(&report->runtime, &json);
    json_text(&json, "by", view_key_name(report->view->options.by));
    json_unsigned(&json, "total_groups", groups->count);
    report_groups_json(report, &json, "groups", groups, data->limit);
    report_runtime_groups_json(report, &json, data->limit);
    json_end_object(&json);
}

void csv_peak(struct report *report, const struct report_peak *data)
{
    report_groups_csv(report, &data->peak->groups, data->limit);
}
