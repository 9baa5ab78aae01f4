/* SPDX-License-Identifier: MIT */
/* Events as JSON lines and as CSV. */
#include "report/trace/event_properties.h"
#include "report/trace/reports.h"

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
