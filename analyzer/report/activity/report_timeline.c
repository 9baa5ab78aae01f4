/* SPDX-License-Identifier: MIT */
/* The report of `timeline`: a plot in text, numbers in the other formats. */
#include "report/activity/activity_reports.h"

#include <math.h>

/* Columns of the plot: the time or position, its bar, and the numbers beside it. */
#define BAR_MIN    8
#define BAR_USUAL  40 /* without a known width */
#define COLUMN_BAR 18
#define BAR_SPACE  2

static uint64_t timeline_point_first(const struct heap_timeline *timeline, size_t index)
{
    return timeline->first + (uint64_t)index * timeline->width;
}

static double as_double(struct heap_sum sum)
{
    return (double)sum.high * 0x1p64 + (double)sum.low;
}

static double per_second(double amount, uint64_t duration)
{
    return duration ? amount * 1e9 / (double)duration : 0;
}

/* Returns the quantity that the bar of a point shows. */
static double timeline_bar_value(const struct report_timeline *data, size_t index)
{
    const struct heap_point *point = &data->timeline->points[index];
    uint64_t duration = heap_timeline_duration(data->timeline, index);
    switch (data->plot) {
    case TIMELINE_ALLOCATIONS:
        return per_second((double)point->allocations, duration);
    case TIMELINE_ALLOCATED:
        return per_second(as_double(point->allocated), duration);
    case TIMELINE_LIVE:
        break;
    }
    return as_double(point->peak);
}

/* ---- Text ---- */

/* Widths of the plot, for the width of the terminal. */
struct layout {
    double most;
    size_t bar;
    /** Only the quantity of the bar is written beside it. */
    bool is_narrow;
};

static void put_count(struct text_output *output, uint64_t count, const char *unit,
                      const char *after)
{
    report_count(output, count, unit);
    out_text(output, after);
}

/* Writes a rate in whole numbers; "?" for a point without duration. */
static void put_rate(struct text_output *output, double amount, uint64_t duration, const char *unit,
                     const char *after)
{
    double value = per_second(amount, duration) + 0.5;
    if (!duration)
        out_text(output, "?");
    else if (value < 0x1p64)
        out_grouped(output, (uint64_t)value);
    else
        out_format(output, "%.3g", value);
    out_char(output, ' ');
    out_text(output, unit);
    out_text(output, "/s");
    out_text(output, after);
}

static void text_numbers(struct text_output *output, const struct report_timeline *data,
                         size_t index, bool is_narrow)
{
    const struct heap_point *point = &data->timeline->points[index];
    uint64_t duration = heap_timeline_duration(data->timeline, index);
    switch (data->plot) {
    case TIMELINE_ALLOCATIONS:
        put_rate(output, (double)point->allocations, duration, "allocations",
                 is_narrow ? "" : ", ");
        break;
    case TIMELINE_ALLOCATED:
        put_rate(output, as_double(point->allocated), duration, "bytes", is_narrow ? "" : ", ");
        break;
    case TIMELINE_LIVE:
        put_count(output, heap_sum_value(point->peak), "byte", is_narrow ? "" : ", ");
        break;
    }
    if (is_narrow)
        return;
    if (data->plot == TIMELINE_ALLOCATED)
        put_count(output, heap_sum_value(point->allocated), "byte", " in ");
    put_count(output, point->allocations, "allocation", data->plot == TIMELINE_LIVE ? ", " : "");
    if (data->plot == TIMELINE_LIVE)
        put_count(output, point->releases, "release", "");
}

/* Returns the columns that the numbers of a point take: writes them to an output without
 * descriptor. */
static size_t numbers_width(const struct report_timeline *data, size_t index, bool is_narrow)
{
    struct text_output measure;
    out_init(&measure, -1, false);
    text_numbers(&measure, data, index, is_narrow);
    return measure.column;
}

/* Chooses the layout. To make lines fit, bars get shorter first, then numbers fewer; a bar keeps
 * BAR_MIN columns even if lines become too long. */
static struct layout find_layout(struct text_output *output, const struct report_timeline *data)
{
    struct layout result = {.bar = BAR_USUAL};
    size_t widest[2] = {0, 0};
    for (size_t i = 0; i < data->timeline->count; i++) {
        double value = timeline_bar_value(data, i);
        result.most = value > result.most ? value : result.most;
        for (int narrow = 0; output->width && narrow < 2; narrow++) {
            size_t width = numbers_width(data, i, narrow);
            widest[narrow] = width > widest[narrow] ? width : widest[narrow];
        }
    }
    if (!output->width)
        return result;
    size_t fixed = COLUMN_BAR + BAR_SPACE;
    result.is_narrow = output->width < fixed + widest[0] + BAR_MIN;
    fixed += widest[result.is_narrow];
    size_t room = output->width > fixed ? output->width - fixed : 0;
    result.bar = room < BAR_MIN ? BAR_MIN : room;
    return result;
}

/* Writes seconds, with as many digits as the points need to differ. */
static void timeline_text_time(struct text_output *output, uint64_t time, uint64_t width)
{
    int digits = 9;
    for (; digits > 0 && width % 10 == 0; width /= 10)
        digits--;
    out_format(output, "+%.*fs", digits, (double)time / 1e9);
}

static void text_point(struct text_output *output, const struct report_timeline *data, size_t index,
                       const struct layout *layout)
{
    out_text(output, "  ");
    if (data->axis == HEAP_AXIS_TIME)
        timeline_text_time(output, timeline_point_first(data->timeline, index),
                           data->timeline->width);
    else
        out_position(output, data->timeline->points[index].position);
    out_tab(output, COLUMN_BAR);
    out_bar(output, layout->most > 0 ? timeline_bar_value(data, index) / layout->most : 0,
            layout->bar);
    out_text(output, "  ");
    text_numbers(output, data, index, layout->is_narrow);
    out_char(output, '\n');
}

static void text_timeline(struct report *report, const struct report_timeline *data)
{
    static const char *const titles[] = {"Live bytes at most, allocations and releases",
                                         "Allocations per second", "Bytes allocated per second"};
    struct layout layout = find_layout(report->output, data);
    out_bold(report->output);
    out_text(report->output, titles[data->plot]);
    out_text(report->output, ", from each moment on\n");
    out_plain(report->output);
    for (size_t i = 0; i < data->timeline->count; i++)
        text_point(report->output, data, i, &layout);
    if (!data->timeline->count)
        out_text(report->output, "  nothing was allocated\n");
    report_certainty_text(report);
}

/* ---- JSON and CSV ---- */

/* Returns a rate; NAN for a point without duration. */
static double rate(double amount, uint64_t duration)
{
    return duration ? per_second(amount, duration) : NAN;
}

static void row_point(struct row *row, const struct report_timeline *data,
                      const struct heap_point *point)
{
    const struct heap_timeline *timeline = data->timeline;
    size_t index = row->is_header ? 0 : (size_t)(point - timeline->points);
    uint64_t duration = row->is_header ? 0 : heap_timeline_duration(timeline, index);
    row_unsigned(row, "first", timeline_point_first(timeline, index));
    row_position(row, "position", point->position);
    row_unsigned(row, "peak_bytes", heap_sum_value(point->peak));
    row_unsigned(row, "live_bytes", heap_sum_value(point->live.bytes));
    row_unsigned(row, "live_blocks", point->live.blocks);
    row_unsigned(row, "allocations", point->allocations);
    row_unsigned(row, "allocated_bytes", heap_sum_value(point->allocated));
    row_unsigned(row, "releases", point->releases);
    row_count(row, "duration_ns", data->has_times ? duration : TTD_UNKNOWN);
    row_double(row, "allocations_per_second", rate((double)point->allocations, duration));
    row_double(row, "bytes_per_second", rate(as_double(point->allocated), duration));
}

void report_timeline(struct report *report, const struct report_timeline *data)
{
    const struct heap_timeline *timeline = data->timeline;
    struct row row;
    if (report->form == REPORT_TEXT) {
        text_timeline(report, data);
        return;
    }
    row_open(&row, report);
    row_certainty(&row);
    row_text(&row, "over", data->axis == HEAP_AXIS_TIME ? "time" : "position");
    row_unsigned(&row, "width", timeline->width);
    ROW_EACH(&row, "points", struct heap_point, point, timeline->points, timeline->count)
    row_point(&row, data, point);
    row_end_object(&row);
}
