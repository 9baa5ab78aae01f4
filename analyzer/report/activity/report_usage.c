/* SPDX-License-Identifier: MIT */
/* The reports of `hot`, `temporary` and `lifetimes`, which one analysis answers. */
#include "report/activity/activity_reports.h"

static size_t usage_shown_sites(const struct report_usage *data)
{
    return report_shown(data->usage->count, data->limit);
}

/* Writes byte-seconds: in whole numbers like all counts, but with three digits where these would
 * say too little or not fit. */
static void text_byte_seconds(struct text_output *output, double value)
{
    if (value >= 100 && value < 0x1p63)
        out_grouped(output, (uint64_t)(value + 0.5));
    else
        out_format(output, "%.3g", value);
    out_text(output, " byte-seconds");
}

static void text_usage_site(struct text_output *output, const struct heap_site *site)
{
    report_count(output, heap_sum_value(site->bytes), "byte");
    out_text(output, " by ");
    report_count(output, site->allocations, "call");
    out_text(output, ", ");
    text_byte_seconds(output, site->byte_seconds);
    if (site->never_released) {
        out_text(output, ", ");
        out_grouped(output, site->never_released);
        out_text(output, " never released");
    }
    if (site->destroyed) {
        out_text(output, ", ");
        out_grouped(output, site->destroyed);
        out_text(output, " released with their heap");
    }
    out_char(output, '\n');
}

static struct report_amount usage_amount_at(const void *usage, size_t index)
{
    const struct heap_site *site = &((const struct heap_usage *)usage)->sites[index];
    return (struct report_amount){site->key, site->allocations, heap_sum_value(site->bytes)};
}

static struct report_amounts usage_amounts(const struct report_usage *data)
{
    return (struct report_amounts){data->usage->count, usage_amount_at, data->usage};
}

static void usage_amounts_text(struct report *report, const void *usage, size_t index)
{
    text_usage_site(report->output, &((const struct heap_usage *)usage)->sites[index]);
}

void text_hot(struct report *report, const struct report_usage *data)
{
    const struct heap_usage *usage = data->usage;
    out_text(report->output, "All: ");
    text_usage_site(report->output, &usage->total);
    report_certainty_text(report);
    const struct report_amounts amounts = usage_amounts(data);
    report_wrapper_text(report, &amounts);
    if (report->functions) {
        const struct report_functions functions = {.groups = &amounts,
                                                   .unit = "call",
                                                   .is_by_count = data->is_by_calls,
                                                   .limit = data->limit,
                                                   .amounts = usage_amounts_text};
        report_functions_text(report, &functions);
        return;
    }
    for (size_t i = 0; i < usage_shown_sites(data); i++) {
        out_char(report->output, '\n');
        out_bold(report->output);
        text_usage_site(report->output, &usage->sites[i]);
        out_plain(report->output);
        report_site_text(report, usage->sites[i].key);
    }
    report_site_more(report, usage->count - usage_shown_sites(data));
}

static void json_usage_site(struct json *json, const struct heap_site *site)
{
    json_unsigned(json, "allocations", site->allocations);
    json_unsigned(json, "bytes", heap_sum_value(site->bytes));
    json_double(json, "byte_seconds", site->byte_seconds);
    json_unsigned(json, "temporary", site->temporary);
    json_unsigned(json, "temporary_bytes", heap_sum_value(site->temporary_bytes));
    json_unsigned(json, "never_released", site->never_released);
    json_unsigned(json, "destroyed", site->destroyed);
}

void json_hot(struct report *report, const struct report_usage *data)
{
    const struct heap_usage *usage = data->usage;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    report_certainty_json(report, &json);
    json_usage_site(&json, &usage->total);
    json_text(&json, "by", view_key_name(report->view->options.by));
    json_unsigned(&json, "total_groups", usage->count);
    const struct report_amounts amounts = usage_amounts(data);
    report_wrapper_json(report, &json, &amounts);
    json_begin_array(&json, "groups");
    for (size_t i = 0; i < usage_shown_sites(data); i++) {
        json_begin_object(&json, NULL);
        json_usage_site(&json, &usage->sites[i]);
        report_site_json(report, &json, usage->sites[i].key);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
}

void csv_hot(struct report *report, const struct report_usage *data)
{
    struct csv csv;
    report_csv_begin(report, &csv);
    report_site_header(report, &csv,
                       "allocations,bytes,byte_seconds,temporary,temporary_bytes,never_released,"
                       "destroyed");
    size_t count = report_listed(report, data->usage->count, data->limit);
    for (size_t i = 0; i < count; i++) {
        const struct heap_site *site = &data->usage->sites[i];
        csv_unsigned(&csv, site->allocations);
        csv_unsigned(&csv, heap_sum_value(site->bytes));
        csv_double(&csv, site->byte_seconds);
        csv_unsigned(&csv, site->temporary);
        csv_unsigned(&csv, heap_sum_value(site->temporary_bytes));
        csv_unsigned(&csv, site->never_released);
        csv_unsigned(&csv, site->destroyed);
        report_site_csv(report, &csv, site->key);
        csv_end_row(&csv);
    }
}

static void text_share(struct text_output *output, const struct heap_site *site)
{
    out_grouped(output, site->temporary);
    out_text(output, " of ");
    report_count(output, site->allocations, "allocation");
    out_text(output, site->temporary == 1 ? " was temporary, " : " were temporary, ");
    report_count(output, heap_sum_value(site->temporary_bytes), "byte");
    out_char(output, '\n');
}

void text_temporary(struct report *report, const struct report_usage *data)
{
    const struct heap_usage *usage = data->usage;
    out_text(report->output, "All: ");
    text_share(report->output, &usage->total);
    report_certainty_text(report);
    for (size_t i = 0; i < usage_shown_sites(data) && usage->sites[i].temporary; i++) {
        out_char(report->output, '\n');
        out_bold(report->output);
        text_share(report->output, &usage->sites[i]);
        out_plain(report->output);
        report_site_text(report, usage->sites[i].key);
    }
    size_t count = 0;
    /* Sites are sorted, and those without temporary blocks come last: they are no groups of this
     * report. */
    while (count < usage->count && usage->sites[count].temporary)
        count++;
    if (count > usage_shown_sites(data))
        report_site_more(report, count - usage_shown_sites(data));
}

/* Writes nanoseconds as a time of three digits. */
static void usage_text_time(struct text_output *output, uint64_t time)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double value = (double)time;
    size_t unit = 0;
    while (value >= 1000 && unit < 3) {
        value /= 1000;
        unit++;
    }
    out_format(output, "%.3g %s", value, units[unit]);
}

static void text_usage_class(struct text_output *output, unsigned class, bool is_time)
{
    uint64_t first, last;
    heap_class_range(class, &first, &last);
    if (is_time && !last) {
        out_text(output, "  too short to measure");
        return;
    }
    out_text(output, "  up to ");
    if (is_time)
        usage_text_time(output, last);
    else
        report_count(output, last, "call");
}

static void text_histogram(struct text_output *output, const struct heap_usage *usage,
                           enum heap_lifetime_kind kind)
{
    const struct heap_lifetime *lifetimes = usage->lifetimes[kind];
    uint64_t most = 0, all = 0;
    for (unsigned i = 0; i < HEAP_LIFETIMES; i++) {
        most = lifetimes[i].blocks > most ? lifetimes[i].blocks : most;
        all += lifetimes[i].blocks;
    }
    for (unsigned i = 0; i < HEAP_LIFETIMES; i++) {
        if (!lifetimes[i].blocks)
            continue;
        text_usage_class(output, i, kind == HEAP_LIFETIME_TIME);
        out_tab(output, 25);
        out_bar(output, (double)lifetimes[i].blocks / (double)most, 20);
        out_text(output, "  ");
        report_count(output, lifetimes[i].blocks, "block");
        out_format(output, " (%.0f %%), ", 100 * (double)lifetimes[i].blocks / (double)all);
        out_size(output, heap_sum_value(lifetimes[i].bytes));
        out_char(output, '\n');
    }
}

void text_lifetimes(struct report *report, const struct report_usage *data)
{
    const struct heap_usage *usage = data->usage;
    struct text_output *output = report->output;
    report_count(output, usage->total.allocations, "block");
    out_text(output, "; ");
    out_grouped(output, usage->total.never_released);
    out_text(output, " never released, ");
    out_grouped(output, usage->total.destroyed);
    out_text(output, " released with their heap\n");
    report_certainty_text(report);
    out_bold(output);
    out_text(output, "\nLifetimes by time\n");
    out_plain(output);
    text_histogram(output, usage, HEAP_LIFETIME_TIME);
    out_bold(output);
    out_text(output, "\nLifetimes by calls\n");
    out_plain(output);
    text_histogram(output, usage, HEAP_LIFETIME_CALLS);
}

static void json_histogram(struct json *json, const char *key, const struct heap_usage *usage,
                           enum heap_lifetime_kind kind)
{
    const struct heap_lifetime *lifetimes = usage->lifetimes[kind];
    json_begin_array(json, key);
    for (unsigned i = 0; i < HEAP_LIFETIMES; i++) {
        if (!lifetimes[i].blocks)
            continue;
        uint64_t first, last;
        heap_class_range(i, &first, &last);
        json_begin_object(json, NULL);
        json_unsigned(json, "shortest", first);
        json_unsigned(json, "longest", last);
        json_unsigned(json, "blocks", lifetimes[i].blocks);
        json_unsigned(json, "bytes", heap_sum_value(lifetimes[i].bytes));
        json_end_object(json);
    }
    json_end_array(json);
}

void json_lifetimes(struct report *report, const struct report_usage *data)
{
    const struct heap_usage *usage = data->usage;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    report_certainty_json(report, &json);
    json_unsigned(&json, "total_blocks", usage->total.allocations);
    json_unsigned(&json, "never_released", usage->total.never_released);
    json_unsigned(&json, "destroyed", usage->total.destroyed);
    json_histogram(&json, "by_time", usage, HEAP_LIFETIME_TIME);
    json_histogram(&json, "by_calls", usage, HEAP_LIFETIME_CALLS);
    json_end_object(&json);
}

static void csv_histogram(struct csv *csv, const char *unit, const struct heap_usage *usage,
                          enum heap_lifetime_kind kind)
{
    const struct heap_lifetime *lifetimes = usage->lifetimes[kind];
    for (unsigned i = 0; i < HEAP_LIFETIMES; i++) {
        if (!lifetimes[i].blocks)
            continue;
        uint64_t first, last;
        heap_class_range(i, &first, &last);
        csv_text(csv, unit);
        csv_unsigned(csv, first);
        csv_unsigned(csv, last);
        csv_unsigned(csv, lifetimes[i].blocks);
        csv_unsigned(csv, heap_sum_value(lifetimes[i].bytes));
        csv_end_row(csv);
    }
}

void csv_lifetimes(struct report *report, const struct report_usage *data)
{
    struct csv csv;
    report_csv_begin(report, &csv);
    csv_header(&csv, "unit,shortest,longest,blocks,bytes");
    csv_histogram(&csv, "ns", data->usage, HEAP_LIFETIME_TIME);
    csv_histogram(&csv, "calls", data->usage, HEAP_LIFETIME_CALLS);
}
