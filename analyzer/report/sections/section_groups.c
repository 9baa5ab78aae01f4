/* SPDX-License-Identifier: MIT */
/* Groups of findings, and totals of findings that were not reported. */
#include <stdbool.h>
#include <string.h>

#include "report/sections/sections.h"
#include "report/writers/out.h"
#include "symbols/frames.h"
#include "view/function_names.h"
#include "view/suppress.h"

/* Functions that look like a wrapper of an allocator, by their shape: many stacks go through them.
 */

/* Groups that are looked at, the first of the report; candidates among their functions; and the
 * smallest number of callers that makes a function a wrapper. */
enum { GROUPS_LOOKED_AT = 256, CANDIDATES = 32, CALLERS = 3 };

/* The longest name that is written twice into one line. */
enum { NAME_OF_A_LINE = 16 };

/* The innermost function of the program in some stacks. */
struct wrapper_candidate {
    ttd_id name;
    uint64_t address; /* of its call of the allocator */
    size_t groups;
    uint64_t bytes;
    uint64_t size; /* of a block of the first group, rounded down */
    bool has_one_call;
    bool has_sizes; /* blocks of several sizes: a constructor has one */
    ttd_id callers[CALLERS];
    size_t caller_count;
};

/* Whether a frame is of functions that reports look through anyway. */
static bool wrapper_is_known(struct report *report, const struct frame *frame)
{
    bool is_mixed;
    struct ttd_string name = definitions_canonical(report->definitions, frame->name);
    return allocators_have(frame->function) || allocators_wrap(name) ||
           runtime_has_module(frame->module) || runtime_has_function(name, &is_mixed);
}

/* Returns the innermost frame of the program that has a caller, both with names; NULL if there is
 * none. */
static const struct frame *wrapper_frame(struct report *report)
{
    const struct frame_list *list = &report->frames;
    size_t i = 0;
    while (i < list->count && wrapper_is_known(report, &list->frames[i]))
        i++;
    if (i + 1 >= list->count || !list->frames[i].function.size ||
        !list->frames[i + 1].function.size || list->frames[i].name == list->frames[i + 1].name ||
        runtime_is_main(&list->frames[i]))
        return NULL;
    return &list->frames[i];
}

static void wrapper_count(struct wrapper_candidate *candidate, const struct frame *frame,
                          const struct report_amount *group)
{
    uint64_t size = group->count ? group->bytes / group->count : 0;
    size_t i = 0;
    candidate->has_one_call &= candidate->address == frame->address;
    candidate->has_sizes |= candidate->size != size;
    candidate->groups++;
    candidate->bytes = heap_add(candidate->bytes, group->bytes);
    while (i < candidate->caller_count && candidate->callers[i] != frame[1].name)
        i++;
    if (i == candidate->caller_count && i < CALLERS)
        candidate->callers[candidate->caller_count++] = frame[1].name;
}

bool report_find_wrapper(struct report *report, const struct report_amounts *groups,
                         struct report_wrapper *wrapper)
{
    struct wrapper_candidate candidates[CANDIDATES];
    size_t count = 0, looked_at = 0;
    uint64_t bytes = 0;
    if (report->stacks.find)
        return false;
    for (; looked_at < groups->count && looked_at < GROUPS_LOOKED_AT; looked_at++) {
        const struct report_amount amount = groups->at(groups->context, looked_at);
        const struct report_amount *group = &amount;
        size_t i = 0;
        report_expand(report, group->key.stack);
        bytes = heap_add(bytes, group->bytes);
        const struct frame *frame = wrapper_frame(report);
        while (frame && i < count && candidates[i].name != frame->name)
            i++;
        if (!frame || i == CANDIDATES)
            continue;
        if (i == count)
            candidates[count++] =
                (struct wrapper_candidate){.name = frame->name,
                                           .address = frame->address,
                                           .size = group->count ? group->bytes / group->count : 0,
                                           .has_one_call = true};
        wrapper_count(&candidates[i], frame, group);
    }
    for (size_t i = 0; i < count; i++) {
        const struct wrapper_candidate *candidate = &candidates[i];
        if (candidate->caller_count < CALLERS || !candidate->has_one_call ||
            !candidate->has_sizes || candidate->groups <= looked_at / 2 ||
            candidate->bytes <= bytes / 2)
            continue;
        wrapper->name = candidate->name;
        wrapper->function = definitions_canonical(report->definitions, candidate->name);
        wrapper->groups = candidate->groups;
        wrapper->bytes = candidate->bytes;
        return true;
    }
    return false;
}

/* Whether a shell takes a name for more than one word. */
static bool wrapper_needs_quotes(struct ttd_string name)
{
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '_' || c == ':';
        if (!is_plain)
            return true;
    }
    return false;
}

void report_skip_text(struct text_output *output, const struct report_wrapper *wrapper)
{
    const char *quote = wrapper_needs_quotes(wrapper->function) ? "'" : "";
    say(output, "--skip ", quote, wrapper->function, quote, " shows its callers\n");
}

/* Groups of other keys than stacks do not begin with a function. */
static bool wrapper_find_of_stacks(struct report *report, const struct report_amounts *groups,
                                   struct report_wrapper *wrapper)
{
    return report->view->options.by == VIEW_BY_STACK &&
           report_find_wrapper(report, groups, wrapper);
}

void report_wrapper_text(struct report *report, const struct report_amounts *groups)
{
    struct report_wrapper wrapper;
    if (!wrapper_find_of_stacks(report, groups, &wrapper))
        return;
    say(report->output, "Most of these come through ", wrapper.function,
        wrapper.function.size > NAME_OF_A_LINE ? "():\n" : "(): ");
    report_skip_text(report->output, &wrapper);
}

void row_wrapper(struct row *row, const struct report_amounts *groups)
{
    struct report_wrapper wrapper;
    if (row_is_skipped(row))
        return;
    if (!wrapper_find_of_stacks(row->report, groups, &wrapper)) {
        row_null(row, "wrapper");
        return;
    }
    row_begin_object(row, "wrapper");
    row_string(row, "function", wrapper.function);
    row_unsigned(row, "groups", wrapper.groups);
    row_unsigned(row, "bytes", wrapper.bytes);
    row_end_object(row);
}

/* Groups of blocks, as several commands write them. */

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

/* Estimates by the blocks of a sample; they stand for others. */

static uint64_t groups_estimate_number(double estimate)
{
    return estimate < 0.5 ? 0 : estimate < 1e19 ? (uint64_t)(estimate + 0.5) : UINT64_MAX;
}

void report_estimate_text(struct text_output *output, const char *indent,
                          const struct heap_estimate *estimate)
{
    if (estimate->blocks <= 0)
        return;
    say(output, indent,
        "a sample, estimated in all: ", blocks(groups_estimate_number(estimate->blocks)), ", ",
        bytes(groups_estimate_number(estimate->bytes)), "\n");
}

void row_estimate(struct row *row, const struct heap_estimate *estimate)
{
    if (!row->report->has_estimates)
        return;
    row_unsigned_if(row, "estimated_blocks", estimate,
                    estimate ? groups_estimate_number(estimate->blocks) : 0);
    row_unsigned_if(row, "estimated_bytes", estimate,
                    estimate ? groups_estimate_number(estimate->bytes) : 0);
}

static struct report_amount group_amount_at(const void *groups, size_t index)
{
    const struct heap_group *group = &((const struct heap_groups *)groups)->items[index];
    return (struct report_amount){group->key, group->blocks, group->bytes};
}

struct report_amounts report_group_amounts(const struct heap_groups *groups)
{
    return (struct report_amounts){groups->count, group_amount_at, groups};
}

static void group_amounts_text(struct report *report, const void *groups, size_t index)
{
    const struct heap_group *group = &((const struct heap_groups *)groups)->items[index];
    say(report->output, bytes(group->bytes), " in ", blocks(group->blocks), "\n");
    report_estimate_text(report->output, "    ", &group->estimate);
}

void report_function_groups_text(struct report *report, const struct heap_groups *groups)
{
    const struct report_amounts amounts = report_group_amounts(groups);
    const struct report_functions functions = {
        .groups = &amounts, .unit = "block", .limit = report->limit, .amounts = group_amounts_text};
    if (report->functions)
        report_functions_text(report, &functions);
    else
        report_groups_text(report, groups, false);
}

void report_live_groups_text(struct report *report, const struct heap_groups *groups)
{
    const struct report_amounts amounts = report_group_amounts(groups);
    report_wrapper_text(report, &amounts);
    report_function_groups_text(report, groups);
}

void report_groups_text(struct report *report, const struct heap_groups *groups,
                        bool shows_positions)
{
    struct text_output *output = report->output;
    size_t count = report_shown(groups->count, report->limit);
    for (size_t i = 0; i < count; i++) {
        const struct heap_group *group = &groups->items[i];
        say(output, "\n", BOLD, bytes(group->bytes), " in ", blocks(group->blocks), PLAIN);
        if (shows_positions)
            report_group_positions_text(report, group);
        out_char(output, '\n');
        report_estimate_text(output, "    ", &group->estimate);
        report_site_text(report, group->key);
    }
    report_site_more(report, groups->count - count);
}

void report_nested_text(struct text_output *output, const char *indent, struct report_nested nested)
{
    if (!nested.blocks)
        return;
    say(output, indent,
        "Of these, in heaps of the program and so within other blocks: ", blocks(nested.blocks),
        ", ", bytes(nested.bytes), "\n");
}

void row_group(struct row *row, const struct heap_group *group)
{
    row_unsigned(row, "blocks", group->blocks);
    row_unsigned(row, "bytes", group->bytes);
    row_position(row, "first_position", group->first);
    row_position(row, "last_position", group->last);
    row_estimate(row, &group->estimate);
    row_site(row, group->key);
}

void row_groups(struct row *row, const char *key, const struct heap_groups *groups,
                const char *column, const char *kind)
{
    ROW_EACH(row, key, struct heap_group, group, groups->items,
             section_row_listed(row, groups->count))
    {
        if (kind && !row->is_json)
            row_text(row, column, kind);
        row_group(row, group);
    }
}

void row_live_groups(struct row *row, const struct heap_groups *groups)
{
    const struct report_amounts amounts = report_group_amounts(groups);
    row_wrapper(row, &amounts);
    row_groups(row, "groups", groups, "kind", row->report->runtime.is_shown ? "live" : NULL);
    row_runtime_groups(row);
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
    say(output, blocks(groups->blocks), ", ", sized(groups->bytes));
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

static void groups_json_class_sums(struct row *row, const char *key,
                                   const struct heap_groups *groups, enum heap_leak_kind first,
                                   enum heap_leak_kind last)
{
    uint64_t blocks = 0;
    uint64_t bytes = 0;
    struct heap_estimate estimate = {0, 0};
    for (int kind = (int)first; kind <= (int)last; kind++) {
        heap_estimate_add(&estimate, groups[kind].estimate);
        blocks += groups[kind].blocks;
        bytes = heap_add(bytes, groups[kind].bytes);
    }
    row_begin_object(row, key);
    row_unsigned(row, "blocks", blocks);
    row_unsigned(row, "bytes", bytes);
    row_estimate(row, &estimate);
    row_end_object(row);
}

void row_classes(struct row *row, const struct heap_leaks *leaks)
{
    const struct heap_groups *groups = leaks->kinds;
    if (!leaks->snapshot.number) {
        row_text(row, "classes", NULL);
        return;
    }
    row_begin_object(row, "classes");
    groups_json_class_sums(row, "definitely_lost", groups, HEAP_DEFINITELY_LOST,
                           HEAP_DEFINITELY_LOST);
    groups_json_class_sums(row, "indirectly_lost", groups, HEAP_INDIRECTLY_LOST,
                           HEAP_INDIRECTLY_LOST);
    groups_json_class_sums(row, "possibly_lost", groups, HEAP_POSSIBLY_LOST, HEAP_POSSIBLY_LOST);
    groups_json_class_sums(row, "still_reachable", groups, HEAP_HELD_BY_STALE, HEAP_REACHABLE);
    groups_json_class_sums(row, "held_by_stale", groups, HEAP_HELD_BY_STALE, HEAP_HELD_BY_STALE);
    groups_json_class_sums(row, "held_by_stack", groups, HEAP_HELD_WEAKLY, HEAP_HELD_WEAKLY);
    groups_json_class_sums(row, "not_seen", groups, HEAP_NOT_SEEN, HEAP_NOT_SEEN);
    groups_json_class_sums(row, "unknown", groups, HEAP_UNKNOWN, HEAP_UNKNOWN);
    row_end_object(row);
}

/* The blocks that the C and C++ runtimes keep until the end, apart from all others. */

void report_runtime_sums(struct text_output *output, const struct report_runtime *runtime)
{
    say(output, blocks(runtime->groups->blocks), ", ", bytes(runtime->groups->bytes),
        " kept by the C/C++ runtime, not counted");
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
    /* A program that was killed had no time to list the blocks of its runtimes. Then these blocks
     * are among the others, and a reader must not take them for leaks. */
    if (runtime->is_counted)
        say(output,
            runtime->groups->blocks ? "It may keep more blocks, which are counted: "
                                    : "Blocks that the C/C++ runtime keeps are counted: ",
            runtime->was_killed ? "the program was killed\n"
                                : "the trace does not list them all\n");
}

void report_runtime_groups_text(struct report *report, bool shows_positions)
{
    if (report->runtime.is_shown)
        report_groups_text(report, report->runtime.groups, shows_positions);
}

void row_runtime(struct row *row, const struct report_runtime *runtime)
{
    if (!runtime->groups)
        return;
    row_bool(row, "runtime_counted", runtime->is_counted);
    row_unsigned(row, "runtime_blocks", runtime->groups->blocks);
    row_unsigned(row, "runtime_bytes", runtime->groups->bytes);
}

void row_runtime_groups(struct row *row)
{
    const struct report_runtime *runtime = &row->report->runtime;
    if (runtime->is_shown)
        row_groups(row, "runtime_groups", runtime->groups, "kind", "runtime");
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

void row_unknown(struct row *row, const struct heap_groups *unknown)
{
    row_unsigned(row, "unknown_blocks", unknown->blocks);
    row_unsigned(row, "unknown_bytes", unknown->bytes);
}

/* Totals of findings that were not reported, because they are suppressed or in the baseline. */

/* Names of the units, by report_unit. */
static const struct {
    const char *count;
    const char *amount;
} units[] = {{"block", "byte"}, {"finding", "call"}};

static void groups_text_known_sums(struct text_output *output, enum report_unit unit,
                                   uint64_t count, uint64_t amount)
{
    say(output, counted(count, units[unit].count), ", ", counted(amount, units[unit].amount));
}

/* Number of growths that are shown. */
static size_t groups_known_shown_growths(const struct report *report)
{
    return report_shown(report->known_findings->growth_count, report->view->options.limit);
}

static void groups_text_growths(struct report *report, enum report_unit unit)
{
    const struct report_known_findings *known_findings = report->known_findings;
    struct text_output *output = report->output;
    if (!known_findings->growth_count)
        return;
    say(output, BOLD, "Grown since the baseline: ",
        counted(known_findings->growth_count, unit == REPORT_BLOCKS ? "stack" : "finding"), PLAIN,
        "\n");
    for (size_t i = 0; i < groups_known_shown_growths(report); i++) {
        const struct report_growth *growth = &known_findings->growths[i];
        out_text(output, "  ");
        if (unit == REPORT_FINDINGS)
            out_format(output, "%s: ", baseline_kind_name(growth->kind));
        say(output, "from ", grouped(growth->before), " to ",
            counted(growth->now, unit == REPORT_BLOCKS ? "block" : "call"), "\n");
        report_stack_text(report, growth->stack);
    }
    if (groups_known_shown_growths(report) < known_findings->growth_count)
        out_format(output, "  … and %zu more\n",
                   known_findings->growth_count - groups_known_shown_growths(report));
}

void report_known_findings_text(struct report *report, enum report_unit unit)
{
    const struct report_known_findings *known_findings = report->known_findings;
    struct text_output *output = report->output;
    if (known_findings && known_findings->suppressed) {
        out_text(output, "Suppressed: ");
        groups_text_known_sums(output, unit, known_findings->suppressed,
                               known_findings->suppressed_amount);
        out_char(output, '\n');
        for (size_t i = 0; i < known_findings->suppressions->count; i++) {
            const struct suppression *rule = &known_findings->suppressions->rules[i];
            if (!rule->matched)
                continue;
            out_text(output, "  ");
            groups_text_known_sums(output, unit, rule->matched, rule->amount);
            say(output, " by ", rule->name, " (", escape_string(rule->file), ":",
                number(rule->line), ")\n");
        }
    }
    if (known_findings && known_findings->has_baseline) {
        out_text(output, "In the baseline: ");
        groups_text_known_sums(output, unit, known_findings->in_baseline,
                               known_findings->in_baseline_amount);
        out_char(output, '\n');
        groups_text_growths(report, unit);
    }
}

/* The pairs of members for sums: matched by a rule, suppressed by any rule, and in the baseline. */
enum json_prefix { MATCHED, SUPPRESSED, KNOWN };

static void groups_row_known_sums(struct row *row, enum json_prefix prefix, enum report_unit unit,
                                  uint64_t count, uint64_t amount)
{
    static const char *const names[][2][2] = {
        [MATCHED] = {{"blocks", "bytes"}, {"findings", "calls"}},
        [SUPPRESSED] = {{"suppressed_blocks", "suppressed_bytes"},
                        {"suppressed_findings", "suppressed_calls"}},
        [KNOWN] = {{"known_blocks", "known_bytes"}, {"known_findings", "known_calls"}}};
    row_unsigned(row, names[prefix][unit][0], count);
    row_unsigned(row, names[prefix][unit][1], amount);
}

static void groups_row_growths(struct row *row)
{
    const struct report *report = row->report;
    row_unsigned(row, "grown", report->known_findings->growth_count);
    row_begin_array(row, "growths");
    for (size_t i = 0; i < groups_known_shown_growths(report); i++) {
        const struct report_growth *growth = &report->known_findings->growths[i];
        row_begin_object(row, NULL);
        row_text(row, "kind", baseline_kind_name(growth->kind));
        row_unsigned(row, "before", growth->before);
        row_unsigned(row, "now", growth->now);
        row_unsigned(row, "stack_id", growth->stack);
        row_stack(row, "stack", growth->stack);
        row_end_object(row);
    }
    row_end_array(row);
}

void row_known_findings(struct row *row, enum report_unit unit)
{
    const struct report_known_findings *known_findings = row->report->known_findings;
    if (known_findings && known_findings->has_suppressions) {
        groups_row_known_sums(row, SUPPRESSED, unit, known_findings->suppressed,
                              known_findings->suppressed_amount);
        row_begin_array(row, "suppressions");
        for (size_t i = 0; i < known_findings->suppressions->count; i++) {
            const struct suppression *rule = &known_findings->suppressions->rules[i];
            if (!rule->matched)
                continue;
            row_begin_object(row, NULL);
            groups_row_known_sums(row, MATCHED, unit, rule->matched, rule->amount);
            row_string(row, "rule", rule->name);
            row_text(row, "file", rule->file);
            row_unsigned(row, "line", rule->line);
            row_end_object(row);
        }
        row_end_array(row);
    }
    if (known_findings && known_findings->has_baseline) {
        groups_row_known_sums(row, KNOWN, unit, known_findings->in_baseline,
                              known_findings->in_baseline_amount);
        groups_row_growths(row);
    }
}
