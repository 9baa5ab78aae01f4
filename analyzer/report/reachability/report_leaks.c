/* SPDX-License-Identifier: MIT */
/* The report of `leaks`. */
#include "report/reachability/reachability_reports.h"

/* Writes counts of calls that make the list of leaks less than exact. */
static void text_leak_notes(struct report *report, const struct report_leaks *data)
{
    const struct heap_leaks *leaks = data->leaks;
    if (data->is_attached)
        out_text(report->output, "The process had run before: of its older blocks, those that the "
                                 "recorder\nfound are known; 'ttdanalyze info' says how many\n");
    report_pooled_text(report, data->choice, 0);
    if (leaks->outcome.counts.unknown_releases)
        say(report->output, counted(leaks->outcome.counts.unknown_releases, "release"),
            data->has_early_blocks
                ? " of an address without a live block, as blocks from before the "
                  "recording: 'ttdanalyze errors' tells them apart\n"
                : " of an address without a live block: 'ttdanalyze errors' says more\n");
    if (leaks->outcome.left.blocks)
        say(report->output, bytes(heap_sum_value(leaks->outcome.left.bytes)), " in ",
            blocks(leaks->outcome.left.blocks),
            " left by programs before, at exec: not searched\n");
    if (leaks->outcome.in_flight)
        say(report->output, counted(leaks->outcome.in_flight, "reallocation"),
            " in flight at this position, not counted\n");
}

/* Writes the words for blocks without a snapshot, at the end. */
static void leaks_text_live_label(struct report *report, const struct report_leaks *data)
{
    const char *words = report_left_text(report->ending);
    if (data->leaks->kinds[HEAP_NOT_SEEN].blocks)
        out_format(report->output, "%c%s: ", *words - 'a' + 'A', words + 1);
    else if (report->unjudged)
        out_text(report->output, "No leaks are known");
    else
        out_text(report->output,
                 data->leaks->outcome.left.blocks ? "No leaks in the last program" : "No leaks");
}

/* Writes the number of unreleased blocks, where the lost ones are unknown. */
static void leaks_text_live(struct report *report, const struct report_leaks *data)
{
    const struct heap_groups *groups = &data->leaks->kinds[HEAP_NOT_SEEN];
    struct text_output *output = report->output;
    if (data->is_at_end)
        leaks_text_live_label(report, data);
    else
        say(output, "Live at ", moment(report, data->leaks->outcome.position), ": ");
    if (groups->blocks || !data->is_at_end) {
        report_sums_text(output, groups);
        report_from_sites(report, groups);
    }
    say(output, PLAIN, "\n");
    report_estimate_text(output, "    ", &groups->estimate);
    if (!groups->blocks)
        return;
    if (data->is_at_end && report->ending != ENDING_KNOWN)
        say(output, "No finding: ", report_left_reason(report->ending), ".\n");
    else
        out_text(output, "What is lost and what is still reachable is not known.\n");
    if (certainty_knows_calls(report->ending))
        report_no_snapshot_text(report);
}

static void leaks_text_kind(struct report *report, const struct heap_groups *groups,
                            const char *label)
{
    if (!groups->blocks)
        return;
    out_text(report->output, label);
    report_sums_text(report->output, groups);
    out_char(report->output, '\n');
    report_estimate_text(report->output, "    ", &groups->estimate);
}

/* Writes the verdicts of the snapshot: lost blocks and others in one line each. */
static void leaks_text_classes(struct report *report, const struct report_leaks *data)
{
    const struct heap_groups *groups = data->leaks->kinds;
    struct text_output *output = report->output;
    const struct heap_groups *lost = &groups[HEAP_DEFINITELY_LOST];
    out_text(output, lost->blocks ? "Definitely lost: " : "Nothing is definitely lost");
    if (lost->blocks) {
        report_sums_text(output, lost);
        report_from_sites(report, lost);
    }
    say(output, PLAIN, "\n");
    report_estimate_text(output, "    ", &lost->estimate);
    leaks_text_kind(report, &groups[HEAP_INDIRECTLY_LOST],
                    "Indirectly lost, held by these (--show indirect to list): ");
    leaks_text_kind(report, &groups[HEAP_POSSIBLY_LOST],
                    "Possibly lost, held by doubtful pointers: ");
    leaks_text_kind(report, &groups[HEAP_HELD_BY_STALE],
                    "Held only by possibly stale words (--show stale to list): ");
    leaks_text_kind(report, &groups[HEAP_HELD_WEAKLY],
                    "Held only by an ending stack or a register (--show stack): ");
    leaks_text_kind(report, &groups[HEAP_REACHABLE],
                    "Still reachable (--show reachable to list): ");
    leaks_text_kind(report, &groups[HEAP_NOT_SEEN],
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
static struct heap_call leaks_creation(const struct report *report, const struct report_leaks *data,
                                       const struct heap_group *group)
{
    const struct view_label *label = view_find_label(report->view, group->key);
    const struct heap_tree_node *heap = heap_tree_get(data->heaps, (ttd_id)label->number);
    return heap ? heap->created : heap_call_none();
}

/* The table of groups. */

struct leaks_columns {
    size_t kind;
    size_t name;
};

enum { COLUMN_GROUP = 2, COLUMN_BYTES = 12, COLUMN_BLOCKS = 23 };

static uint64_t leaks_total_blocks(const struct heap_group *group)
{
    return group->total_blocks > group->blocks ? group->total_blocks : group->blocks;
}

/* Groups have their kind in the table only if they are of several. */
static struct leaks_columns leaks_find_columns(const struct heap_groups *groups, size_t count)
{
    struct leaks_columns columns = {0, 0};
    size_t longest = 0;
    bool is_one_kind = true;
    for (size_t i = 0; i < count; i++) {
        const struct heap_group *group = &groups->items[i];
        size_t end = COLUMN_BLOCKS + report_count_columns(leaks_total_blocks(group), "block") + 2;
        size_t kind = strlen(report_leak_kinds[group->kind].text) + 2;
        columns.kind = end > columns.kind ? end : columns.kind;
        longest = kind > longest ? kind : longest;
        is_one_kind = is_one_kind && group->kind == groups->items[0].kind;
    }
    columns.name = columns.kind + (is_one_kind ? 0 : longest);
    return columns;
}

/* Writes a line for each of many groups, with the blocks that hang below it, so that all of them
 * are seen at once. */
static void leaks_text_table(struct report *report, const struct heap_groups *groups, size_t count)
{
    struct text_output *output = report->output;
    struct leaks_columns columns = leaks_find_columns(groups, count);
    if (!report->functions || count <= REPORT_WITHOUT_TABLE)
        return;
    out_char(output, '\n');
    for (size_t i = 0; i < count; i++) {
        const struct heap_group *group = &groups->items[i];
        uint64_t blocks = leaks_total_blocks(group);
        say(output, tab(COLUMN_GROUP), "group ", number(i + 1), tab(COLUMN_BYTES),
            rounded(blocks > group->blocks ? group->total_bytes : group->bytes), tab(COLUMN_BLOCKS),
            blocks(blocks), tab(columns.kind));
        if (columns.name != columns.kind)
            say(output, report_leak_kinds[group->kind].text, tab(columns.name));
        report_key_function_text(report, group->key);
        out_char(output, '\n');
    }
}

static void leaks_text_groups(struct report *report, const struct report_leaks *data)
{
    struct text_output *output = report->output;
    size_t listed = leaks_listed(data);
    size_t count = report_shown(listed, report->limit);
    leaks_text_table(report, data->groups, count);
    for (size_t i = 0; i < count; i++) {
        const struct heap_group *group = &data->groups->items[i];
        say(output, "\n", BOLD, bytes(group->bytes), " in ", blocks(group->blocks), PLAIN);
        if (data->leaks->snapshot.number || group->kind == HEAP_UNKNOWN)
            out_format(output, " %s", report_leak_kinds[group->kind].text);
        if (group->total_blocks > group->blocks)
            say(output, ", ", bytes(group->total_bytes), " in ", blocks(group->total_blocks),
                " with what hangs below");
        report_group_positions_text(report, group);
        out_char(output, '\n');
        report_estimate_text(output, "    ", &group->estimate);
        leaks_way_text(report, group);
        if (group->lost) {
            out_text(report->output, "    ");
            report_lost_text(report, group->lost, group->blocks);
        }
        report_site_text(report, group->key);
        leaks_details_text(report, data, group, i + 1);
        if (data->heaps) {
            struct heap_call created = leaks_creation(report, data, group);
            report_call_text(report, "created", &created);
        }
    }
    report_site_more(report, listed - count);
    leaks_possible_text(report, data);
}

/* Says how to get names if one of the first groups is of a function without one. */
static void leaks_text_names(struct report *report, const struct report_leaks *data)
{
    size_t count = report_shown(leaks_listed(data), report->limit);
    size_t i = 0;
    if (!report->functions)
        return;
    while (i < count && i < REPORT_WITHOUT_TABLE &&
           !report_key_names_text(report, data->groups->items[i].key))
        i++;
}

/* Writes the command that says more of the first block of the first group: who points at it, or
 * its history. By its address it is the same block whatever is listed. */
static void leaks_text_next(struct report *report, const struct report_leaks *data)
{
    if (!data->is_at_end || !leaks_listed(data) || !report_shown(1, report->limit))
        return;
    const struct heap_group *group = &data->groups->items[0];
    bool is_held = group->kind == HEAP_POSSIBLY_LOST || group->kind == HEAP_REACHABLE ||
                   report_leak_kinds[group->kind].held_by;
    say(report->output, DIM, "\nMore of group 1: ttdanalyze ", is_held ? "referrers" : "history",
        " --address ", hex(group->address), " ", escape_string(report->path), "\n", PLAIN);
}

static void text_leaks(struct report *report, const struct report_leaks *data)
{
    out_bold(report->output);
    if (data->leaks->snapshot.number)
        leaks_text_classes(report, data);
    else
        leaks_text_live(report, data);
    leaks_text_kind(report, &data->leaks->kinds[HEAP_UNKNOWN],
                    "Unknown, perhaps released while recording was off (--show unknown to list): ");
    report_nested_text(report->output, "", leaks_count_nested(data->leaks));
    report_runtime_text(report);
    report_known_findings_text(report, REPORT_BLOCKS);
    text_leak_notes(report, data);
    report_certainty_text(report);
    const struct report_amounts amounts = report_group_amounts(data->groups);
    report_wrapper_text(report, &amounts);
    leaks_text_groups(report, data);
    report_runtime_groups_text(report, true);
    leaks_text_names(report, data);
    leaks_text_next(report, data);
}

/* Whether a block is no finding because of the end: the program may have released it later, or was
 * killed. */
static bool leaks_is_cut(const struct report *report, const struct heap_group *group)
{
    return group->kind == HEAP_NOT_SEEN && report->ending != ENDING_KNOWN;
}

/* Returns the class of a group, or NULL if there is no snapshot that gives it one. */
static const char *leaks_class(const struct report *report, const struct report_leaks *data,
                               const struct heap_group *group)
{
    if (data->leaks->snapshot.number || group->kind == HEAP_UNKNOWN)
        return report_leak_kinds[group->kind].name;
    return leaks_is_cut(report, group) ? "live_at_end" : NULL;
}

static void json_leak(struct row *row, const struct report_leaks *data,
                      const struct heap_group *group, size_t number)
{
    bool has_classes = data->leaks->snapshot.number;
    const char *name = leaks_class(row->report, data, group);
    if (name)
        row_text(row, "class", name);
    if (report_leak_kinds[group->kind].held_by)
        row_text(row, "held_by", report_leak_kinds[group->kind].held_by);
    row_way(row, group->way);
    if (has_classes && group->kind == HEAP_DEFINITELY_LOST) {
        row_unsigned(row, "total_blocks", group->total_blocks);
        row_unsigned(row, "total_bytes", group->total_bytes);
        row_lost(row, group->lost);
    }
    if (data->heaps) {
        struct heap_call created = leaks_creation(row->report, data, group);
        row_call(row, "created", &created);
    }
    row_leak_details(row, data, group, number);
    row_group(row, group);
}

/* Bytes of all kinds; the sum saturates. */
static uint64_t leaks_bytes(const struct heap_leaks *leaks)
{
    uint64_t bytes = 0;
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        bytes = heap_add(bytes, leaks->kinds[kind].bytes);
    return bytes;
}

static void json_leaks(struct row *row, const struct report_leaks *data)
{
    const struct report *report = row->report;
    const struct heap_leaks *leaks = data->leaks;
    struct report_nested nested = leaks_count_nested(leaks);
    row_position(row, "position", leaks->outcome.position);
    row_certainty(row);
    row_snapshot(row, "snapshot", leaks->snapshot.number ? &leaks->snapshot : NULL);
    row_bool(row, "judged", !report->unjudged);
    row_classes(row, leaks);
    row_possible_ways(row, &leaks->kinds[HEAP_POSSIBLY_LOST]);
    row_unsigned(row, "total_blocks", heap_leaks_blocks(leaks));
    row_unsigned(row, "total_bytes", leaks_bytes(leaks));
    row_unsigned(row, "left_blocks", leaks->outcome.left.blocks);
    row_unsigned(row, "left_bytes", heap_sum_value(leaks->outcome.left.bytes));
    row_unsigned(row, "nested_blocks", nested.blocks);
    row_unsigned(row, "nested_bytes", nested.bytes);
    row_unknown(row, &leaks->kinds[HEAP_UNKNOWN]);
    row_text(row, "by", view_key_name(report->view->options.by));
    row_unsigned(row, "total_groups", data->groups->count);
    const struct report_amounts amounts = report_group_amounts(data->groups);
    row_wrapper(row, &amounts);
    row_runtime(row, &report->runtime);
    row_bool(row, "attached", data->is_attached);
    row_pooled(row, data->choice);
    row_unsigned(row, "unknown_releases", leaks->outcome.counts.unknown_releases);
    row_unsigned(row, "overlaps", leaks->outcome.counts.overlaps);
    row_unsigned(row, "reallocs_in_flight", leaks->outcome.in_flight);
    row_known_findings(row, REPORT_BLOCKS);
    size_t number = 0;
    ROW_EACH(row, "groups", struct heap_group, group, data->groups->items,
             section_row_listed(row, data->groups->count))
    json_leak(row, data, group, ++number);
    row_runtime_groups(row);
}

/* Writes a row of CSV; `group` is the same, or NULL for blocks that are no leak. */
static void csv_leak(struct row *row, const struct report_leaks *data, const char *kind,
                     const struct heap_group *sums, const struct heap_group *group, size_t number)
{
    bool has_classes = group && data->leaks->snapshot.number;
    bool has_totals = has_classes && group->kind == HEAP_DEFINITELY_LOST;
    row_text(row, "kind", kind);
    row_text(row, "class", group ? leaks_class(row->report, data, group) : NULL);
    row_unsigned(row, "blocks", sums->blocks);
    row_unsigned(row, "bytes", sums->bytes);
    row_unsigned_if(row, "total_blocks", has_totals, sums->total_blocks);
    row_unsigned_if(row, "total_bytes", has_totals, sums->total_bytes);
    row_position(row, "first_position", sums->first);
    row_position(row, "last_position", sums->last);
    row_lost(row, has_totals ? group->lost : NULL);
    row_way(row, sums->way);
    row_leak_details(row, data, group, number);
    row_estimate(row, &sums->estimate);
    row_site(row, sums->key);
}

static void csv_leaks(struct row *row, const struct report_leaks *data)
{
    const struct report_runtime *runtime = &row->report->runtime;
    const struct heap_groups *groups = data->groups;
    size_t number = 0;
    ROW_EACH(row, "groups", struct heap_group, group, groups->items,
             section_row_listed(row, groups->count))
    {
        number += !row->is_header;
        csv_leak(row, data, leaks_is_cut(row->report, group) ? "live" : "leak", group, group,
                 number);
    }
    if (!runtime->is_shown)
        return;
    ROW_EACH(row, "runtime_groups", struct heap_group, group, runtime->groups->items,
             section_row_listed(row, runtime->groups->count))
    csv_leak(row, data, "runtime", group, NULL, 0);
}

/* Writes the stacks that have more blocks than in the baseline. By other keys than the stack, a
 * growth has no group to belong to. */
static void leaks_csv_growths(struct row *row, const struct report_leaks *data)
{
    const struct report_known_findings *known_findings = row->report->known_findings;
    struct ttd_position no_position = ttd_position_invalid();
    if (row->report->view->options.by != VIEW_BY_STACK)
        return;
    ROW_EACH(row, "grown", struct report_growth, growth, known_findings->growths,
             section_row_listed(row, known_findings->growth_count))
    {
        row_text(row, NULL, "grown");
        row_null(row, NULL);
        row_unsigned(row, NULL, growth->now);
        for (int empty = 0; empty < 3; empty++)
            row_null(row, NULL);
        row_position(row, NULL, no_position);
        row_position(row, NULL, no_position);
        row_lost(row, NULL);
        row_way(row, (struct heap_way){.kind = HEAP_WAY_NONE});
        row_leak_details(row, data, NULL, 0);
        row_estimate(row, NULL);
        row_site(row, (struct heap_key){growth->stack, 0});
    }
}

void report_leaks(struct report *report, const struct report_leaks *data)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        text_leaks(report, data);
        return;
    }
    row_open(&row, report);
    if (row.is_json) {
        json_leaks(&row, data);
    } else {
        csv_leaks(&row, data);
        leaks_csv_growths(&row, data);
    }
    row_end_object(&row);
}
