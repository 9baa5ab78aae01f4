/* SPDX-License-Identifier: MIT */
/* The report of `diff` over a range: blocks by whether they were allocated and released in it. */
#include "report/state/state_reports.h"

static const char *quadrant_text(enum heap_quadrant quadrant)
{
    switch (quadrant) {
    case HEAP_AIFI:
        return "allocated inside the range, freed inside";
    case HEAP_AIFO:
        return "allocated inside the range, not freed in it";
    case HEAP_AOFI:
        return "allocated before the range, freed inside";
    default:
        return "allocated before the range, not freed in it";
    }
}

static const char *quadrant_title(enum heap_quadrant quadrant)
{
    static const char *const titles[HEAP_QUADRANTS] = {"AIFI", "AIFO", "AOFI", "AOFO"};
    return titles[quadrant];
}

/* Writes one quadrant: blocks that were both, or neither, allocated and released in the range. */
static void text_quadrant(struct report *report, const struct report_diff *data,
                          enum heap_quadrant quadrant)
{
    struct text_output *output = report->output;
    const struct heap_groups *groups = &data->diff->quadrants[quadrant];
    out_bold(output);
    out_text(output, quadrant_title(quadrant));
    out_plain(output);
    out_text(output, ", ");
    out_text(output, quadrant_text(quadrant));
    out_text(output, ": ");
    report_count(output, groups->blocks, "block");
    out_text(output, ", ");
    report_count(output, groups->bytes, "byte");
}

/* Counts the blocks of a quadrant that lie in others, as far as filters have left them. */
static struct report_nested diff_count_nested(const struct heap_groups *groups)
{
    struct report_nested nested = {0, 0};
    heap_groups_count_nested(groups, &nested.blocks, &nested.bytes);
    return nested;
}

/* Writes the lost blocks among those that the range has added. */
static void text_lost(struct report *report, const struct heap_leaks *lost)
{
    struct text_output *output = report->output;
    if (!lost->snapshot.number)
        return;
    out_text(output, "    Of these, by ");
    report_snapshot_why_text(report, &lost->snapshot);
    out_text(output, ":\n");
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++) {
        if (!lost->kinds[kind].blocks)
            continue;
        out_text(output, "    ");
        report_sums_text(output, &lost->kinds[kind]);
        out_format(output, " %s\n", report_leak_kinds[kind].text);
    }
}

/* Order of the quadrants: the additions of the range come first. */
static const enum heap_quadrant quadrant_order[HEAP_QUADRANTS] = {HEAP_AIFO, HEAP_AIFI, HEAP_AOFI,
                                                                  HEAP_AOFO};

static void text_diff(struct report *report, const struct report_diff *data)
{
    for (int n = 0; n < HEAP_QUADRANTS; n++) {
        enum heap_quadrant i = quadrant_order[n];
        text_quadrant(report, data, i);
        out_char(report->output, '\n');
        report_nested_text(report->output, "    ", diff_count_nested(&data->diff->quadrants[i]));
        if (i == HEAP_AIFO)
            text_lost(report, data->lost);
    }
    report_unknown_text(report, &data->diff->unknown);
    report_runtime_text(report);
    report_certainty_text(report);
    for (int n = 0; n < HEAP_QUADRANTS; n++) {
        enum heap_quadrant i = quadrant_order[n];
        if (!data->diff->quadrants[i].count)
            continue;
        out_char(report->output, '\n');
        text_quadrant(report, data, i);
        out_text(report->output, ":\n");
        report_groups_text(report, &data->diff->quadrants[i], false);
    }
    report_runtime_groups_text(report, false);
}

static void row_quadrant(struct row *row, enum heap_quadrant quadrant,
                         const struct heap_groups *groups)
{
    struct report_nested nested = diff_count_nested(groups);
    row_begin_object(row, heap_quadrant_name(quadrant));
    row_unsigned(row, "blocks", groups->blocks);
    row_unsigned(row, "bytes", groups->bytes);
    row_unsigned(row, "nested_blocks", nested.blocks);
    row_unsigned(row, "nested_bytes", nested.bytes);
    row_unsigned(row, "total_groups", groups->count);
    row_groups(row, "groups", groups, "quadrant", heap_quadrant_name(quadrant));
    row_end_object(row);
}

void report_diff(struct report *report, const struct report_diff *data)
{
    const struct heap_leaks *lost = data->lost;
    struct row row;
    if (report->form == REPORT_TEXT) {
        text_diff(report, data);
        return;
    }
    row_open(&row, report);
    row_position(&row, "position", data->diff->outcome.position);
    row_certainty(&row);
    row_unknown(&row, &data->diff->unknown);
    row_runtime(&row, &report->runtime);
    row_snapshot(&row, "snapshot", lost->snapshot.number ? &lost->snapshot : NULL);
    row_classes(&row, lost);
    row_text(&row, "by", view_key_name(report->view->options.by));
    for (int i = 0; i < HEAP_QUADRANTS; i++)
        row_quadrant(&row, (enum heap_quadrant)i, &data->diff->quadrants[i]);
    row_runtime_groups(&row);
    row_end_object(&row);
}
