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

static void json_known_sums(struct json *json, enum json_prefix prefix, enum report_unit unit,
                            uint64_t count, uint64_t amount)
{
    static const char *const names[][2][2] = {
        [MATCHED] = {{"blocks", "bytes"}, {"findings", "calls"}},
        [SUPPRESSED] = {{"suppressed_blocks", "suppressed_bytes"},
                        {"suppressed_findings", "suppressed_calls"}},
        [KNOWN] = {{"known_blocks", "known_bytes"}, {"known_findings", "known_calls"}}};
    json_unsigned(json, names[prefix][unit][0], count);
    json_unsigned(json, names[prefix][unit][1], amount);
}

static void json_growths(struct report *report, struct json *json)
{
    json_unsigned(json, "grown", report->known_findings->growth_count);
    json_begin_array(json, "growths");
    for (size_t i = 0; i < known_shown_growths(report); i++) {
        const struct report_growth *growth = &report->known_findings->growths[i];
        json_begin_object(json, NULL);
        json_text(json, "kind", baseline_kind_name(growth->kind));
        json_unsigned(json, "before", growth->before);
        json_unsigned(json, "now", growth->now);
        json_unsigned(json, "stack_id", growth->stack);
        report_stack_json(report, json, "stack", growth->stack);
        json_end_object(json);
    }
    json_end_array(json);
}

void report_known_findings_json(struct report *report, struct json *json, enum report_unit unit)
{
    const struct report_known_findings *known_findings = report->known_findings;
    if (known_findings && known_findings->has_suppressions) {
        json_known_sums(json, SUPPRESSED, unit, known_findings->suppressed,
                        known_findings->suppressed_amount);
        json_begin_array(json, "suppressions");
        for (size_t i = 0; i < known_findings->suppressions->count; i++) {
            const struct suppression *rule = &known_findings->suppressions->rules[i];
            if (!rule->matched)
                continue;
            json_begin_object(json, NULL);
            json_known_sums(json, MATCHED, unit, rule->matched, rule->amount);
            json_string(json, "rule", rule->name);
            json_text(json, "file", rule->file);
            json_unsigned(json, "line", rule->line);
            json_end_object(json);
        }
        json_end_array(json);
    }
    if (known_findings && known_findings->has_baseline) {
        json_known_sums(json, KNOWN, unit, known_findings->in_baseline,
                        known_findings->in_baseline_amount);
        json_growths(report, json);
    }
}
