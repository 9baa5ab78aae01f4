/* SPDX-License-Identifier: MIT */
/* Totals of findings that were not reported, because they are suppressed or in the baseline. */
#include "report/sections/sections.h"
#include "report/writers/escape.h"
#include "view/baseline.h"

/* Names of the units, by report_unit. */
static const struct {
    const char *count;
    const char *amount;
} units[] = {{"block", "byte"}, {"finding", "call"}};

static void text_known_sums(struct text_output *output, enum report_unit unit, uint64_t count,
                            uint64_t amount)
{
    report_count(output, count, units[unit].count);
    out_text(output, ", ");
    report_count(output, amount, units[unit].amount);
}

/* Number of growths that are shown. */
static size_t known_shown_growths(const struct report *report)
{
    return report_shown(report->known_findings->growth_count, report->view->options.limit);
}

static void text_growths(struct report *report, enum report_unit unit)
{
    const struct report_known_findings *known_findings = report->known_findings;
    struct text_output *output = report->output;
    if (!known_findings->growth_count)
        return;
    out_bold(output);
    out_text(output, "Grown since the baseline: ");
    report_count(output, known_findings->growth_count, unit == REPORT_BLOCKS ? "stack" : "finding");
    out_plain(output);
    out_char(output, '\n');
    for (size_t i = 0; i < known_shown_growths(report); i++) {
        const struct report_growth *growth = &known_findings->growths[i];
        out_text(output, "  ");
        if (unit == REPORT_FINDINGS)
            out_format(output, "%s: ", baseline_kind_name(growth->kind));
        out_text(output, "from ");
        out_grouped(output, growth->before);
        out_text(output, " to ");
        report_count(output, growth->now, unit == REPORT_BLOCKS ? "block" : "call");
        out_char(output, '\n');
        report_stack_text(report, growth->stack);
    }
    if (known_shown_growths(report) < known_findings->growth_count)
        out_format(output, "  … and %zu more\n",
                   known_findings->growth_count - known_shown_growths(report));
}

void report_known_findings_text(struct report *report, enum report_unit unit)
{
    const struct report_known_findings *known_findings = report->known_findings;
    struct text_output *output = report->output;
    if (known_findings && known_findings->suppressed) {
        out_text(output, "Suppressed: ");
        text_known_sums(output, unit, known_findings->suppressed,
                        known_findings->suppressed_amount);
        out_char(output, '\n');
        for (size_t i = 0; i < known_findings->suppressions->count; i++) {
            const struct suppression *rule = &known_findings->suppressions->rules[i];
            if (!rule->matched)
                continue;
            out_text(output, "  ");
            text_known_sums(output, unit, rule->matched, rule->amount);
            out_text(output, " by ");
            escape_text(output, rule->name);
            out_text(output, " (");
            escape_text(output, escape_string(rule->file));
            out_format(output, ":%zu)\n", rule->line);
        }
    }
    if (known_findings && known_findings->has_baseline) {
        out_text(output, "In the baseline: ");
        text_known_sums(output, unit, known_findings->in_baseline,
                        known_findings->in_baseline_amount);
        out_char(output, '\n');
        text_growths(report, unit);
    }
}

/* The pairs of members for sums: matched by a rule, suppressed by any rule, and in the baseline. */
enum json_prefix { MATCHED, SUPPRESSED, KNOWN };

static void row_known_sums(struct row *row, enum json_prefix prefix, enum report_unit unit,
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

static void row_growths(struct row *row)
{
    const struct report *report = row->report;
    row_unsigned(row, "grown", report->known_findings->growth_count);
    row_begin_array(row, "growths");
    for (size_t i = 0; i < known_shown_growths(report); i++) {
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
        row_known_sums(row, SUPPRESSED, unit, known_findings->suppressed,
                       known_findings->suppressed_amount);
        row_begin_array(row, "suppressions");
        for (size_t i = 0; i < known_findings->suppressions->count; i++) {
            const struct suppression *rule = &known_findings->suppressions->rules[i];
            if (!rule->matched)
                continue;
            row_begin_object(row, NULL);
            row_known_sums(row, MATCHED, unit, rule->matched, rule->amount);
            row_string(row, "rule", rule->name);
            row_text(row, "file", rule->file);
            row_unsigned(row, "line", rule->line);
            row_end_object(row);
        }
        row_end_array(row);
    }
    if (known_findings && known_findings->has_baseline) {
        row_known_sums(row, KNOWN, unit, known_findings->in_baseline,
                       known_findings->in_baseline_amount);
        row_growths(row);
    }
}
