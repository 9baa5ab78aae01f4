/* SPDX-License-Identifier: MIT */
/* The report of `leaks`. */
#include "report/reachability/leaks_details.h"

/* Writes counts of calls that make the list of leaks less than exact. */
static void text_leak_notes(struct report *report, const struct report_leaks *data)
{
    const struct heap_leaks *leaks = data->leaks;
    if (data->is_attached)
        out_text(report->output, "The process had run before: of its older blocks, those that the "
                                 "recorder\nfound are known; 'ttdanalyze info' says how many\n");
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

/* Writes how many blocks were not released, where it is unknown which of them are lost. */
static void text_live(struct report *report, const struct report_leaks *data)
{
    const struct heap_groups *groups = &data->leaks->kinds[HEAP_NOT_SEEN];
    struct text_output *output = report->output;
    if (data->is_at_end)
        out_text(output, groups->blocks ? "Never released: " : "No leaks");
    else
        out_text(output, "Live at ");
    if (!data->is_at_end) {
        report_position_text(report, data->leaks->outcome.position);
        out_text(output, ": ");
    }
    if (groups->blocks || !data->is_at_end) {
        report_sums_text(output, groups);
        report_from_sites(report, groups);
    }
    out_plain(output);
    out_char(output, '\n');
    if (!groups->blocks)
        return;
    out_text(output, "What is lost and what is still reachable is not known.\n");
    report_no_snapshot_text(report);
}

static void text_kind(struct report *report, const struct heap_groups *groups, const char *label)
{
    if (!groups->blocks)
        return;
    out_text(report->output, label);
    report_sums_text(report->output, groups);
    out_char(report->output, '\n');
}

/* Writes the verdicts of the snapshot: lost blocks and others in one line each. */
static void text_classes(struct report *report, const struct report_leaks *data)
{
    const struct heap_groups *groups = data->leaks->kinds;
    struct text_output *output = report->output;
    const struct heap_groups *lost = &groups[HEAP_DEFINITELY_LOST];
    out_text(output, lost->blocks ? "Definitely lost: " : "Nothing is definitely lost");
    if (lost->blocks) {
        report_sums_text(output, lost);
        report_from_sites(report, lost);
    }
    out_plain(output);
    out_char(output, '\n');
    text_kind(report, &groups[HEAP_INDIRECTLY_LOST],
              "Indirectly lost, held by these (--show indirect to list): ");
    text_kind(report, &groups[HEAP_POSSIBLY_LOST], "Possibly lost, held by doubtful pointers: ");
    text_kind(report, &groups[HEAP_HELD_BY_STALE],
              "Held only by possibly stale words (--show stale to list): ");
    text_kind(report, &groups[HEAP_HELD_WEAKLY],
              "Held only by an ending stack or a register (--show stack): ");
    text_kind(report, &groups[HEAP_REACHABLE], "Still reachable (--show reachable to list): ");
    text_kind(report, &groups[HEAP_NOT_SEEN],
              "Allocated after the snapshot, not known (--show all to list): ");
    out_text(output, "By ");
    report_snapshot_why_text(report, &data->leaks->snapshot);
    out_char(output, '\n');
}

/* Counts the blocks of all kinds that lie in others, as far as filters have left them. */
static struct report_nested leaks_count_nested(const struct heap_leaks *leaks)
{
    struct report_nested nested = {0, 0};
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        heap_groups_count_nested(&leaks->kinds[kind], &nested.blocks, &nested.bytes);
    return nested;
}

/* Returns the call that created the heap of a group, if the groups are by heap. */
static struct heap_call creation(const struct report *report, const struct report_leaks *data,
                                 const struct heap_group *group)
{
    const struct view_label *label = view_find_label(report->view, group->key);
    const struct heap_tree_node *heap = heap_tree_get(data->heaps, (ttd_id)label->number);
    return heap ? heap->created : heap_call_none();
}

static void text_groups(struct report *report, const struct report_leaks *data)
{
    struct text_output *output = report->output;
    size_t listed = leaks_listed(data);
    size_t count = report_shown(listed, data->limit);
    for (size_t i = 0; i < count; i++) {
        const struct heap_group *group = &data->groups->items[i];
        out_char(output, '\n');
        out_bold(output);
        report_count(output, group->bytes, "byte");
        out_text(output, " in ");
        report_count(output, group->blocks, "block");
        out_plain(output);
        if (data->leaks->snapshot.number || group->kind == HEAP_UNKNOWN)
            out_format(output, " %s", report_leak_kinds[group->kind].text);
        if (group->total_blocks > group->blocks) {
            out_text(output, ", ");
            report_count(output, group->total_bytes, "byte");
            out_text(output, " in ");
            report_count(output, group->total_blocks, "block");
            out_text(output, " with what hangs below");
        }
        report_group_positions_text(report, group);
        out_char(output, '\n');
        leaks_way_text(report, group);
        if (group->lost) {
            out_text(report->output, "    ");
            report_lost_text(report, group->lost, group->blocks);
        }
        report_site_text(report, group->key);
        leaks_details_text(report, data, group, i + 1);
        if (data->heaps) {
            struct heap_call created = creation(report, data, group);
            report_call_text(report, "created", &created);
        }
    }
    report_site_more(report, listed - count);
    leaks_possible_text(report, data);
}

static struct report_amount leaks_amount_at(const void *groups, size_t index)
{
    const struct heap_group *group = &((const struct heap_groups *)groups)->items[index];
    return (struct report_amount){group->key, group->blocks, group->bytes};
}

static struct report_amounts leaks_amounts(const struct report_leaks *data)
{
    return (struct report_amounts){data->groups->count, leaks_amount_at, data->groups};
}

void text_leaks(struct report *report, const struct report_leaks *data)
{
    out_bold(report->output);
    if (data->leaks->snapshot.number)
        text_classes(report, data);
    else
        text_live(report, data);
    text_kind(report, &data->leaks->kinds[HEAP_UNKNOWN],
              "Unknown, perhaps released while recording was off (--show unknown to list): ");
    report_nested_text(report->output, "", leaks_count_nested(data->leaks));
    report_runtime_text(report);
    report_known_findings_text(report, REPORT_BLOCKS);
    text_leak_notes(report, data);
    report_certainty_text(report);
    const struct report_amounts amounts = leaks_amounts(data);
    report_wrapper_text(report, &amounts);
    text_groups(report, data);
    report_runtime_groups_text(report, data->limit, true);
}

static void json_groups(struct report *report, struct json *json, const struct report_leaks *data)
{
    bool has_classes = data->leaks->snapshot.number;
    json_begin_array(json, "groups");
    for (size_t i = 0; i < data->groups->count && i < data->limit; i++) {
        const struct heap_group *group = &data->groups->items[i];
        json_begin_object(json, NULL);
        if (has_classes || group->kind == HEAP_UNKNOWN)
            json_text(json, "class", report_leak_kinds[group->kind].name);
        if (report_leak_kinds[group->kind].held_by)
            json_text(json, "held_by", report_leak_kinds[group->kind].held_by);
        leaks_way_json(json, group);
        if (has_classes && group->kind == HEAP_DEFINITELY_LOST) {
            json_unsigned(json, "total_blocks", group->total_blocks);
            json_unsigned(json, "total_bytes", group->total_bytes);
            report_lost_json(json, group->lost);
        }
        if (data->heaps) {
            struct heap_call created = creation(report, data, group);
            report_call_json(report, json, "created", &created);
        }
        leaks_details_json(report, json, data, group, i + 1);
        report_group_json(report, json, group);
        json_end_object(json);
    }
    json_end_array(json);
}

/* Bytes of all kinds; the sum saturates. */
static uint64_t leaks_bytes(const struct heap_leaks *leaks)
{
    uint64_t bytes = 0;
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        bytes = heap_add(bytes, leaks->kinds[kind].bytes);
    return bytes;
}

void json_leaks(struct report *report, const struct report_leaks *data)
{
    const struct heap_leaks *leaks = data->leaks;
    struct report_nested nested = leaks_count_nested(leaks);
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_position(&json, "position", leaks->outcome.position);
    report_certainty_json(report, &json);
    report_snapshot_json(&json, "snapshot", leaks->snapshot.number ? &leaks->snapshot : NULL);
    report_classes_json(&json, leaks);
    leaks_possible_json(&json, &leaks->kinds[HEAP_POSSIBLY_LOST]);
    json_unsigned(&json, "total_blocks", heap_leaks_blocks(leaks));
    json_unsigned(&json, "total_bytes", leaks_bytes(leaks));
    json_unsigned(&json, "nested_blocks", nested.blocks);
    json_unsigned(&json, "nested_bytes", nested.bytes);
    report_unknown_json(&json, &leaks->kinds[HEAP_UNKNOWN]);
    json_text(&json, "by", view_key_name(report->view->options.by));
    json_unsigned(&json, "total_groups", data->groups->count);
    const struct report_amounts amounts = leaks_amounts(data);
    report_wrapper_json(report, &json, &amounts);
    report_runtime_json(&report->runtime, &json);
    json_bool(&json, "attached", data->is_attached);
    json_unsigned(&json, "unknown_releases", leaks->outcome.counts.unknown_releases);
    json_unsigned(&json, "overlaps", leaks->outcome.counts.overlaps);
    json_unsigned(&json, "reallocs_in_flight", leaks->outcome.in_flight);
    report_known_findings_json(report, &json, REPORT_BLOCKS);
    json_groups(report, &json, data);
    report_runtime_groups_json(report, &json, data->limit);
    json_end_object(&json);
}

/* Writes the stacks that have more blocks than in the baseline. By other keys than the stack, a
 * growth has no group to belong to. */
static void csv_growths(struct report *report, struct csv *csv, const struct report_leaks *data)
{
    const struct report_known_findings *known_findings = report->known_findings;
    if (report->view->options.by != VIEW_BY_STACK)
        return;
    size_t count = report_listed(report, known_findings->growth_count, data->limit);
    for (size_t i = 0; i < count; i++) {
        const struct report_growth *growth = &known_findings->growths[i];
        csv_text(csv, "grown");
        csv_empty(csv);
        csv_unsigned(csv, growth->now);
        for (int empty = 0; empty < 5; empty++)
            csv_empty(csv);
        report_lost_csv(csv, NULL);
        leaks_way_csv(csv, NULL);
        leaks_details_csv(report, csv, data, NULL, 0);
        report_site_csv(report, csv, (struct heap_key){growth->stack, 0});
        csv_end_row(csv);
    }
}

static void csv_groups(struct report *report, struct csv *csv, const char *kind,
                       const struct heap_groups *groups, const struct report_leaks *data)
{
    bool has_classes = data->leaks->snapshot.number && groups == data->groups;
    size_t count = report_listed(report, groups->count, data->limit);
    for (size_t i = 0; i < count; i++) {
        const struct heap_group *group = &groups->items[i];
        bool has_totals = has_classes && group->kind == HEAP_DEFINITELY_LOST;
        bool has_class = has_classes || (groups == data->groups && group->kind == HEAP_UNKNOWN);
        csv_text(csv, kind);
        csv_text(csv, has_class ? report_leak_kinds[group->kind].name : "");
        csv_unsigned(csv, group->blocks);
        csv_unsigned(csv, group->bytes);
        csv_count(csv, has_totals ? group->total_blocks : TTD_UNKNOWN);
        csv_count(csv, has_totals ? group->total_bytes : TTD_UNKNOWN);
        csv_position(csv, group->first);
        csv_position(csv, group->last);
        report_lost_csv(csv, has_totals ? group->lost : NULL);
        leaks_way_csv(csv, group);
        leaks_details_csv(report, csv, data, groups == data->groups ? group : NULL, i + 1);
        report_site_csv(report, csv, group->key);
        csv_end_row(csv);
    }
}

void csv_leaks(struct report *report, const struct report_leaks *data)
{
    struct csv csv;
    report_csv_begin(report, &csv);
    report_site_header(report, &csv,
                       "kind,class,blocks,bytes,total_blocks,total_bytes,first_position,last_"
                       "position," REPORT_LOST_HEADER LEAKS_WAY_HEADER LEAKS_DETAILS_HEADER);
    csv_groups(report, &csv, "leak", data->groups, data);
    if (report->runtime.is_shown)
        csv_groups(report, &csv, "runtime", report->runtime.groups, data);
    csv_growths(report, &csv, data);
}
