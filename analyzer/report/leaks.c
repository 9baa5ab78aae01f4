/* SPDX-License-Identifier: MIT */
/* The report of `leaks`. */
#include "report/formats.h"

/* Writes counts of calls that make the list of leaks less than exact. */
static void text_notes(struct report *report, const struct report_leaks *data)
{
    const struct heap_leaks *leaks = data->leaks;
    if (leaks->outcome.counts.unknown_releases) {
        report_count(report->output, leaks->outcome.counts.unknown_releases, "release");
        out_text(report->output,
                 data->has_early_blocks
                     ? " of an address without a live block, as blocks from before the "
                       "recording: 'ttdanalyze errors' tells them apart\n"
                     : " of an address without a live block: 'ttdanalyze errors' says more\n");
    }
    if (leaks->outcome.in_flight) {
        report_count(report->output, leaks->outcome.in_flight, "reallocation");
        out_text(report->output, " in flight at this position, not counted\n");
    }
}

void text_leaks(struct report *report, const struct report_leaks *data)
{
    const struct heap_leaks *leaks = data->leaks;
    struct out *output = report->output;
    out_bold(output);
    if (data->is_at_end)
        out_text(output, leaks->groups.blocks ? "Never released: " : "No leaks");
    else
        out_text(output, "Live at ");
    if (!data->is_at_end) {
        report_position_text(report, leaks->outcome.position);
        out_text(output, ": ");
    }
    if (leaks->groups.blocks || !data->is_at_end) {
        report_count(output, leaks->groups.blocks, "block");
        out_text(output, ", ");
        report_count(output, leaks->groups.bytes, "byte");
        out_text(output, ", from ");
        report_site_count(report, leaks->groups.count);
    }
    out_plain(output);
    out_char(output, '\n');
    report_runtime_text(report);
    report_known_findings_text(report, REPORT_BLOCKS);
    text_notes(report, data);
    report_certainty_text(report);
    report_groups_text(report, &leaks->groups, data->limit, true);
    report_runtime_groups_text(report, data->limit, true);
}

void json_leaks(struct report *report, const struct report_leaks *data)
{
    const struct heap_leaks *leaks = data->leaks;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_position(&json, "position", leaks->outcome.position);
    report_certainty_json(report, &json);
    json_unsigned(&json, "total_blocks", leaks->groups.blocks);
    json_unsigned(&json, "total_bytes", leaks->groups.bytes);
    json_text(&json, "by", view_key_name(report->view->options.by));
    json_unsigned(&json, "total_groups", leaks->groups.count);
    report_runtime_json(&report->runtime, &json);
    json_unsigned(&json, "unknown_releases", leaks->outcome.counts.unknown_releases);
    json_unsigned(&json, "overlaps", leaks->outcome.counts.overlaps);
    json_unsigned(&json, "reallocs_in_flight", leaks->outcome.in_flight);
    report_known_findings_json(report, &json, REPORT_BLOCKS);
    report_groups_json(report, &json, "groups", &leaks->groups, data->limit);
    report_runtime_groups_json(report, &json, data->limit);
    json_end_object(&json);
}

/* Writes the stacks that have more blocks than in the baseline. By other keys than the stack, a
 * growth has no group to belong to. */
static void csv_growths(struct report *report, struct csv *csv, size_t limit)
{
    const struct report_known_findings *known = report->known_findings;
    if (report->view->options.by != VIEW_BY_STACK)
        return;
    for (size_t i = 0; i < known->growth_count && i < limit; i++) {
        const struct report_growth *growth = &known->growths[i];
        csv_text(csv, "grown");
        csv_unsigned(csv, growth->now);
        for (int empty = 0; empty < 3; empty++)
            csv_empty(csv);
        report_site_csv(report, csv, (struct heap_key){growth->stack, 0});
        csv_end_row(csv);
    }
}

void csv_leaks(struct report *report, const struct report_leaks *data)
{
    struct csv csv;
    report_csv_begin(report, &csv);
    report_site_header(report, &csv, "kind,blocks,bytes,first_position,last_position");
    report_kind_csv(report, &csv, "leak", &data->leaks->groups, data->limit);
    report_runtime_csv(report, &csv, data->limit);
    csv_growths(report, &csv, data->limit);
}
