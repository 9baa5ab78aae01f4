/* SPDX-License-Identifier: MIT */
#include "report/formats.h"

static void text_notes(struct report *to, const struct report_leaks *data)
{
    const struct heap_leaks *leaks = data->leaks;
    if (leaks->outcome.counts.unknown_releases) {
        report_count(to->output, leaks->outcome.counts.unknown_releases, "release");
        out_text(to->output, data->has_early_blocks
                                 ? " of what was no live block, as blocks from before the "
                                   "recording: 'ttdanalyze errors' tells them apart\n"
                                 : " of what was no live block: 'ttdanalyze errors' says more\n");
    }
    if (leaks->outcome.in_flight) {
        report_count(to->output, leaks->outcome.in_flight, "reallocation");
        out_text(to->output, " in flight at this position, not counted\n");
    }
}

void text_leaks(struct report *to, const struct report_leaks *data)
{
    const struct heap_leaks *leaks = data->leaks;
    struct out *output = to->output;
    out_bold(output);
    if (data->is_at_end)
        out_text(output, leaks->groups.blocks ? "Never released: " : "No leaks");
    else
        out_text(output, "Live at ");
    if (!data->is_at_end) {
        report_position_text(to, leaks->outcome.position);
        out_text(output, ": ");
    }
    if (leaks->groups.blocks || !data->is_at_end) {
        report_count(output, leaks->groups.blocks, "block");
        out_text(output, ", ");
        report_count(output, leaks->groups.bytes, "byte");
        out_text(output, ", from ");
        report_site_count(to, leaks->groups.count);
    }
    out_plain(output);
    out_char(output, '\n');
    report_runtime_text(to);
    report_known_text(to, REPORT_BLOCKS);
    text_notes(to, data);
    report_doubts_text(to);
    report_groups_text(to, &leaks->groups, data->limit, true);
    report_runtime_groups_text(to, data->limit, true);
}

void json_leaks(struct report *to, const struct report_leaks *data)
{
    const struct heap_leaks *leaks = data->leaks;
    struct json writer;
    json_init(&writer, to->output, true);
    json_begin_object(&writer, NULL);
    json_position(&writer, "position", leaks->outcome.position);
    report_doubts_json(to, &writer);
    json_unsigned(&writer, "total_blocks", leaks->groups.blocks);
    json_unsigned(&writer, "total_bytes", leaks->groups.bytes);
    json_text(&writer, "by", view_key_name(to->view->options.by));
    json_unsigned(&writer, "total_groups", leaks->groups.count);
    report_runtime_json(&to->runtime, &writer);
    json_unsigned(&writer, "unknown_releases", leaks->outcome.counts.unknown_releases);
    json_unsigned(&writer, "overlaps", leaks->outcome.counts.overlaps);
    json_unsigned(&writer, "reallocs_in_flight", leaks->outcome.in_flight);
    report_known_json(to, &writer, REPORT_BLOCKS);
    report_groups_json(to, &writer, "groups", &leaks->groups, data->limit);
    report_runtime_groups_json(to, &writer, data->limit);
    json_end_object(&writer);
}

/* Stacks of which there are more blocks than in the baseline. */
static void csv_growths(struct report *to, struct csv *writer, size_t limit)
{
    const struct report_known *known = to->known;
    if (to->view->options.by != VIEW_BY_STACK)
        return;
    for (size_t i = 0; i < known->growth_count && i < limit; i++) {
        const struct report_growth *growth = &known->growths[i];
        csv_text(writer, "grown");
        csv_unsigned(writer, growth->now);
        for (int empty = 0; empty < 3; empty++)
            csv_empty(writer);
        report_site_csv(to, writer, (struct heap_key){growth->stack, 0});
        csv_end_row(writer);
    }
}

void csv_leaks(struct report *to, const struct report_leaks *data)
{
    struct csv writer;
    report_csv_begin(to, &writer);
    report_site_header(to, &writer, "kind,blocks,bytes,first_position,last_position");
    report_kind_csv(to, &writer, "leak", &data->leaks->groups, data->limit);
    report_runtime_csv(to, &writer, data->limit);
    csv_growths(to, &writer, data->limit);
}
