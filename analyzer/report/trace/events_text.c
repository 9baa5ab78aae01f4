/* SPDX-License-Identifier: MIT */
/* Events as a grid of text: the columns of the properties that WinDbg shows for heap calls. */
#include "report/trace/event_properties.h"
#include "report/trace/reports.h"

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
