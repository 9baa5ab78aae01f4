/* SPDX-License-Identifier: MIT */
/* The reports of `hot`, `temporary`, `lifetimes` and `timeline`. */
#include <math.h>
#include <string.h>

#include "report/activity/activity_reports.h"

/* The reports of `hot`, `temporary` and `lifetimes`, from one analysis. */

static size_t usage_shown_sites(const struct report *report, const struct heap_usage *usage)
{
    return report_shown(usage->count, report->limit);
}

/* Writes byte-seconds: in whole numbers like all counts, but with three digits where these would
 * say too little or not fit. */
static void usage_text_byte_seconds(struct text_output *output, double value)
{
    if (value >= 100 && value < 0x1p63)
        out_grouped(output, (uint64_t)(value + 0.5));
    else
        out_format(output, "%.3g", value);
    out_text(output, " byte-seconds");
}

/* Returns the words behind a number of blocks that no call released. */
static const char *usage_live_text(const struct report *report)
{
    return certainty_knows_calls(report->ending) ? " never released" : " live at the end";
}

/* Writes the amounts of a site but for its bytes. */
static void text_usage_rest(struct report *report, const struct heap_site *site)
{
    struct text_output *output = report->output;
    say(output, " by ", counted(site->allocations, "call"), ", ");
    usage_text_byte_seconds(output, heap_site_byte_seconds(site));
    if (site->never_released)
        say(output, ", ", grouped(site->never_released), usage_live_text(report));
    if (site->destroyed)
        say(output, ", ", grouped(site->destroyed), " released with their heap");
    out_char(output, '\n');
}

static void text_usage_site(struct report *report, const struct heap_site *site)
{
    say(report->output, bytes(heap_sum_value(site->bytes)));
    text_usage_rest(report, site);
}

static struct report_amount usage_amount_at(const void *usage, size_t index)
{
    const struct heap_site *site = &((const struct heap_usage *)usage)->sites[index];
    return (struct report_amount){site->key, site->allocations, heap_sum_value(site->bytes)};
}

static struct report_amounts usage_amounts(const struct heap_usage *usage)
{
    return (struct report_amounts){usage->count, usage_amount_at, usage};
}

static void usage_amounts_text(struct report *report, const void *usage, size_t index)
{
    text_usage_site(report, &((const struct heap_usage *)usage)->sites[index]);
}

static void usage_text_hot(struct report *report, const struct heap_usage *usage)
{
    say(report->output, "All: ", sized(heap_sum_value(usage->total.bytes)));
    text_usage_rest(report, &usage->total);
    report_certainty_text(report);
    const struct report_amounts amounts = usage_amounts(usage);
    report_wrapper_text(report, &amounts);
    if (report->functions) {
        const struct report_functions functions = {.groups = &amounts,
                                                   .unit = "call",
                                                   .is_by_count =
                                                       usage->options.order == HEAP_RANK_BY_CALLS,
                                                   .limit = report->limit,
                                                   .amounts = usage_amounts_text};
        report_functions_text(report, &functions);
        return;
    }
    for (size_t i = 0; i < usage_shown_sites(report, usage); i++) {
        say(report->output, "\n", BOLD);
        text_usage_site(report, &usage->sites[i]);
        out_plain(report->output);
        report_site_text(report, usage->sites[i].key);
    }
    report_site_more(report, usage->count - usage_shown_sites(report, usage));
}

static void row_usage_site(struct row *row, const struct heap_site *site)
{
    row_unsigned(row, "allocations", site->allocations);
    row_unsigned(row, "bytes", heap_sum_value(site->bytes));
    row_double(row, "byte_seconds", heap_site_byte_seconds(site));
    row_unsigned(row, "temporary", site->temporary);
    row_unsigned(row, "temporary_bytes", heap_sum_value(site->temporary_bytes));
    row_unsigned(row, "never_released", site->never_released);
    row_unsigned(row, "destroyed", site->destroyed);
}

static void data_usage(struct report *report, const struct heap_usage *usage)
{
    const struct report_amounts amounts = usage_amounts(usage);
    struct row row;
    row_open(&row, report);
    row_certainty(&row);
    row_usage_site(&row, &usage->total);
    row_text(&row, "by", view_key_name(report->view->options.by));
    row_unsigned(&row, "total_groups", usage->count);
    row_wrapper(&row, &amounts);
    ROW_EACH(&row, "groups", struct heap_site, site, usage->sites,
             section_row_listed(&row, usage->count))
    {
        row_usage_site(&row, site);
        row_site(&row, site->key);
    }
    row_end_object(&row);
}

void report_hot(struct report *report, const struct heap_usage *usage)
{
    if (report->form == REPORT_TEXT)
        usage_text_hot(report, usage);
    else
        data_usage(report, usage);
}

static void usage_text_share(struct text_output *output, const struct heap_site *site)
{
    say(output, grouped(site->temporary), " of ", counted(site->allocations, "allocation"));
    if (site->temporary && site->temporary < site->allocations)
        say(output, " (", percent(100 * (double)site->temporary / (double)site->allocations), ")");
    say(output, site->temporary == 1 ? " was temporary, " : " were temporary, ",
        sized(heap_sum_value(site->temporary_bytes)), "\n");
}

/* Names the option that lists more, if many more blocks are freed soon after their allocation. */
static void usage_text_soon(struct report *report, const struct heap_usage *usage)
{
    const struct heap_site *total = &usage->total;
    uint64_t more = total->soon > total->temporary ? total->soon - total->temporary : 0;
    if (more && more >= total->allocations / 100)
        say(report->output, grouped(more), " more (",
            percent(100 * (double)more / (double)total->allocations), ") with at most ",
            number(HEAP_USAGE_SOON), " calls of their thread between (--steps ",
            number(HEAP_USAGE_SOON), ")\n");
}

static struct report_amount usage_temporary_at(const void *usage, size_t index)
{
    const struct heap_site *site = &((const struct heap_usage *)usage)->sites[index];
    return (struct report_amount){site->key, site->temporary,
                                  heap_sum_value(site->temporary_bytes)};
}

static void usage_temporary_text(struct report *report, const void *usage, size_t index)
{
    usage_text_share(report->output, &((const struct heap_usage *)usage)->sites[index]);
}

static void usage_text_temporary(struct report *report, const struct heap_usage *usage)
{
    /* Sites are sorted, and those without temporary blocks come last: they are no groups of this
     * report. */
    size_t count = 0;
    while (count < usage->count && usage->sites[count].temporary)
        count++;
    out_text(report->output, "All: ");
    usage_text_share(report->output, &usage->total);
    usage_text_soon(report, usage);
    report_certainty_text(report);
    if (report->functions) {
        const struct report_amounts amounts = {count, usage_temporary_at, usage};
        const struct report_functions functions = {.groups = &amounts,
                                                   .unit = "block",
                                                   .is_by_count = true,
                                                   .limit = report->limit,
                                                   .amounts = usage_temporary_text};
        report_functions_text(report, &functions);
        return;
    }
    size_t shown = report_shown(count, report->limit);
    for (size_t i = 0; i < shown; i++) {
        say(report->output, "\n", BOLD);
        usage_temporary_text(report, usage, i);
        out_plain(report->output);
        report_site_text(report, usage->sites[i].key);
    }
    report_site_more(report, count - shown);
}

void report_temporary(struct report *report, const struct heap_usage *usage)
{
    if (report->form == REPORT_TEXT)
        usage_text_temporary(report, usage);
    else
        data_usage(report, usage);
}

/* The longest time that counts as none where blocks have none: the recorder's clock advances
 * about once a millisecond, so that a shorter time may be one advance or none. */
#define UNMEASURED_NS ((UINT64_C(1) << 21) - 1)

/* Returns the classes of lifetimes, joining those that no clock tells apart. */
static void usage_join_lifetimes(const struct heap_lifetime *lifetimes, bool is_time,
                                 struct heap_lifetime *joined)
{
    memcpy(joined, lifetimes, HEAP_LIFETIMES * sizeof *joined);
    for (unsigned i = 1; i < HEAP_LIFETIMES && is_time && lifetimes[0].blocks; i++) {
        uint64_t first, last;
        heap_class_range(i, &first, &last);
        if (last > UNMEASURED_NS)
            break;
        joined[0].blocks += joined[i].blocks;
        heap_sum_add(&joined[0].bytes, heap_sum_value(joined[i].bytes));
        joined[i] = (struct heap_lifetime){.blocks = 0};
    }
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
        out_duration(output, last);
    else
        report_count(output, last, "call");
}

static void usage_text_histogram(struct text_output *output, const struct heap_usage *usage,
                                 enum heap_lifetime_kind kind)
{
    struct heap_lifetime lifetimes[HEAP_LIFETIMES];
    uint64_t most = 0, all = 0;
    usage_join_lifetimes(usage->lifetimes[kind], kind == HEAP_LIFETIME_TIME, lifetimes);
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
        say(output, "  ", blocks(lifetimes[i].blocks), " (",
            percent(100 * (double)lifetimes[i].blocks / (double)all), "), ",
            rounded(heap_sum_value(lifetimes[i].bytes)), "\n");
    }
}

static void usage_text_lifetimes(struct report *report, const struct heap_usage *usage)
{
    struct text_output *output = report->output;
    say(output, blocks(usage->total.allocations), "; ", grouped(usage->total.never_released),
        usage_live_text(report), ", ", grouped(usage->total.destroyed),
        " released with their heap\n");
    report_certainty_text(report);
    say(output, BOLD, "\nLifetimes by time\n", PLAIN);
    usage_text_histogram(output, usage, HEAP_LIFETIME_TIME);
    say(output, BOLD, "\nLifetimes by calls\n", PLAIN);
    usage_text_histogram(output, usage, HEAP_LIFETIME_CALLS);
}

static void usage_row_lifetime(struct row *row, const char *unit, unsigned class,
                               const struct heap_lifetime *lifetime)
{
    uint64_t first, last;
    heap_class_range(class, &first, &last);
    if (!row->is_json)
        row_text(row, "unit", unit);
    row_unsigned(row, "shortest", first);
    row_unsigned(row, "longest", last);
    row_unsigned(row, "blocks", lifetime->blocks);
    row_unsigned(row, "bytes", heap_sum_value(lifetime->bytes));
    row_end_record(row);
}

static void usage_row_histogram(struct row *row, const char *key, const char *unit,
                                const struct heap_lifetime *lifetimes)
{
    row_begin_array(row, key);
    if (row_begin_header(row))
        usage_row_lifetime(row, unit, 0, lifetimes);
    for (unsigned i = 0; i < HEAP_LIFETIMES; i++) {
        if (!lifetimes[i].blocks)
            continue;
        row_begin_record(row);
        usage_row_lifetime(row, unit, i, &lifetimes[i]);
    }
    row_end_array(row);
}

void report_lifetimes(struct report *report, const struct heap_usage *usage)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        usage_text_lifetimes(report, usage);
        return;
    }
    row_open(&row, report);
    row_certainty(&row);
    row_unsigned(&row, "total_blocks", usage->total.allocations);
    row_unsigned(&row, "never_released", usage->total.never_released);
    row_unsigned(&row, "destroyed", usage->total.destroyed);
    usage_row_histogram(&row, "by_time", "ns", usage->lifetimes[HEAP_LIFETIME_TIME]);
    usage_row_histogram(&row, "by_calls", "calls", usage->lifetimes[HEAP_LIFETIME_CALLS]);
    row_end_object(&row);
}

/* The report of `timeline`: a plot in text, numbers in the other formats. */

/* Columns of the plot: the time or position, its bar, and the numbers beside it. */
#define BAR_MIN    8
#define BAR_USUAL  40 /* without a known width */
#define COLUMN_BAR 18
#define BAR_SPACE  2

static uint64_t usage_timeline_point_first(const struct heap_timeline *timeline, size_t index)
{
    return timeline->first + (uint64_t)index * timeline->width;
}

static double usage_per_second(double amount, uint64_t duration)
{
    return duration ? amount * 1e9 / (double)duration : 0;
}

/* Returns the quantity that the bar of a point shows. */
static double usage_timeline_bar_value(const struct report_timeline *data, size_t index)
{
    const struct heap_point *point = &data->timeline->points[index];
    uint64_t duration = heap_timeline_duration(data->timeline, index);
    switch (data->plot) {
    case TIMELINE_ALLOCATIONS:
        return usage_per_second((double)point->allocations, duration);
    case TIMELINE_ALLOCATED:
        return usage_per_second(heap_sum_real(point->allocated), duration);
    case TIMELINE_RESIDENT:
        return (double)point->resident;
    case TIMELINE_LIVE:
        break;
    }
    return heap_sum_real(point->peak);
}

/* ---- Text ---- */

/** The text beside a bar: its quantity only, with the memory of the process, or all numbers. */
enum timeline_detail { TIMELINE_LEAST, TIMELINE_WITH_MEMORY, TIMELINE_ALL, TIMELINE_DETAILS };

/* Widths of the plot, for the width of the terminal. */
struct layout {
    double most;
    size_t bar;
    enum timeline_detail detail;
};

/* Writes a rate in whole numbers; "?" for a point without duration. */
static void usage_put_rate(struct text_output *output, double amount, uint64_t duration,
                           const char *unit, const char *after)
{
    double value = usage_per_second(amount, duration) + 0.5;
    if (!duration)
        out_text(output, "?");
    else if (value < 0x1p64)
        out_grouped(output, (uint64_t)value);
    else
        out_format(output, "%.3g", value);
    say(output, " ", unit, "/s", after);
}

/* Writes the memory of the process, where a sample has it. */
static void usage_put_memory(struct text_output *output, const struct heap_point *point,
                             enum timeline_detail detail)
{
    if (!point->resident) {
        out_char(output, '-');
        return;
    }
    say(output, rounded(point->resident), " resident");
    if (detail == TIMELINE_ALL && point->mapped)
        say(output, ", ", rounded(point->mapped), " mapped");
}

static void usage_timeline_text_live(struct text_output *output, const struct heap_point *point,
                                     enum timeline_detail detail)
{
    say(output, bytes(heap_sum_value(point->peak)));
    if (detail != TIMELINE_LEAST && point->resident) {
        out_text(output, ", ");
        usage_put_memory(output, point, detail);
    }
    if (detail == TIMELINE_ALL)
        say(output, ", ", counted(point->allocations, "allocation"), ", ",
            counted(point->releases, "release"));
}

static void usage_text_numbers(struct text_output *output, const struct report_timeline *data,
                               size_t index, enum timeline_detail detail)
{
    const struct heap_point *point = &data->timeline->points[index];
    uint64_t duration = heap_timeline_duration(data->timeline, index);
    const char *after = detail == TIMELINE_ALL ? ", " : "";
    switch (data->plot) {
    case TIMELINE_LIVE:
        usage_timeline_text_live(output, point, detail);
        break;
    case TIMELINE_RESIDENT:
        usage_put_memory(output, point, detail);
        if (detail == TIMELINE_ALL)
            say(output, ", ", bytes(heap_sum_value(point->peak)), " of heap");
        break;
    case TIMELINE_ALLOCATIONS:
        usage_put_rate(output, (double)point->allocations, duration, "allocations", after);
        if (detail == TIMELINE_ALL)
            say(output, counted(point->allocations, "allocation"));
        break;
    case TIMELINE_ALLOCATED:
        usage_put_rate(output, heap_sum_real(point->allocated), duration, "bytes", after);
        if (detail == TIMELINE_ALL)
            say(output, bytes(heap_sum_value(point->allocated)), " in ",
                counted(point->allocations, "allocation"));
        break;
    }
}

/* Returns the columns that the numbers of a point take: writes them to an output without
 * descriptor. */
static size_t usage_numbers_width(const struct report_timeline *data, size_t index,
                                  enum timeline_detail detail)
{
    struct text_output measure;
    out_init(&measure, -1, false);
    usage_text_numbers(&measure, data, index, detail);
    return measure.column;
}

/* Chooses the layout. To make lines fit, bars get shorter first, then numbers fewer; a bar keeps
 * BAR_MIN columns even if lines become too long. */
static struct layout usage_find_layout(struct text_output *output,
                                       const struct report_timeline *data)
{
    struct layout result = {.bar = BAR_USUAL, .detail = TIMELINE_ALL};
    size_t widest[TIMELINE_DETAILS] = {0};
    for (size_t i = 0; i < data->timeline->count; i++) {
        double value = usage_timeline_bar_value(data, i);
        result.most = value > result.most ? value : result.most;
        for (int detail = 0; output->width && detail < TIMELINE_DETAILS; detail++) {
            size_t width = usage_numbers_width(data, i, (enum timeline_detail)detail);
            widest[detail] = width > widest[detail] ? width : widest[detail];
        }
    }
    if (!output->width)
        return result;
    size_t fixed = COLUMN_BAR + BAR_SPACE;
    while (result.detail != TIMELINE_LEAST &&
           output->width < fixed + widest[result.detail] + BAR_MIN)
        result.detail--;
    fixed += widest[result.detail];
    size_t room = output->width > fixed ? output->width - fixed : 0;
    result.bar = room < BAR_MIN ? BAR_MIN : room;
    return result;
}

/* Writes seconds, with as many digits as the points need to differ. */
static void usage_timeline_text_time(struct text_output *output, uint64_t time, uint64_t width)
{
    int digits = 9;
    for (; digits > 0 && width % 10 == 0; width /= 10)
        digits--;
    out_format(output, "+%.*fs", digits, (double)time / 1e9);
}

static void usage_text_point(struct text_output *output, const struct report_timeline *data,
                             size_t index, const struct layout *layout)
{
    out_text(output, "  ");
    if (data->axis == HEAP_AXIS_TIME)
        usage_timeline_text_time(output, usage_timeline_point_first(data->timeline, index),
                                 data->timeline->width);
    else
        out_position(output, data->timeline->points[index].position);
    out_tab(output, COLUMN_BAR);
    out_bar(output, layout->most > 0 ? usage_timeline_bar_value(data, index) / layout->most : 0,
            layout->bar);
    out_text(output, "  ");
    usage_text_numbers(output, data, index, layout->detail);
    out_char(output, '\n');
}

/* Returns the most live bytes; UINT64_MAX if only a part of the blocks counts. */
static uint64_t usage_timeline_heap_peak(const struct report_timeline *data)
{
    struct heap_sum most = {.low = 0};
    for (size_t i = 0; i < data->timeline->count; i++)
        if (heap_sum_is_less(most, data->timeline->points[i].peak))
            most = data->timeline->points[i].peak;
    return data->is_part ? UINT64_MAX : heap_sum_value(most);
}

static void usage_text_timeline(struct report *report, const struct report_timeline *data)
{
    static const char *const titles[] = {"Live bytes at most, allocations and releases",
                                         "Allocations per second", "Bytes allocated per second",
                                         "Resident memory of the process at most, by samples"};
    struct layout layout = usage_find_layout(report->output, data);
    say(report->output, BOLD, titles[data->plot], ", from each moment on\n", PLAIN);
    if (data->plot == TIMELINE_LIVE || data->plot == TIMELINE_RESIDENT)
        report_memory_samples_text(report, &data->timeline->memory, usage_timeline_heap_peak(data),
                                   2);
    if (data->plot == TIMELINE_LIVE && data->timeline->count)
        out_text(report->output, "  with the C/C++ runtime's own blocks, unlike peak\n");
    for (size_t i = 0; i < data->timeline->count; i++)
        usage_text_point(report->output, data, i, &layout);
    if (!data->timeline->count)
        out_text(report->output, "  nothing was allocated\n");
    report_certainty_text(report);
}

/* ---- JSON and CSV ---- */

/* Returns a rate; NAN for a point without duration. */
static double usage_rate(double amount, uint64_t duration)
{
    return duration ? usage_per_second(amount, duration) : NAN;
}

static void usage_row_point(struct row *row, const struct report_timeline *data,
                            const struct heap_point *point)
{
    const struct heap_timeline *timeline = data->timeline;
    size_t index = row->is_header ? 0 : (size_t)(point - timeline->points);
    uint64_t duration = row->is_header ? 0 : heap_timeline_duration(timeline, index);
    row_unsigned(row, "first", usage_timeline_point_first(timeline, index));
    row_position(row, "position", point->position);
    row_unsigned(row, "peak_bytes", heap_sum_value(point->peak));
    row_unsigned(row, "live_bytes", heap_sum_value(point->live.bytes));
    row_unsigned(row, "live_blocks", point->live.blocks);
    row_unsigned(row, "allocations", point->allocations);
    row_unsigned(row, "allocated_bytes", heap_sum_value(point->allocated));
    row_unsigned(row, "releases", point->releases);
    row_count(row, "duration_ns", data->has_times ? duration : TTD_UNKNOWN);
    row_double(row, "allocations_per_second", usage_rate((double)point->allocations, duration));
    row_double(row, "bytes_per_second", usage_rate(heap_sum_real(point->allocated), duration));
    row_count(row, "resident_bytes", point->resident ? point->resident : TTD_UNKNOWN);
    row_count(row, "mapped_bytes", point->mapped ? point->mapped : TTD_UNKNOWN);
}

void report_timeline(struct report *report, const struct report_timeline *data)
{
    const struct heap_timeline *timeline = data->timeline;
    struct row row;
    if (report->form == REPORT_TEXT) {
        usage_text_timeline(report, data);
        return;
    }
    row_open(&row, report);
    row_certainty(&row);
    row_bool(&row, "runtime_counted", true);
    row_text(&row, "over", data->axis == HEAP_AXIS_TIME ? "time" : "position");
    row_unsigned(&row, "width", timeline->width);
    ROW_EACH(&row, "points", struct heap_point, point, timeline->points, timeline->count)
    usage_row_point(&row, data, point);
    row_end_object(&row);
}
