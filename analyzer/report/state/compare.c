/* SPDX-License-Identifier: MIT */
/* The list of changes between two heaps, in all formats. */
#include "report/state/compare.h"
#include "report/state/reports.h"
#include "symbols/fingerprint.h"

static const char *const side_names[HEAP_SIDES] = {"old", "new"};

static const char *kind_name(enum heap_change_kind kind)
{
    static const char *const names[HEAP_CHANGE_KINDS] = {"new", "gone", "grown", "shrunk", "same"};
    return names[kind];
}

/* Number of changes that are asked for. Unchanged groups come last. */
static size_t wanted(const struct report_compare *data)
{
    const struct heap_comparison *comparison = data->comparison;
    size_t same = data->has_same ? 0 : comparison->kinds[HEAP_CHANGE_SAME];
    return comparison->count - same;
}

static size_t compare_shown(const struct report_compare *data)
{
    return report_shown(wanted(data), data->limit);
}

/* Returns the key of a change, and switches the report to the definitions that it refers to: those
 * of the new heap if the group is there, else of the old one. */
static struct heap_key use_side(struct report *report, const struct report_compare *data,
                                const struct heap_change *change)
{
    enum heap_side side = change->blocks[HEAP_NEW] ? HEAP_NEW : HEAP_OLD;
    report->definitions = data->sides[side].definitions;
    report->view = data->sides[side].view;
    return change->keys[side];
}

static bool compare_is_by_stack(const struct report *report)
{
    return report->view->options.by == VIEW_BY_STACK;
}

static struct fingerprint fingerprint_of(struct report *report, struct fingerprinter *fingerprinter,
                                         ttd_id stack)
{
    struct fingerprint result = {0, 0};
    enum ttd_status status = fingerprint_stack(fingerprinter, report->definitions, stack, &result);
    if (status != TTD_OK)
        report->status = status;
    return result;
}

/* ---- Text ---- */

static void text_compare_signed(struct text_output *output, uint64_t old, uint64_t new,
                                const char *unit)
{
    bool has_grown = old <= new;
    out_char(output, has_grown ? '+' : '-');
    report_count(output, has_grown ? new - old : old - new, unit);
}

static void text_change(struct report *report, const struct report_compare *data,
                        const struct heap_change *change)
{
    struct text_output *output = report->output;
    out_char(output, '\n');
    out_bold(output);
    text_compare_signed(output, change->bytes[HEAP_OLD], change->bytes[HEAP_NEW], "byte");
    out_text(output, ", ");
    text_compare_signed(output, change->blocks[HEAP_OLD], change->blocks[HEAP_NEW], "block");
    out_plain(output);
    out_text(output, ", ");
    out_text(output, kind_name(heap_change_kind_of(change)));
    if (change->blocks[HEAP_OLD] && change->blocks[HEAP_NEW]) {
        out_text(output, ": from ");
        report_count(output, change->bytes[HEAP_OLD], "byte");
        out_text(output, " in ");
        report_count(output, change->blocks[HEAP_OLD], "block");
        out_text(output, " to ");
        report_count(output, change->bytes[HEAP_NEW], "byte");
        out_text(output, " in ");
        report_count(output, change->blocks[HEAP_NEW], "block");
    }
    out_char(output, '\n');
    report_site_text(report, use_side(report, data, change));
}

void text_compare_sums(struct report *report, const struct report_compare *data)
{
    const struct report_live *old = &data->sides[HEAP_OLD].live;
    const struct report_live *new = &data->sides[HEAP_NEW].live;
    struct text_output *output = report->output;
    for (int i = 0; i < HEAP_SIDES; i++) {
        const struct report_live *live = &data->sides[i].live;
        out_text(output, i == HEAP_OLD ? "Old: " : "New: ");
        report_count(output, live->bytes, "byte");
        out_text(output, " in ");
        report_count(output, live->blocks, "block");
        out_text(output, " at ");
        out_position(output, data->sides[i].position);
        out_char(output, '\n');
        report_live_nested_text(output, "    ", live);
    }
    out_bold(output);
    out_text(output, "Change: ");
    text_compare_signed(output, old->bytes, new->bytes, "byte");
    out_text(output, ", ");
    text_compare_signed(output, old->blocks, new->blocks, "block");
    out_plain(output);
}

static void text_kinds(struct report *report, const struct heap_comparison *comparison)
{
    struct text_output *output = report->output;
    out_format(output, "; %ss:", view_key_name(report->view->options.by));
    for (int i = 0; i < HEAP_CHANGE_KINDS; i++) {
        out_text(output, i ? ", " : " ");
        out_grouped(output, comparison->kinds[i]);
        out_char(output, ' ');
        out_text(output, kind_name((enum heap_change_kind)i));
    }
    out_char(output, '\n');
}

void text_compare_runtime(struct report *report, const struct report_compare *data)
{
    for (int i = 0; i < HEAP_SIDES; i++) {
        const struct report_runtime *runtime = data->sides[i].runtime;
        if (!runtime->groups || !runtime->groups->blocks)
            continue;
        out_format(report->output, "Of the %s heap, ", side_names[i]);
        report_runtime_sums(report->output, runtime);
        out_text(report->output, " (--show-runtime to count)\n");
    }
}

void text_compare_certainty(struct report *report, const struct report_compare *data)
{
    for (int i = 0; i < HEAP_SIDES; i++) {
        const struct certainty *certainty = data->sides[i].certainty;
        for (size_t k = 0; k < certainty->count; k++) {
            out_alarm(report->output);
            out_text(report->output, "Uncertain");
            out_plain(report->output);
            out_format(report->output, ", of the %s heap: %s\n", side_names[i],
                       certainty->reasons[k]);
        }
    }
}

void text_compare(struct report *report, const struct report_compare *data)
{
    if (data->tree) {
        text_compare_tree(report, data);
        return;
    }
    const struct heap_comparison *comparison = data->comparison;
    size_t changed = comparison->count - comparison->kinds[HEAP_CHANGE_SAME];
    size_t count = compare_shown(data);
    text_compare_sums(report, data);
    text_kinds(report, comparison);
    text_compare_runtime(report, data);
    text_compare_certainty(report, data);
    for (size_t i = 0; i < count; i++)
        text_change(report, data, &comparison->changes[i]);
    report_site_more(report, changed - count);
}

/* ---- JSON ---- */

static void json_side(struct json *json, const struct report_compare *data, enum heap_side which)
{
    const struct report_side *side = &data->sides[which];
    json_begin_object(json, side_names[which]);
    json_hex(json, "trace_id", side->trace_id);
    json_position(json, "position", side->position);
    json_bool(json, "certain", !side->certainty->count);
    json_begin_array(json, "reasons");
    for (size_t i = 0; i < side->certainty->count; i++)
        json_text(json, NULL, side->certainty->reasons[i]);
    json_end_array(json);
    report_live_json(json, &side->live);
    report_runtime_json(side->runtime, json);
    json_end_object(json);
}

static void json_change(struct report *report, struct json *json, const struct report_compare *data,
                        const struct heap_change *change, struct fingerprinter *fingerprinter)
{
    char text[FINGERPRINT_TEXT];
    struct heap_key key = use_side(report, data, change);
    json_begin_object(json, NULL);
    json_text(json, "change", kind_name(heap_change_kind_of(change)));
    json_difference(json, "change_blocks", change->blocks[HEAP_OLD], change->blocks[HEAP_NEW]);
    json_difference(json, "change_bytes", change->bytes[HEAP_OLD], change->bytes[HEAP_NEW]);
    json_unsigned(json, "old_blocks", change->blocks[HEAP_OLD]);
    json_unsigned(json, "old_bytes", change->bytes[HEAP_OLD]);
    json_unsigned(json, "new_blocks", change->blocks[HEAP_NEW]);
    json_unsigned(json, "new_bytes", change->bytes[HEAP_NEW]);
    if (compare_is_by_stack(report)) {
        fingerprint_format(fingerprint_of(report, fingerprinter, key.stack), text);
        json_text(json, "fingerprint", text);
    }
    report_site_json(report, json, key);
    json_end_object(json);
}

static void json_certainty(struct json *json, const struct report_compare *data)
{
    json_bool(json, "certain", report_compare_is_certain(data));
}

static void json_changes(struct report *report, struct json *json,
                         const struct report_compare *data)
{
    static const char *const totals[HEAP_CHANGE_KINDS] = {
        "new_stacks", "gone_stacks", "grown_stacks", "shrunk_stacks", "same_stacks"};
    struct fingerprinter fingerprinter = {.definitions = NULL};
    for (int i = 0; i < HEAP_CHANGE_KINDS; i++)
        json_unsigned(json, totals[i], data->comparison->kinds[i]);
    json_begin_array(json, "changes");
    for (size_t i = 0; i < compare_shown(data); i++)
        json_change(report, json, data, &data->comparison->changes[i], &fingerprinter);
    json_end_array(json);
    fingerprinter_free(&fingerprinter);
}

void json_compare(struct report *report, const struct report_compare *data)
{
    const struct report_live *old = &data->sides[HEAP_OLD].live;
    const struct report_live *new = &data->sides[HEAP_NEW].live;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_certainty(&json, data);
    json_side(&json, data, HEAP_OLD);
    json_side(&json, data, HEAP_NEW);
    json_difference(&json, "change_blocks", old->blocks, new->blocks);
    json_difference(&json, "change_bytes", old->bytes, new->bytes);
    if (data->tree)
        json_compare_tree(report, &json, data);
    else
        json_changes(report, &json, data);
    json_end_object(&json);
}

/* ---- CSV ---- */

void csv_compare(struct report *report, const struct report_compare *data)
{
    if (data->tree) {
        csv_compare_tree(report, data);
        return;
    }
    struct fingerprinter fingerprinter = {.definitions = NULL};
    struct csv csv;
    report_csv_begin(report, &csv);
    csv.is_certain = report_compare_is_certain(data);
    out_text(report->output, "change,change_blocks,change_bytes,old_blocks,old_bytes,new_blocks,"
                             "new_bytes");
    report_site_header(report, &csv, compare_is_by_stack(report) ? ",fingerprint" : "");
    size_t count = report_listed(report, wanted(data), data->limit);
    for (size_t i = 0; i < count; i++) {
        const struct heap_change *change = &data->comparison->changes[i];
        char text[FINGERPRINT_TEXT];
        struct heap_key key = use_side(report, data, change);
        csv_text(&csv, kind_name(heap_change_kind_of(change)));
        csv_difference(&csv, change->blocks[HEAP_OLD], change->blocks[HEAP_NEW]);
        csv_difference(&csv, change->bytes[HEAP_OLD], change->bytes[HEAP_NEW]);
        csv_unsigned(&csv, change->blocks[HEAP_OLD]);
        csv_unsigned(&csv, change->bytes[HEAP_OLD]);
        csv_unsigned(&csv, change->blocks[HEAP_NEW]);
        csv_unsigned(&csv, change->bytes[HEAP_NEW]);
        if (compare_is_by_stack(report)) {
            fingerprint_format(fingerprint_of(report, &fingerprinter, key.stack), text);
            csv_text(&csv, text);
        }
        report_site_csv(report, &csv, key);
        csv_end_row(&csv);
    }
    fingerprinter_free(&fingerprinter);
}
