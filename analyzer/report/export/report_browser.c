/* SPDX-License-Identifier: MIT */
/* Files for viewers that are pages: the Firefox Profiler, and Perfetto. */
#include "report/export/export_reports.h"

#include <stdlib.h>

#include "report/sections/say.h"
#include "travel/islands.h"
#include "view/function_names.h"

/* A profile for the Firefox Profiler, in its processed format (version 57, of April 2025; it reads
 * the files of all older versions). The tables are columns: the tree of calls gives the stacks, its
 * labels the functions, and each node with blocks of its own is a sample, weighted by bytes. */

/* Longer names are cut. */
#define FIREFOX_NAME_MAX 4096

struct firefox {
    struct report *report;
    const struct report_profile *data;
    /** By node of the tree: its row among the stacks. */
    uint32_t *rows;
    /** By label: the number of its module, from 0; and a label of each module. */
    uint32_t *modules;
    uint32_t *module_labels;
    uint32_t module_count;
};

/* Writes a string of the shared table. */
static void firefox_write_string(struct firefox *firefox, struct ttd_string text)
{
    if (text.size > FIREFOX_NAME_MAX)
        text.size = FIREFOX_NAME_MAX;
    out_char(firefox->report->output, '"');
    escape_json(firefox->report->output, text);
    out_text(firefox->report->output, "\"");
}

/* Writes a column, with the same value in each row. */
static void firefox_write_same(struct firefox *firefox, const char *name, const char *value,
                               size_t count)
{
    struct text_output *output = firefox->report->output;
    say(output, "\"", name, "\":[");
    for (size_t i = 0; i < count; i++)
        say(output, i ? "," : "", value);
    out_text(output, "],\n");
}

/* Writes a column of the numbers from `first` on, `count` of them. */
static void firefox_write_numbers(struct firefox *firefox, const char *name, size_t first,
                                  size_t count)
{
    struct text_output *output = firefox->report->output;
    say(output, "\"", name, "\":[");
    for (size_t i = 0; i < count; i++)
        say(output, i ? "," : "", number(first + i));
    out_text(output, "],\n");
}

/* Numbers the modules of the labels. Returns false without memory. */
static bool firefox_find_modules(struct firefox *firefox)
{
    const struct label_table *labels = firefox->data->tree->labels;
    struct hash_map numbers;
    map_init(&numbers);
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < labels->count && status == TTD_OK; i++) {
        struct ttd_string module = labels->labels[i].module;
        uint64_t key = module.size ? (uint64_t)(uintptr_t)module.data : 0;
        uint32_t known = map_get(&numbers, key, 1);
        if (known == MAP_NONE) {
            known = firefox->module_count++;
            firefox->module_labels[known] = (uint32_t)i;
            status = map_set(&numbers, key, 1, known);
        }
        firefox->modules[i] = known;
    }
    map_free(&numbers);
    return status == TTD_OK;
}

static void firefox_write_name(struct firefox *firefox, const struct view_label *label)
{
    struct text_output *output = firefox->report->output;
    struct ttd_string name = report_label_name(firefox->report, label);
    if (label->kind == LABEL_NONE) {
        out_text(output, "\"[no stack]\"");
    } else if (name.size) {
        firefox_write_string(firefox, name);
    } else {
        say(output, "\"", hex(label->number), "\"");
    }
}

/* Writes the strings: a name for each label, then one for each module. */
static void firefox_write_strings(struct firefox *firefox)
{
    struct text_output *output = firefox->report->output;
    const struct label_table *labels = firefox->data->tree->labels;
    out_text(output, "\"shared\":{\"stringArray\":[\n");
    for (size_t i = 0; i < labels->count; i++) {
        out_text(output, i ? ",\n" : "");
        firefox_write_name(firefox, &labels->labels[i]);
    }
    for (size_t i = 0; i < firefox->module_count; i++) {
        struct ttd_string module = labels->labels[firefox->module_labels[i]].module;
        out_text(output, i || labels->count ? ",\n" : "");
        firefox_write_string(firefox,
                             module.size ? glob_base_name(module) : escape_string("[no module]"));
    }
    out_text(output, "]},\n");
}

/* Writes the functions, each with a frame of the same number. */
static void firefox_write_functions(struct firefox *firefox)
{
    struct text_output *output = firefox->report->output;
    size_t count = firefox->data->tree->labels->count;
    out_text(output, "\"frameTable\":{");
    firefox_write_numbers(firefox, "func", 0, count);
    firefox_write_same(firefox, "address", "-1", count);
    firefox_write_same(firefox, "inlineDepth", "0", count);
    firefox_write_same(firefox, "category", "0", count);
    firefox_write_same(firefox, "subcategory", "0", count);
    firefox_write_same(firefox, "nativeSymbol", "null", count);
    firefox_write_same(firefox, "innerWindowID", "null", count);
    firefox_write_same(firefox, "line", "null", count);
    firefox_write_same(firefox, "column", "null", count);
    say(output, "\"length\":", number(count), "},\n\"funcTable\":{");
    firefox_write_numbers(firefox, "name", 0, count);
    firefox_write_same(firefox, "isJS", "false", count);
    firefox_write_same(firefox, "relevantForJS", "false", count);
    firefox_write_same(firefox, "fileName", "null", count);
    firefox_write_same(firefox, "lineNumber", "null", count);
    firefox_write_same(firefox, "columnNumber", "null", count);
    out_text(output, "\"resource\":[");
    for (size_t i = 0; i < count; i++)
        say(output, i ? "," : "", number(firefox->modules[i]));
    say(output, "],\n\"length\":", number(count), "},\n\"resourceTable\":{");
    firefox_write_numbers(firefox, "name", count, firefox->module_count);
    firefox_write_same(firefox, "lib", "null", firefox->module_count);
    firefox_write_same(firefox, "host", "null", firefox->module_count);
    /* Of a library. */
    firefox_write_same(firefox, "type", "1", firefox->module_count);
    say(output, "\"length\":", number(firefox->module_count), "},\n");
}

/* Writes the nodes of the tree as stacks; a caller comes before its callees. */
static void firefox_write_stacks(struct firefox *firefox)
{
    struct text_output *output = firefox->report->output;
    const struct view_tree *tree = firefox->data->tree;
    uint32_t count = 0;
    out_text(output, "\"stackTable\":{\"frame\":[");
    for (uint32_t i = 0; (i = view_tree_next(tree, i, SIZE_MAX)) != VIEW_NO_NODE; count++) {
        say(output, count ? "," : "", number(tree->nodes[i].label));
        firefox->rows[i] = count;
    }
    out_text(output, "],\n\"prefix\":[");
    for (uint32_t i = 0; (i = view_tree_next(tree, i, SIZE_MAX)) != VIEW_NO_NODE;) {
        uint32_t parent = tree->nodes[i].parent;
        out_text(output, firefox->rows[i] ? "," : "");
        if (parent)
            out_unsigned(output, firefox->rows[parent]);
        else
            out_text(output, "null");
    }
    say(output, "],\n\"length\":", number(count), "},\n");
}

static void firefox_write_samples(struct firefox *firefox)
{
    struct text_output *output = firefox->report->output;
    const struct view_tree *tree = firefox->data->tree;
    size_t count = 0;
    out_text(output, "\"samples\":{\"stack\":[");
    for (uint32_t i = 0; (i = view_tree_next(tree, i, SIZE_MAX)) != VIEW_NO_NODE;) {
        if (tree->nodes[i].self.count)
            say(output, count++ ? "," : "", number(firefox->rows[i]));
    }
    out_text(output, "],\n\"weight\":[");
    count = 0;
    for (uint32_t i = 0; (i = view_tree_next(tree, i, SIZE_MAX)) != VIEW_NO_NODE;) {
        if (tree->nodes[i].self.count)
            say(output, count++ ? "," : "", number(tree->nodes[i].self.bytes));
    }
    out_text(output, "],\n");
    firefox_write_numbers(firefox, "time", 0, count);
    say(output, "\"weightType\":\"bytes\",\"length\":", number(count), "},\n");
}

/* Writes the facts about the profile. Reasons for uncertainty are in its name. */
static void firefox_write_meta(struct firefox *firefox)
{
    struct report *report = firefox->report;
    struct text_output *output = report->output;
    out_text(output, "\"meta\":{\"version\":29,\"preprocessedProfileVersion\":57,\"interval\":1,"
                     "\"processType\":0,\"stackwalk\":1,\"symbolicated\":true,\"debug\":false,"
                     "\"markerSchema\":[],\"importedFrom\":\"ttdtrace\",\"categories\":"
                     "[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]}],\n"
                     "\"startTime\":");
    say(output, number((uint64_t)firefox->data->trace->start_time / 1000000), ",\"product\":\"");
    escape_json(output, escape_string(report->path));
    say(output, ", ", report_measure_words(firefox->data->measure), " bytes");
    for (size_t i = 0; i < report->certainty.count; i++) {
        out_text(output, i ? "; " : " (uncertain: ");
        escape_json(output, escape_string(report->certainty.reasons[i]));
    }
    out_text(output, report->certainty.count ? ")\"},\n" : "\"},\n");
}

static void firefox_write(struct firefox *firefox)
{
    struct text_output *output = firefox->report->output;
    uint64_t pid = firefox->data->trace->process_id;
    out_text(output, "{");
    firefox_write_meta(firefox);
    firefox_write_strings(firefox);
    say(output,
        "\"libs\":[],\"pages\":[],\"threads\":[{\"name\":\"blocks\",\"isMainThread\":true,"
        "\"processType\":\"default\",\"pid\":\"",
        number(pid), "\",\"tid\":", number(pid),
        ",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,"
        "\"unregisterTime\":null,\"pausedRanges\":[],\n");
    firefox_write_functions(firefox);
    firefox_write_stacks(firefox);
    firefox_write_samples(firefox);
    out_text(output,
             "\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],"
             "\"length\":0},\n\"markers\":{\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],"
             "\"phase\":[],\"category\":[],\"length\":0}}]}\n");
}

void report_profile_firefox(struct report *report, const struct report_profile *data)
{
    size_t labels = data->tree->labels->count + 1;
    struct firefox firefox = {.report = report,
                              .data = data,
                              .rows = calloc(data->tree->count, sizeof *firefox.rows),
                              .modules = calloc(labels, sizeof *firefox.modules),
                              .module_labels = calloc(labels, sizeof *firefox.module_labels)};
    if (firefox.rows && firefox.modules && firefox.module_labels && firefox_find_modules(&firefox))
        firefox_write(&firefox);
    else
        report->status = TTD_ERROR_NO_MEMORY;
    free(firefox.rows);
    free(firefox.modules);
    free(firefox.module_labels);
}

/* The trace events of Chrome, which Perfetto reads as well: counters of the heap in the course of
 * time, the names of threads, and marks. Times are microseconds with a fraction. */

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
