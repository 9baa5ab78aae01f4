/* SPDX-License-Identifier: MIT */
#include "report/formats.h"

#include "report/escape.h"

/* Where each column of the grid begins; a wider value pushes the rest of its row to the right. */
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

/* Which properties an action has. */
static bool has_address(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
}

static bool has_base(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_FREE || event->action == TTD_ACTION_REALLOC;
}

static bool has_previous(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_REALLOC;
}

static bool has_size(const struct ttd_event *event)
{
    return has_address(event) || (event->action == TTD_ACTION_FREE && event->size);
}

static bool has_limits(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_CREATE;
}

static bool has_read_only(const struct ttd_event *event)
{
    return event->action == TTD_ACTION_PROTECT;
}

static uint64_t handle_of(const struct report *to, const struct ttd_event *event)
{
    const struct definition_heap *heap = definitions_heap(to->names, event->heap);
    return heap ? heap->handle : 0;
}

void text_events_begin(struct report *to, const struct report_events *options)
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
    out_bold(to->output);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        out_tab(to->output, (size_t)columns[i].column);
        out_text(to->output, columns[i].name);
    }
    if (options->shows_parameters) {
        out_tab(to->output, COLUMN_PARAMETERS);
        out_text(to->output, "Parameters");
    }
    out_plain(to->output);
    out_char(to->output, '\n');
}

static void cell(struct out *output, size_t column, bool has, uint64_t value)
{
    if (!has)
        return;
    out_tab(output, column);
    out_hex(output, value);
}

static void text_parameters(struct out *output, const struct ttd_event *event)
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

void text_event(struct report *to, const struct report_event *data)
{
    const struct ttd_event *event = data->event;
    struct out *output = to->output;
    out_char(output, '[');
    out_hex(output, event->number);
    out_char(output, ']');
    out_tab(output, COLUMN_ACTION);
    out_text(output, ttd_action_name((enum ttd_action)event->action));
    out_tab(output, COLUMN_API);
    out_text(output, ttd_api_name(event->api));
    cell(output, COLUMN_HEAP, true, handle_of(to, event));
    cell(output, COLUMN_ADDRESS, has_address(event), event->address);
    cell(output, COLUMN_PREVIOUS, has_previous(event), event->previous_address);
    cell(output, COLUMN_SIZE, has_size(event), event->size);
    cell(output, COLUMN_BASE, has_base(event), event->base_address);
    cell(output, COLUMN_FLAGS, true, event->flags);
    cell(output, COLUMN_RESULT, true, event->result);
    cell(output, COLUMN_RESERVE, has_limits(event), event->reserve_size);
    cell(output, COLUMN_COMMIT, has_limits(event), event->commit_size);
    cell(output, COLUMN_READ_ONLY, has_read_only(event), event->make_read_only);
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
        report_stack_text(to, event->stack);
}

void json_events_begin(struct report *to, const struct report_events *options)
{
    (void)to;
    (void)options;
}

static void json_parameters(struct json *writer, const struct ttd_event *event)
{
    uint64_t parameters[TTD_PARAMETERS_MAX];
    size_t count = ttd_event_parameters(event, parameters);
    if (!count && !event->parameters) {
        json_null(writer, "parameters");
        return;
    }
    json_begin_array(writer, "parameters");
    for (size_t i = 0; i < count; i++)
        json_hex(writer, NULL, parameters[i]);
    json_end_array(writer);
}

static void json_properties(struct report *to, struct json *writer, const struct report_event *data)
{
    const struct ttd_event *event = data->event;
    json_unsigned(writer, "number", event->number);
    json_text(writer, "action", ttd_action_name((enum ttd_action)event->action));
    json_text(writer, "api", ttd_api_name(event->api));
    json_hex(writer, "heap", handle_of(to, event));
    json_unsigned(writer, "heap_id", event->heap);
    if (has_address(event))
        json_hex(writer, "address", event->address);
    if (has_previous(event))
        json_hex(writer, "previous_address", event->previous_address);
    if (has_base(event))
        json_hex(writer, "base_address", event->base_address);
    if (has_size(event))
        json_unsigned(writer, "size", event->size);
    json_hex(writer, "flags", event->flags);
    json_unsigned(writer, "result", event->result);
    if (has_limits(event)) {
        json_unsigned(writer, "reserve_size", event->reserve_size);
        json_unsigned(writer, "commit_size", event->commit_size);
    }
    if (has_read_only(event))
        json_unsigned(writer, "make_read_only", event->make_read_only);
    json_position(writer, "time_start", event->time_start);
    json_position(writer, "time_end", event->time_end);
    json_count(writer, "wall_time_ns", data->options->has_times ? event->wall_time : TTD_UNKNOWN);
    json_unsigned(writer, "thread", event->thread);
    json_unsigned(writer, "stack", event->stack);
}

void text_events_end(struct report *to)
{
    report_doubts_text(to);
}

void json_event(struct report *to, const struct report_event *data)
{
    struct json writer;
    json_init(&writer, to->output, false);
    json_begin_object(&writer, NULL);
    json_properties(to, &writer, data);
    json_bool(&writer, "certain", data->is_certain);
    if (data->options->shows_parameters)
        json_parameters(&writer, data->event);
    if (data->options->shows_stacks)
        report_stack_json(to, &writer, "frames", data->event->stack);
    json_end_object(&writer);
    out_char(to->output, '\n');
}

void csv_events_begin(struct report *to, const struct report_events *options)
{
    out_text(to->output,
             "number,action,api,heap,heap_id,address,previous_address,base_address,size,"
             "flags,result,reserve_size,commit_size,make_read_only,time_start,time_end,"
             "wall_time_ns,thread,stack");
    out_text(to->output, options->shows_parameters ? ",parameters" : "");
    struct csv writer;
    report_csv_begin(to, &writer);
    csv_header(&writer, options->shows_stacks ? ",frames" : "");
}

static void csv_hex_if(struct csv *writer, bool has, uint64_t value)
{
    if (has)
        csv_hex(writer, value);
    else
        csv_empty(writer);
}

static void csv_number_if(struct csv *writer, bool has, uint64_t value)
{
    if (has)
        csv_unsigned(writer, value);
    else
        csv_empty(writer);
}

static void csv_parameters(struct csv *writer, const struct ttd_event *event)
{
    uint64_t parameters[TTD_PARAMETERS_MAX];
    size_t count = ttd_event_parameters(event, parameters);
    csv_empty(writer);
    for (size_t i = 0; i < count; i++) {
        if (i)
            out_char(writer->output, ';');
        out_hex(writer->output, parameters[i]);
    }
}

void csv_event(struct report *to, const struct report_event *data)
{
    const struct ttd_event *event = data->event;
    struct csv writer;
    report_csv_begin(to, &writer);
    writer.is_certain = data->is_certain;
    csv_unsigned(&writer, event->number);
    csv_text(&writer, ttd_action_name((enum ttd_action)event->action));
    csv_text(&writer, ttd_api_name(event->api));
    csv_hex(&writer, handle_of(to, event));
    csv_unsigned(&writer, event->heap);
    csv_hex_if(&writer, has_address(event), event->address);
    csv_hex_if(&writer, has_previous(event), event->previous_address);
    csv_hex_if(&writer, has_base(event), event->base_address);
    csv_number_if(&writer, has_size(event), event->size);
    csv_hex(&writer, event->flags);
    csv_unsigned(&writer, event->result);
    csv_number_if(&writer, has_limits(event), event->reserve_size);
    csv_number_if(&writer, has_limits(event), event->commit_size);
    csv_number_if(&writer, has_read_only(event), event->make_read_only);
    csv_position(&writer, event->time_start);
    csv_position(&writer, event->time_end);
    csv_count(&writer, data->options->has_times ? event->wall_time : TTD_UNKNOWN);
    csv_unsigned(&writer, event->thread);
    csv_unsigned(&writer, event->stack);
    if (data->options->shows_parameters)
        csv_parameters(&writer, event);
    if (data->options->shows_stacks)
        report_stack_csv(to, &writer, event->stack);
    csv_end_row(&writer);
}
