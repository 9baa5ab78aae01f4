/* SPDX-License-Identifier: MIT */
/* What was not reported because it is known. */
#include "report/escape.h"
#include "report/format.h"

/* By what is counted. */
static const struct {
    const char *count;
    const char *amount;
} units[] = {{"block", "byte"}, {"finding", "call"}};

static void text_sums(out *output, report_unit unit, uint64_t count, uint64_t amount)
{
    report_count(output, count, units[unit].count);
    out_text(output, ", ");
    report_count(output, amount, units[unit].amount);
}

void report_known_text(report *to, report_unit unit)
{
    const report_known *known = to->known;
    out *output = to->output;
    if (known && known->suppressed) {
        out_text(output, "Suppressed: ");
        text_sums(output, unit, known->suppressed, known->suppressed_amount);
        out_char(output, '\n');
        for (size_t i = 0; i < known->rules->count; i++) {
            const suppression *rule = &known->rules->rules[i];
            if (!rule->matched)
                continue;
            out_text(output, "  ");
            text_sums(output, unit, rule->matched, rule->amount);
            out_text(output, " by ");
            escape_text(output, rule->name);
            out_text(output, " (");
            escape_text(output, escape_string(rule->file));
            out_format(output, ":%zu)\n", rule->line);
        }
    }
    if (known && known->has_baseline) {
        out_text(output, "In the baseline: ");
        text_sums(output, unit, known->old, known->old_amount);
        out_char(output, '\n');
    }
}

/* Members of sums: all that a rule matched, all suppressed, and all in the baseline. */
typedef enum json_prefix { MATCHED, SUPPRESSED, KNOWN } json_prefix;

static void json_sums(json *writer, json_prefix prefix, report_unit unit, uint64_t count,
                      uint64_t amount)
{
    static const char *const names[][2][2] = {
        [MATCHED] = {{"blocks", "bytes"}, {"findings", "calls"}},
        [SUPPRESSED] = {{"suppressed_blocks", "suppressed_bytes"},
                        {"suppressed_findings", "suppressed_calls"}},
        [KNOWN] = {{"known_blocks", "known_bytes"}, {"known_findings", "known_calls"}}};
    json_unsigned(writer, names[prefix][unit][0], count);
    json_unsigned(writer, names[prefix][unit][1], amount);
}

void report_known_json(report *to, json *writer, report_unit unit)
{
    const report_known *known = to->known;
    if (known && known->has_suppressions) {
        json_sums(writer, SUPPRESSED, unit, known->suppressed, known->suppressed_amount);
        json_begin_array(writer, "suppressions");
        for (size_t i = 0; i < known->rules->count; i++) {
            const suppression *rule = &known->rules->rules[i];
            if (!rule->matched)
                continue;
            json_begin_object(writer, NULL);
            json_sums(writer, MATCHED, unit, rule->matched, rule->amount);
            json_string(writer, "rule", rule->name);
            json_text(writer, "file", rule->file);
            json_unsigned(writer, "line", rule->line);
            json_end_object(writer);
        }
        json_end_array(writer);
    }
    if (known && known->has_baseline)
        json_sums(writer, KNOWN, unit, known->old, known->old_amount);
}
