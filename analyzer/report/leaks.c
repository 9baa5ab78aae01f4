/* SPDX-License-Identifier: MIT */
#include "report/formats.h"

static size_t shown(const heap_groups *groups, size_t limit)
{
    return groups->count < limit ? groups->count : limit;
}

static void text_group(report *to, const heap_group *group)
{
    out *output = to->output;
    out_bold(output);
    report_count(output, group->bytes, "byte");
    out_text(output, " in ");
    report_count(output, group->blocks, "block");
    out_plain(output);
    if (group->blocks == 1) {
        out_text(output, ", allocated at ");
        out_position(output, group->first);
    } else {
        out_text(output, ", allocated from ");
        out_position(output, group->first);
        out_text(output, " to ");
        out_position(output, group->last);
    }
    out_char(output, '\n');
    report_stack_text(to, group->stack);
    out_char(output, '\n');
}

static void text_groups(report *to, const heap_groups *groups, size_t limit)
{
    size_t count = shown(groups, limit);
    for (size_t i = 0; i < count; i++)
        text_group(to, &groups->items[i]);
    if (count < groups->count) {
        out_text(to->output, "… and ");
        report_count(to->output, groups->count - count, "stack");
        out_text(to->output, " more (--limit 0 for all)\n\n");
    }
}

static void text_runtime(report *to, const report_leaks *data)
{
    const heap_groups *runtime = &data->leaks->runtime;
    if (!runtime->blocks)
        return;
    report_count(to->output, runtime->blocks, "block");
    out_text(to->output, ", ");
    report_count(to->output, runtime->bytes, "byte");
    out_text(to->output, " kept by the C/C++ runtime, not counted");
    if (!data->shows_runtime) {
        out_text(to->output, " (--show-runtime to list)\n");
        return;
    }
    out_text(to->output, ":\n\n");
    text_groups(to, runtime, data->limit);
}

static void text_notes(report *to, const heap_leaks *leaks)
{
    if (leaks->counts.unknown_releases) {
        report_count(to->output, leaks->counts.unknown_releases, "release");
        out_text(to->output, " of blocks that the trace does not know\n");
    }
    if (leaks->in_flight) {
        report_count(to->output, leaks->in_flight, "reallocation");
        out_text(to->output, " in flight at this position, not counted\n");
    }
}

void text_leaks(report *to, const report_leaks *data)
{
    const heap_leaks *leaks = data->leaks;
    out *output = to->output;
    text_groups(to, &leaks->groups, data->limit);
    out_bold(output);
    if (data->is_at_end)
        out_text(output, leaks->groups.blocks ? "Never released: " : "No leaks");
    else
        out_text(output, "Live at ");
    if (!data->is_at_end) {
        out_position(output, leaks->position);
        out_text(output, ": ");
    }
    if (leaks->groups.blocks || !data->is_at_end) {
        report_count(output, leaks->groups.blocks, "block");
        out_text(output, ", ");
        report_count(output, leaks->groups.bytes, "byte");
        out_text(output, ", from ");
        report_count(output, leaks->groups.count, "stack");
    }
    out_plain(output);
    out_char(output, '\n');
    text_runtime(to, data);
    text_notes(to, leaks);
    report_doubts_text(to);
}

static void json_groups(report *to, json *writer, const char *key, const heap_groups *groups,
                        size_t limit)
{
    json_begin_array(writer, key);
    for (size_t i = 0; i < shown(groups, limit); i++) {
        const heap_group *group = &groups->items[i];
        json_begin_object(writer, NULL);
        json_unsigned(writer, "blocks", group->blocks);
        json_unsigned(writer, "bytes", group->bytes);
        json_position(writer, "first_position", group->first);
        json_position(writer, "last_position", group->last);
        json_unsigned(writer, "stack_id", group->stack);
        report_stack_json(to, writer, "stack", group->stack);
        json_end_object(writer);
    }
    json_end_array(writer);
}

void json_leaks(report *to, const report_leaks *data)
{
    const heap_leaks *leaks = data->leaks;
    json writer;
    json_init(&writer, to->output, true);
    json_begin_object(&writer, NULL);
    json_position(&writer, "position", leaks->position);
    report_doubts_json(to, &writer);
    json_unsigned(&writer, "total_blocks", leaks->groups.blocks);
    json_unsigned(&writer, "total_bytes", leaks->groups.bytes);
    json_unsigned(&writer, "total_groups", leaks->groups.count);
    json_unsigned(&writer, "runtime_blocks", leaks->runtime.blocks);
    json_unsigned(&writer, "runtime_bytes", leaks->runtime.bytes);
    json_unsigned(&writer, "unknown_releases", leaks->counts.unknown_releases);
    json_unsigned(&writer, "overlaps", leaks->counts.overlaps);
    json_unsigned(&writer, "reallocs_in_flight", leaks->in_flight);
    json_groups(to, &writer, "groups", &leaks->groups, data->limit);
    if (data->shows_runtime)
        json_groups(to, &writer, "runtime_groups", &leaks->runtime, data->limit);
    json_end_object(&writer);
}

static void csv_groups(report *to, csv *writer, const char *kind, const heap_groups *groups,
                       size_t limit)
{
    for (size_t i = 0; i < shown(groups, limit); i++) {
        const heap_group *group = &groups->items[i];
        csv_text(writer, kind);
        csv_unsigned(writer, group->blocks);
        csv_unsigned(writer, group->bytes);
        csv_position(writer, group->first);
        csv_position(writer, group->last);
        csv_unsigned(writer, group->stack);
        report_stack_csv(to, writer, group->stack);
        csv_end_row(writer);
    }
}

void csv_leaks(report *to, const report_leaks *data)
{
    csv writer;
    csv_init(&writer, to->output);
    csv_header(&writer, "kind,blocks,bytes,first_position,last_position,stack_id,stack");
    csv_groups(to, &writer, "leak", &data->leaks->groups, data->limit);
    if (data->shows_runtime)
        csv_groups(to, &writer, "runtime", &data->leaks->runtime, data->limit);
}
