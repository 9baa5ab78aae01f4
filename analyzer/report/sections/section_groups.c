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

static struct report_amount group_amount_at(const void *groups, size_t index)
{
    const struct heap_group *group = &((const struct heap_groups *)groups)->items[index];
    return (struct report_amount){group->key, group->blocks, group->bytes};
}

static void group_amounts_text(struct report *report, const void *groups, size_t index)
{
    const struct heap_group *group = &((const struct heap_groups *)groups)->items[index];
    report_count(report->output, group->bytes, "byte");
    out_text(report->output, " in ");
    report_count(report->output, group->blocks, "block");
    out_char(report->output, '\n');
}

void report_live_groups_text(struct report *report, const struct heap_groups *groups, size_t limit)
{
    const struct report_amounts amounts = {groups->count, group_amount_at, groups};
    const struct report_functions functions = {
        .groups = &amounts, .unit = "block", .limit = limit, .amounts = group_amounts_text};
    if (report->functions)
        report_functions_text(report, &functions);
    else
        report_groups_text(report, groups, limit, false);
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

/* The kinds of blocks that a snapshot distinguishes, from lost to reachable. */

const struct report_leak_kind report_leak_kinds[HEAP_LEAK_KINDS] = {
    [HEAP_DEFINITELY_LOST] = {"definitely lost", "definitely_lost", NULL},
    [HEAP_POSSIBLY_LOST] = {"possibly lost", "possibly_lost", NULL},
    [HEAP_INDIRECTLY_LOST] = {"indirectly lost", "indirectly_lost", NULL},
    [HEAP_HELD_BY_STALE] = {"held only by possibly stale words", "still_reachable", "stale"},
    [HEAP_HELD_WEAKLY] = {"held only by an ending stack or a register", "still_reachable", "stack"},
    [HEAP_REACHABLE] = {"still reachable", "still_reachable", NULL},
    [HEAP_NOT_SEEN] = {"allocated after the snapshot", "not_seen", NULL},
    [HEAP_UNKNOWN] = {"unknown, perhaps released while recording was off", "unknown", NULL}};

void report_sums_text(struct text_output *output, const struct heap_groups *groups)
{
    report_count(output, groups->blocks, "block");
    out_text(output, ", ");
    report_count(output, groups->bytes, "byte");
}

void report_snapshot_why_text(struct report *report, const struct ttd_snapshot *snapshot)
{
    static const char *const reasons[] = {"",
                                          ", on request",
                                          ", at an interval",
                                          ", for the program",
                                          ", when the program ended",
                                          ", when the program died of a signal"};
    report_snapshot_text(report, snapshot);
    if (snapshot->reason <= TTD_SNAPSHOT_SIGNAL)
        out_text(report->output, reasons[snapshot->reason]);
}

static void json_class_sums(struct json *json, const char *key, const struct heap_groups *groups,
                            enum heap_leak_kind first, enum heap_leak_kind last)
{
    uint64_t blocks = 0;
    uint64_t bytes = 0;
    for (int kind = (int)first; kind <= (int)last; kind++) {
        blocks += groups[kind].blocks;
        bytes = heap_add(bytes, groups[kind].bytes);
    }
    json_begin_object(json, key);
    json_unsigned(json, "blocks", blocks);
    json_unsigned(json, "bytes", bytes);
    json_end_object(json);
}

void report_classes_json(struct json *json, const struct heap_leaks *leaks)
{
    const struct heap_groups *groups = leaks->kinds;
    if (!leaks->snapshot.number) {
        json_text(json, "classes", NULL);
        return;
    }
    json_begin_object(json, "classes");
    json_class_sums(json, "definitely_lost", groups, HEAP_DEFINITELY_LOST, HEAP_DEFINITELY_LOST);
    json_class_sums(json, "indirectly_lost", groups, HEAP_INDIRECTLY_LOST, HEAP_INDIRECTLY_LOST);
    json_class_sums(json, "possibly_lost", groups, HEAP_POSSIBLY_LOST, HEAP_POSSIBLY_LOST);
    json_class_sums(json, "still_reachable", groups, HEAP_HELD_BY_STALE, HEAP_REACHABLE);
    json_class_sums(json, "held_by_stale", groups, HEAP_HELD_BY_STALE, HEAP_HELD_BY_STALE);
    json_class_sums(json, "held_by_stack", groups, HEAP_HELD_WEAKLY, HEAP_HELD_WEAKLY);
    json_class_sums(json, "not_seen", groups, HEAP_NOT_SEEN, HEAP_NOT_SEEN);
    json_class_sums(json, "unknown", groups, HEAP_UNKNOWN, HEAP_UNKNOWN);
    json_end_object(json);
}

/* The blocks that the C and C++ runtimes keep until the end, apart from all others. */

void report_runtime_sums(struct text_output *output, const struct report_runtime *runtime)
{
    report_count(output, runtime->groups->blocks, "block");
    out_text(output, ", ");
    report_count(output, runtime->groups->bytes, "byte");
    out_text(output, " kept by the C/C++ runtime, not counted");
}

/* A program that was killed had no time to say which blocks its runtimes keep. Then these blocks
 * are among the others, and a reader must not take them for leaks. */
static void text_counted(struct text_output *output, const struct report_runtime *runtime)
{
    out_text(output, runtime->groups->blocks ? "It may keep more blocks, which are counted: "
                                             : "Blocks that the C/C++ runtime keeps are counted: ");
    out_text(output, runtime->was_killed ? "the program was killed\n"
                                         : "the trace does not list them all\n");
}

void report_runtime_text(struct report *report)
{
    const struct report_runtime *runtime = &report->runtime;
    struct text_output *output = report->output;
    if (!runtime->groups)
        return;
    if (runtime->groups->blocks) {
        report_runtime_sums(output, runtime);
        out_text(output, runtime->is_shown     ? "; they come last\n"
                         : runtime->has_option ? " (--show-runtime to list)\n"
                                               : "\n");
    }
    if (runtime->is_counted)
        text_counted(output, runtime);
}

void report_runtime_groups_text(struct report *report, size_t limit, bool shows_positions)
{
    if (report->runtime.is_shown)
        report_groups_text(report, report->runtime.groups, limit, shows_positions);
}

void report_runtime_json(const struct report_runtime *runtime, struct json *json)
{
    if (!runtime->groups)
        return;
    json_bool(json, "runtime_counted", runtime->is_counted);
    json_unsigned(json, "runtime_blocks", runtime->groups->blocks);
    json_unsigned(json, "runtime_bytes", runtime->groups->bytes);
}

void report_runtime_groups_json(struct report *report, struct json *json, size_t limit)
{
    if (report->runtime.is_shown)
        report_groups_json(report, json, "runtime_groups", report->runtime.groups, limit);
}

void report_runtime_csv(struct report *report, struct csv *csv, size_t limit)
{
    if (report->runtime.is_shown)
        report_kind_csv(report, csv, "runtime", report->runtime.groups, limit);
}

/* Live blocks that may have been released in a gap of recording. */

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
