/* SPDX-License-Identifier: MIT */
#include "report/formats.h"

/* Columns of the plot: its bars, and what stands beside them. */
#define BAR_WIDTH    40
#define COLUMN_BAR   18
#define COLUMN_BYTES 60

static uint64_t first_of(const heap_timeline *timeline, size_t index)
{
    return timeline->first + (uint64_t)index * timeline->width;
}

static double as_double(heap_sum sum)
{
    return (double)sum.high * 0x1p64 + (double)sum.low;
}

static double highest(const heap_timeline *timeline)
{
    double most = 0;
    for (size_t i = 0; i < timeline->count; i++) {
        double peak = as_double(timeline->points[i].peak);
        most = peak > most ? peak : most;
    }
    return most;
}

/* A bar in eighths of a column. Counted by hand, since its characters are of three bytes. */
static void text_bar(out *output, double share)
{
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    unsigned eighths = (unsigned)(share * BAR_WIDTH * 8 + 0.5);
    unsigned used = eighths / 8;
    for (unsigned i = 0; i < used; i++)
        out_text(output, "█");
    out_text(output, parts[eighths % 8]);
    used += eighths % 8 > 0;
    for (; used < COLUMN_BYTES - COLUMN_BAR; used++)
        out_char(output, ' ');
}

static void text_point(out *output, const report_timeline *data, size_t index, double most)
{
    const heap_timeline *timeline = data->timeline;
    const heap_point *point = &timeline->points[index];
    uint64_t first = first_of(timeline, index);
    out_text(output, "  ");
    if (data->axis == HEAP_AXIS_TIME)
        out_format(output, "+%.6fs", (double)first / 1e9);
    else
        out_position(output, (ttd_position){first, 0});
    out_tab(output, COLUMN_BAR);
    text_bar(output, most > 0 ? as_double(point->peak) / most : 0);
    report_count(output, heap_sum_value(point->peak), "byte");
    out_text(output, ", ");
    report_count(output, point->allocations, "allocation");
    out_text(output, ", ");
    report_count(output, point->releases, "release");
    out_char(output, '\n');
}

void text_timeline(report *to, const report_timeline *data)
{
    const heap_timeline *timeline = data->timeline;
    double most = highest(timeline);
    out_bold(to->output);
    out_text(to->output, "Live bytes at most, allocations and releases, from each moment on\n");
    out_plain(to->output);
    for (size_t i = 0; i < timeline->count; i++)
        text_point(to->output, data, i, most);
    if (!timeline->count)
        out_text(to->output, "  nothing was allocated\n");
    report_doubts_text(to);
}

void json_timeline(report *to, const report_timeline *data)
{
    const heap_timeline *timeline = data->timeline;
    json writer;
    json_init(&writer, to->output, true);
    json_begin_object(&writer, NULL);
    report_doubts_json(to, &writer);
    json_text(&writer, "over", data->axis == HEAP_AXIS_TIME ? "time" : "position");
    json_unsigned(&writer, "width", timeline->width);
    json_begin_array(&writer, "points");
    for (size_t i = 0; i < timeline->count; i++) {
        const heap_point *point = &timeline->points[i];
        json_begin_object(&writer, NULL);
        json_unsigned(&writer, "first", first_of(timeline, i));
        json_unsigned(&writer, "peak_bytes", heap_sum_value(point->peak));
        json_unsigned(&writer, "live_bytes", heap_sum_value(point->live.bytes));
        json_unsigned(&writer, "live_blocks", point->live.blocks);
        json_unsigned(&writer, "allocations", point->allocations);
        json_unsigned(&writer, "allocated_bytes", heap_sum_value(point->allocated));
        json_unsigned(&writer, "releases", point->releases);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_end_object(&writer);
}

void csv_timeline(report *to, const report_timeline *data)
{
    csv writer;
    csv_init(&writer, to->output);
    csv_header(&writer, "first,peak_bytes,live_bytes,live_blocks,allocations,allocated_bytes,"
                        "releases");
    for (size_t i = 0; i < data->timeline->count; i++) {
        const heap_point *point = &data->timeline->points[i];
        csv_unsigned(&writer, first_of(data->timeline, i));
        csv_unsigned(&writer, heap_sum_value(point->peak));
        csv_unsigned(&writer, heap_sum_value(point->live.bytes));
        csv_unsigned(&writer, point->live.blocks);
        csv_unsigned(&writer, point->allocations);
        csv_unsigned(&writer, heap_sum_value(point->allocated));
        csv_unsigned(&writer, point->releases);
        csv_end_row(&writer);
    }
}
