/* SPDX-License-Identifier: MIT */
/* Groups of blocks, as several commands write them. */
#include "report/sections/sections.h"

void report_group_positions_text(struct report *report, const struct heap_group *group)
{
    struct text_output *output = report->output;
    out_text(output, group->blocks == 1 ? ", allocated at " : ", allocated from ");
    report_position_text(report, group->first);
    if (group->blocks == 1)
        return;
    out_text(output, " to ");
    report_position_text(report, group->last);
}

void report_groups_text(struct report *report, const struct heap_groups *groups, size_t limit,
                        bool shows_positions)
{
    struct text_output *output = report->output;
    size_t count = report_shown(groups->count, limit);
    for (size_t i = 0; i < count; i++) {
        const struct heap_group *group = &groups->items[i];
        out_char(output, '\n');
        out_bold(output);
        report_count(output, group->bytes, "byte");
        out_text(output, " in ");
        report_count(output, group->blocks, "block");
        out_plain(output);
        if (shows_positions)
            report_group_positions_text(report, group);
        out_char(output, '\n');
        report_site_text(report, group->key);
    }
    report_site_more(report, groups->count - count);
}

void report_nested_text(struct text_output *output, const char *indent, struct report_nested nested)
{
    if (!nested.blocks)
        return;
    out_text(output, indent);
    out_text(output, "Of these, in heaps of the program and so within other blocks: ");
    report_count(output, nested.blocks, "block");
    out_text(output, ", ");
    report_count(output, nested.bytes, "byte");
    out_char(output, '\n');
}

void report_group_json(struct report *report, struct json *json, const struct heap_group *group)
{
    json_unsigned(json, "blocks", group->blocks);
    json_unsigned(json, "bytes", group->bytes);
    json_position(json, "first_position", group->first);
    json_position(json, "last_position", group->last);
    report_site_json(report, json, group->key);
}

void report_groups_json(struct report *report, struct json *json, const char *key,
                        const struct heap_groups *groups, size_t limit)
{
    json_begin_array(json, key);
    for (size_t i = 0; i < groups->count && i < limit; i++) {
        json_begin_object(json, NULL);
        report_group_json(report, json, &groups->items[i]);
        json_end_object(json);
    }
    json_end_array(json);
}

void report_group_csv(struct report *report, struct csv *csv, const struct heap_group *group)
{
    csv_unsigned(csv, group->blocks);
    csv_unsigned(csv, group->bytes);
    csv_position(csv, group->first);
    csv_position(csv, group->last);
    report_site_csv(report, csv, group->key);
}

void report_kind_csv(struct report *report, struct csv *csv, const char *kind,
                     const struct heap_groups *groups, size_t limit)
{
    size_t count = report_listed(report, groups->count, limit);
    for (size_t i = 0; i < count; i++) {
        if (kind)
            csv_text(csv, kind);
        report_group_csv(report, csv, &groups->items[i]);
        csv_end_row(csv);
    }
}

/* A file without blocks of the runtimes has no column for the kind: most readers want only the
 * groups, and a column with one value would say nothing. */
void report_groups_csv(struct report *report, const struct heap_groups *groups, size_t limit)
{
    struct csv csv;
    bool has_kinds = report->runtime.is_shown;
    report_csv_begin(report, &csv);
    report_site_header(report, &csv,
                       has_kinds ? "kind,blocks,bytes,first_position,last_position"
                                 : "blocks,bytes,first_position,last_position");
    report_kind_csv(report, &csv, has_kinds ? "live" : NULL, groups, limit);
    report_runtime_csv(report, &csv, limit);
}
