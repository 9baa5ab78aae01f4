/* SPDX-License-Identifier: MIT */
/* Events as JSON lines and as CSV. */
#include <stdbool.h>
#include <ttdtrace/model.h>

#include "report/trace/trace_reports.h"

/* Properties of an event: each exists only for some actions, and a report leaves the others empty.
 */

static bool event_has_address(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
}

static bool event_has_base_address(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_FREE || event->action == TTD_ACTION_REALLOC;
}

static bool event_has_previous_address(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_REALLOC;
}

/* A Free has a size only if the function takes it as an argument, such as sized operator delete. */
static bool event_has_size(const struct ttd_event *event)
{
    return event_has_address(event) || (event->action == TTD_ACTION_FREE && event->size);
}

/** Whether the event has the sizes that a heap reserves and commits. */
static bool event_has_limits(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_CREATE;
}

static bool event_has_read_only(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_PROTECT;
}

/* Events as a grid of text: the columns of the properties that WinDbg shows for heap calls. */

/* Column at which each property begins; a wider value pushes the rest of its row to the right. */
enum {
    COLUMN_ACTION = 12,
    COLUMN_API = 21,
    COLUMN_HEAP = 40,
    COLUMN_ADDRESS = 47,
    COLUMN_PREVIOUS = 63,
    COLUMN_SIZE = 80,
    COLUMN_BASE = 91,
    COLUMN_FLAGS = 107,
    COLUMN_RESULT = 114,
    COLUMN_RESERVE = 122,
    COLUMN_COMMIT = 135,
    COLUMN_READ_ONLY = 147,
    COLUMN_START = 161,
    COLUMN_END = 178,
    COLUMN_THREAD = 195,
    COLUMN_STACK = 203,
    COLUMN_PARAMETERS = 211
};

void text_events_begin(struct report *report, const struct report_events *options)
{
    static const struct {
        int column;
        const char *name;
    } columns[] = {{COLUMN_ACTION, "Action"},
                   {COLUMN_API, "Api"},
                   {COLUMN_HEAP, "Heap"},
                   {COLUMN_ADDRESS, "Address"},
                   {COLUMN_PREVIOUS, "PreviousAddress"},
                   {COLUMN_SIZE, "Size"},
                   {COLUMN_BASE, "BaseAddress"},
                   {COLUMN_FLAGS, "Flags"},
                   {COLUMN_RESULT, "Result"},
                   {COLUMN_RESERVE, "ReserveSize"},
                   {COLUMN_COMMIT, "CommitSize"},
                   {COLUMN_READ_ONLY, "MakeReadOnly"},
                   {COLUMN_START, "TimeStart"},
                   {COLUMN_END, "TimeEnd"},
                   {COLUMN_THREAD, "Thread"},
                   {COLUMN_STACK, "Stack"}};
    out_bold(report->output);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        out_tab(report->output, (size_t)columns[i].column);
        out_text(report->output, columns[i].name);
    }
    if (options->shows_parameters) {
        out_tab(report->output, COLUMN_PARAMETERS);
        out_text(report->output, "Parameters");
    }
    out_plain(report->output);
    out_char(report->output, '\n');
}

static void cell(struct text_output *output, size_t column, bool has, uint64_t value)
{
    if (!has)
        return;
    out_tab(output, column);
    out_hex(output, value);
}

/* "{}" is a call without parameters, "{?}" one whose parameters were not recorded. */
static void text_parameters(struct text_output *output, const struct ttd_event *event)
{
    uint64_t parameters[TTD_PARAMETERS_MAX];
    size_t count = ttd_event_parameters(event, parameters);
    out_tab(output, COLUMN_PARAMETERS);
    out_char(output, '{');
    if (!count && !event->parameters)
        out_char(output, '?');
    for (size_t i = 0; i < count; i++) {
        if (i)
            out_text(output, ", ");
        out_hex(output, parameters[i]);
    }
    out_char(output, '}');
}

void text_event(struct report *report, const struct report_event *data)
{
    const struct ttd_event *event = data->event;
    struct text_output *output = report->output;
    out_char(output, '[');
    out_hex(output, event->number);
    out_char(output, ']');
    out_tab(output, COLUMN_ACTION);
    out_text(output, ttd_action_name((enum ttd_action)event->action));
    out_tab(output, COLUMN_API);
    out_text(output, ttd_api_name(event->api));
    cell(output, COLUMN_HEAP, true, definitions_heap_handle(report->definitions, event->heap));
    cell(output, COLUMN_ADDRESS, event_has_address(event), event->address);
    cell(output, COLUMN_PREVIOUS, event_has_previous_address(event), event->previous_address);
    cell(output, COLUMN_SIZE, event_has_size(event), event->size);
    cell(output, COLUMN_BASE, event_has_base_address(event), event->base_address);
    cell(output, COLUMN_FLAGS, true, event->flags);
    cell(output, COLUMN_RESULT, true, event->result);
    cell(output, COLUMN_RESERVE, event_has_limits(event), event->reserve_size);
    cell(output, COLUMN_COMMIT, event_has_limits(event), event->commit_size);
    cell(output, COLUMN_READ_ONLY, event_has_read_only(event), event->make_read_only);
    out_tab(output, COLUMN_START);
    out_position(output, event->time_start);
    out_tab(output, COLUMN_END);
    if (ttd_event_returned(event))
        out_position(output, event->time_end);
    else
        out_text(output, "never");
    cell(output, COLUMN_THREAD, true, event->thread);
    out_tab(output, COLUMN_STACK);
    out_char(output, '#');
    out_unsigned(output, event->stack);
    if (data->options->shows_parameters)
        text_parameters(output, event);
    out_char(output, '\n');
    if (data->options->shows_stacks)
        report_stack_text(report, event->stack);
}

/* Events are printed as they are read, so whether all are certain is known only at the end. */
void text_rows_end(struct report *report)
{
    report_certainty_text(report);
}

void json_events_begin(struct report *report, const struct report_events *options)
{
    (void)report;
    (void)options;
}

static void json_parameters(struct json *json, const struct ttd_event *event)
{
    uint64_t parameters[TTD_PARAMETERS_MAX];
    size_t count = ttd_event_parameters(event, parameters);
    /* No parameters were recorded; a call without any has an empty list. */
    if (!count && !event->parameters) {
        json_null(json, "parameters");
        return;
    }
    json_begin_array(json, "parameters");
    for (size_t i = 0; i < count; i++)
        json_hex(json, NULL, parameters[i]);
    json_end_array(json);
}

static void json_properties(struct report *report, struct json *json,
                            const struct report_event *data)
{
    const struct ttd_event *event = data->event;
    json_unsigned(json, "number", event->number);
    json_text(json, "action", ttd_action_name((enum ttd_action)event->action));
    json_text(json, "api", ttd_api_name(event->api));
    json_hex(json, "heap", definitions_heap_handle(report->definitions, event->heap));
    json_unsigned(json, "heap_id", event->heap);
    if (event_has_address(event))
        json_hex(json, "address", event->address);
    if (event_has_previous_address(event))
        json_hex(json, "previous_address", event->previous_address);
    if (event_has_base_address(event))
        json_hex(json, "base_address", event->base_address);
    if (event_has_size(event))
        json_unsigned(json, "size", event->size);
    json_hex(json, "flags", event->flags);
    json_unsigned(json, "result", event->result);
    if (event_has_limits(event)) {
        json_unsigned(json, "reserve_size", event->reserve_size);
        json_unsigned(json, "commit_size", event->commit_size);
    }
    if (event_has_read_only(event))
        json_unsigned(json, "make_read_only", event->make_read_only);
    json_position(json, "time_start", event->time_start);
    json_position(json, "time_end", event->time_end);
    json_count(json, "wall_time_ns", data->options->has_times ? event->wall_time : TTD_UNKNOWN);
    json_unsigned(json, "thread", event->thread);
    json_unsigned(json, "stack", event->stack);
}

void json_event(struct report *report, const struct report_event *data)
{
    struct json json;
    json_init(&json, report->output, false);
    json_begin_object(&json, NULL);
    json_properties(report, &json, data);
    json_bool(&json, "certain", data->is_certain);
    if (data->options->shows_parameters)
        json_parameters(&json, data->event);
    if (data->options->shows_stacks)
        report_stack_json(report, &json, "frames", data->event->stack);
    json_end_object(&json);
    out_char(report->output, '\n');
}

void csv_events_begin(struct report *report, const struct report_events *options)
{
    out_text(report->output,
             "number,action,api,heap,heap_id,address,previous_address,base_address,size,"
             "flags,result,reserve_size,commit_size,make_read_only,time_start,time_end,"
             "wall_time_ns,thread,stack");
    out_text(report->output, options->shows_parameters ? ",parameters" : "");
    struct csv csv;
    report_csv_begin(report, &csv);
    csv_header(&csv, options->shows_stacks ? ",frames" : "");
}

static void csv_parameters(struct csv *csv, const struct ttd_event *event)
{
    uint64_t parameters[TTD_PARAMETERS_MAX];
    /* One field for all of them, since their number differs from call to call. */
    size_t count = ttd_event_parameters(event, parameters);
    csv_empty(csv);
    for (size_t i = 0; i < count; i++) {
        if (i)
            out_char(csv->output, ';');
        out_hex(csv->output, parameters[i]);
    }
}

void csv_event(struct report *report, const struct report_event *data)
{
    const struct ttd_event *event = data->event;
    struct csv csv;
    report_csv_begin(report, &csv);
    csv.is_certain = data->is_certain;
    csv_unsigned(&csv, event->number);
    csv_text(&csv, ttd_action_name((enum ttd_action)event->action));
    csv_text(&csv, ttd_api_name(event->api));
    csv_hex(&csv, definitions_heap_handle(report->definitions, event->heap));
    csv_unsigned(&csv, event->heap);
    csv_hex_if(&csv, event_has_address(event), event->address);
    csv_hex_if(&csv, event_has_previous_address(event), event->previous_address);
    csv_hex_if(&csv, event_has_base_address(event), event->base_address);
    csv_unsigned_if(&csv, event_has_size(event), event->size);
    csv_hex(&csv, event->flags);
    csv_unsigned(&csv, event->result);
    csv_unsigned_if(&csv, event_has_limits(event), event->reserve_size);
    csv_unsigned_if(&csv, event_has_limits(event), event->commit_size);
    csv_unsigned_if(&csv, event_has_read_only(event), event->make_read_only);
    csv_position(&csv, event->time_start);
    csv_position(&csv, event->time_end);
    csv_count(&csv, data->options->has_times ? event->wall_time : TTD_UNKNOWN);
    csv_unsigned(&csv, event->thread);
    csv_unsigned(&csv, event->stack);
    if (data->options->shows_parameters)
        csv_parameters(&csv, event);
    if (data->options->shows_stacks)
        report_stack_csv(report, &csv, event->stack);
    csv_end_row(&csv);
}
