/* SPDX-License-Identifier: MIT */
#include "report/formats.h"

void text_peak(struct report *to, const struct report_peak *data)
{
    const struct heap_groups *groups = &data->found->groups;
    out_bold(to->output);
    out_text(to->output, "Peak at ");
    report_position_text(to, data->found->peak.position);
    out_text(to->output, ": ");
    report_count(to->output, groups->bytes, "byte");
    out_text(to->output, " in ");
    report_count(to->output, groups->blocks, "block");
    out_text(to->output, ", from ");
    report_site_count(to, groups->count);
    out_plain(to->output);
    out_char(to->output, '\n');
    report_runtime_text(to);
    report_doubts_text(to);
    report_groups_text(to, groups, data->limit, false);
    report_runtime_groups_text(to, data->limit, false);
}

void json_peak(struct report *to, const struct report_peak *data)
{
    const struct heap_groups *groups = &data->found->groups;
    struct json writer;
    json_init(&writer, to->output, true);
    json_begin_object(&writer, NULL);
    json_position(&writer, "position", data->found->peak.position);
    report_doubts_json(to, &writer);
    json_unsigned(&writer, "live_bytes", groups->bytes);
    json_unsigned(&writer, "live_blocks", groups->blocks);
    report_runtime_json(&to->runtime, &writer);
    json_text(&writer, "by", view_key_name(to->view->options.by));
    json_unsigned(&writer, "total_groups", groups->count);
    report_groups_json(to, &writer, "groups", groups, data->limit);
    report_runtime_groups_json(to, &writer, data->limit);
    json_end_object(&writer);
}

void csv_peak(struct report *to, const struct report_peak *data)
{
    report_groups_csv(to, &data->found->groups, data->limit);
}
