/* SPDX-License-Identifier: MIT */
/* The report of `events`: a grid of text, JSON lines, CSV. */
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

static void text_events_begin(struct report *report, const struct report_events *options)
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

static void text_event(struct report *report, const struct report_event *data)
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

/* "{}" is a call without parameters: an empty list; the list is null if they were not recorded. In
 * CSV one field has all of them, since their number differs from call to call. */
static void row_parameters(struct row *row, const struct ttd_event *event)
{
    uint64_t parameters[TTD_PARAMETERS_MAX];
    size_t count = ttd_event_parameters(event, parameters);
    if (!row->is_json || (!count && !event->parameters)) {
        row_null(row, "parameters");
        for (size_t i = 0; i < count; i++) {
            if (i)
                out_char(row->output, ';');
            out_hex(row->output, parameters[i]);
        }
        return;
    }
    row_begin_array(row, "parameters");
    for (size_t i = 0; i < count; i++)
        row_hex(row, NULL, parameters[i]);
    row_end_array(row);
}

static void row_event(struct row *row, const struct report_event *data)
{
    const struct ttd_event *event = data->event;
    bool has_limits = event_has_limits(event);
    row_unsigned(row, "number", event->number);
    row_text(row, "action", ttd_action_name((enum ttd_action)event->action));
    row_text(row, "api", ttd_api_name(event->api));
    row_hex(row, "heap", definitions_heap_handle(row->report->definitions, event->heap));
    row_unsigned(row, "heap_id", event->heap);
    if (row_has(row, "address", event_has_address(event)))
        row_hex(row, "address", event->address);
    if (row_has(row, "previous_address", event_has_previous_address(event)))
        row_hex(row, "previous_address", event->previous_address);
    if (row_has(row, "base_address", event_has_base_address(event)))
        row_hex(row, "base_address", event->base_address);
    if (row_has(row, "size", event_has_size(event)))
        row_unsigned(row, "size", event->size);
    row_hex(row, "flags", event->flags);
    row_unsigned(row, "result", event->result);
    if (row_has(row, "reserve_size", has_limits))
        row_unsigned(row, "reserve_size", event->reserve_size);
    if (row_has(row, "commit_size", has_limits))
        row_unsigned(row, "commit_size", event->commit_size);
    if (row_has(row, "make_read_only", event_has_read_only(event)))
        row_unsigned(row, "make_read_only", event->make_read_only);
    row_position(row, "time_start", event->time_start);
    row_position(row, "time_end", event->time_end);
    row_count(row, "wall_time_ns", data->options->has_times ? event->wall_time : TTD_UNKNOWN);
    row_unsigned(row, "thread", event->thread);
    row_unsigned(row, "stack", event->stack);
    row->is_certain = data->is_certain;
    if (row->is_json)
        row_bool(row, "certain", data->is_certain);
    if (data->options->shows_parameters)
        row_parameters(row, event);
    if (data->options->shows_stacks)
        row_stack(row, "frames", event->stack);
}

void report_events_begin(struct report *report, const struct report_events *options)
{
    static const struct ttd_event no_event;
    struct row row;
    if (report->form == REPORT_TEXT)
        text_events_begin(report, options);
    if (report->form != REPORT_CSV)
        return;
    row_open_line(&row, report, true);
    row_event(&row, &(struct report_event){&no_event, options, false});
    row_close_line(&row);
}

void report_event(struct report *report, const struct report_event *data)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        text_event(report, data);
        return;
    }
    row_open_line(&row, report, false);
    row_event(&row, data);
    row_close_line(&row);
}
