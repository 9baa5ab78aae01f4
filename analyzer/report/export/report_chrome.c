/* SPDX-License-Identifier: MIT */
/* The trace events of Chrome, which Perfetto reads as well: counters of the heap in the course of
 * time, the names of threads, and marks. Times are microseconds with a fraction. */
#include "report/export/export_reports.h"
#include "report/sections/say.h"
#include "travel/islands.h"

/* Longer texts are cut, so that the size of the file has a limit. */
#define CHROME_TEXT_MAX 4096

static void chrome_write_string(struct text_output *output, struct ttd_string text)
{
    if (text.size > CHROME_TEXT_MAX)
        text.size = CHROME_TEXT_MAX;
    out_char(output, '"');
    escape_json(output, text);
    out_char(output, '"');
}

/* Begins an event: its phase, process and name. */
static void chrome_begin(struct report *report, const struct ttd_trace *trace, const char *phase,
                         struct ttd_string name)
{
    struct text_output *output = report->output;
    say(output, ",\n{\"ph\":\"", phase, "\",\"pid\":", number(trace->process_id), ",\"name\":");
    chrome_write_string(output, name);
}

static void chrome_write_time(struct text_output *output, uint64_t time)
{
    say(output, ",\"ts\":", number(time / 1000));
    out_format(output, ".%03u", (unsigned)(time % 1000));
}

static void chrome_write_counter(struct report *report, const struct ttd_trace *trace,
                                 const char *name, uint64_t time, uint64_t value)
{
    chrome_begin(report, trace, "C", escape_string(name));
    chrome_write_time(report->output, time);
    say(report->output, ",\"args\":{\"value\":", number(value), "}}");
}

/* Threads that have the same number of the system, one after the other, are one for the viewer. */
static uint64_t chrome_thread(const struct report *report, ttd_id id)
{
    const struct definition_thread *thread = definitions_thread(report->definitions, id);
    return thread ? thread->os_id : 0;
}

static void chrome_write_threads(struct report *report, const struct ttd_trace *trace)
{
    const struct idtable *threads = &report->definitions->threads;
    for (size_t run = 0; run < threads->run_count; run++) {
        const struct definition_thread *records = threads->runs[run].records;
        for (size_t i = 0; i < threads->runs[run].count; i++) {
            struct ttd_string name = definitions_text(report->definitions, records[i].name);
            if (!name.size)
                continue;
            chrome_begin(report, trace, "M", escape_string("thread_name"));
            say(report->output, ",\"tid\":", number(records[i].os_id), ",\"args\":{\"name\":");
            chrome_write_string(report->output, name);
            out_text(report->output, "}}");
        }
    }
}

static void chrome_write_points(struct report *report, const struct report_course *data)
{
    const struct heap_timeline *timeline = data->timeline;
    for (size_t i = 0; i < timeline->count && !report->output->error; i++) {
        const struct heap_point *point = &timeline->points[i];
        chrome_write_counter(report, data->trace, "live bytes", point->begin,
                             heap_sum_value(point->peak));
        chrome_write_counter(report, data->trace, "live blocks", point->begin, point->live.blocks);
        chrome_write_counter(report, data->trace, "allocations", point->begin, point->allocations);
        if (point->resident)
            chrome_write_counter(report, data->trace, "resident bytes", point->begin,
                                 point->resident);
    }
    if (!timeline->count)
        return;
    const struct heap_total *last = &timeline->points[timeline->count - 1].live;
    chrome_write_counter(report, data->trace, "live bytes", timeline->end,
                         heap_sum_value(last->bytes));
    chrome_write_counter(report, data->trace, "live blocks", timeline->end, last->blocks);
}

void report_chrome_mark(struct report *report, const struct ttd_trace *trace,
                        const struct heap_mark *mark)
{
    struct text_output *output = report->output;
    ttd_id thread = mark->event->thread;
    bool has_text = mark->data.size;
    chrome_begin(report, trace, "i",
                 has_text ? mark->data : escape_string(heap_mark_kind_name(mark->kind)));
    chrome_write_time(output, mark->event->wall_time);
    if (thread == TTD_NONE)
        out_text(output, ",\"s\":\"p\"");
    else
        say(output, ",\"s\":\"t\",\"tid\":", number(chrome_thread(report, thread)));
    say(output, ",\"args\":{\"kind\":\"", heap_mark_kind_name(mark->kind), "\",\"position\":\"",
        mark->event->position, "\"}}");
}

void report_chrome_begin(struct report *report, const struct report_course *data)
{
    struct text_output *output = report->output;
    out_text(output, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
                     "{\"ph\":\"M\",\"pid\":");
    say(output, number(data->trace->process_id), ",\"name\":\"process_name\",\"args\":{\"name\":");
    chrome_write_string(output, escape_string(report->path));
    out_text(output, "}}");
    for (size_t i = 0; i < report->certainty.count; i++) {
        chrome_begin(report, data->trace, "i", escape_string("uncertain"));
        out_text(output, ",\"ts\":0,\"s\":\"g\",\"args\":{\"reason\":");
        chrome_write_string(output, escape_string(report->certainty.reasons[i]));
        out_text(output, "}}");
    }
    chrome_write_threads(report, data->trace);
    chrome_write_points(report, data);
}

void report_chrome_end(struct report *report)
{
    out_text(report->output, "\n]}\n");
}
