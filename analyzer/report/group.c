/* SPDX-License-Identifier: MIT */
#include "report/escape.h"
#include "report/formats.h"
#include "report/info.h"

/* Bytes of a command in text: a line is to fit a terminal. */
#define COMMAND_SHOWN 60

static struct report_info info_of(const struct report_member *member)
{
    return (struct report_info){
        .trace = &member->trace, .is_closed = member->is_closed, .end = &member->end};
}

static void text_command(struct out *output, struct ttd_string command, bool is_whole)
{
    struct ttd_string shown = command;
    if (!is_whole && shown.size > COMMAND_SHOWN) {
        shown.size = COMMAND_SHOWN;
        while (shown.size && ((unsigned char)shown.data[shown.size] & 0xc0) == 0x80)
            shown.size--;
    }
    escape_text(output, shown);
    if (shown.size < command.size)
        out_text(output, " …");
}

static void text_member(struct report *to, const struct report_member *member)
{
    struct out *output = to->output;
    struct report_info data = info_of(member);
    out_unsigned(output, member->trace.process_id);
    out_tab(output, 10);
    out_unsigned(output, member->trace.parent_process_id);
    out_tab(output, 20);
    out_grouped(output, member->events);
    out_tab(output, 34);
    if (!member->is_closed)
        out_char(output, '?');
    else
        out_grouped(output, member->end.lost_events);
    out_tab(output, 44);
    if (!member->is_closed)
        out_alarm(output);
    out_text(output, member->is_closed ? info_end_reason(&data) : "not closed");
    out_plain(output);
    if (info_has_end_code(&data))
        out_format(output, " %u", member->end.code);
    out_tab(output, 58);
    escape_text(output, escape_string(member->path));
    out_char(output, '\n');
    if (!member->command.size)
        return;
    out_text(output, "    ");
    text_command(output, member->command, to->shows_all);
    out_char(output, '\n');
}

void text_recording(struct report *to, const struct report_group *data)
{
    struct out *output = to->output;
    uint64_t events = 0, lost = 0;
    size_t open = 0;
    out_bold(output);
    out_text(output, "Process   Parent    Events        Lost      End           Trace, command\n");
    out_plain(output);
    for (size_t i = 0; i < data->count; i++) {
        const struct report_member *member = &data->members[i];
        text_member(to, member);
        events += member->events;
        lost += member->is_closed ? member->end.lost_events : 0;
        open += !member->is_closed;
    }
    out_text(output, "\nAll: ");
    report_count(output, data->count, "trace");
    out_text(output, ", ");
    report_count(output, events, "event");
    out_text(output, ", ");
    out_grouped(output, lost);
    out_text(output, " lost");
    if (open) {
        out_text(output, "; ");
        out_grouped(output, open);
        out_text(output, " not closed, where more may be");
    }
    out_char(output, '\n');
}

static void json_member(struct json *writer, const struct report_member *member)
{
    char text[INFO_TIME_SIZE];
    struct report_info data = info_of(member);
    const struct ttd_trace *trace = &member->trace;
    info_start_time(&data, text);
    json_begin_object(writer, NULL);
    json_text(writer, "path", member->path);
    json_hex(writer, "trace_id", trace->trace_id);
    if (trace->parent_trace_id)
        json_hex(writer, "parent_trace_id", trace->parent_trace_id);
    else
        json_null(writer, "parent_trace_id");
    json_unsigned(writer, "process_id", trace->process_id);
    json_unsigned(writer, "parent_process_id", trace->parent_process_id);
    json_text(writer, "start_time", trace->time_unit ? text : NULL);
    json_name(writer, "command", member->command);
    json_unsigned(writer, "events", member->events);
    json_count(writer, "lost_events", member->is_closed ? member->end.lost_events : TTD_UNKNOWN);
    json_unsigned(writer, "file_bytes", member->file_bytes);
    json_bool(writer, "closed", member->is_closed);
    json_text(writer, "end_reason", member->is_closed ? info_end_reason(&data) : NULL);
    json_count(writer, "end_code", info_has_end_code(&data) ? member->end.code : TTD_UNKNOWN);
    json_end_object(writer);
}

void json_recording(struct report *to, const struct report_group *data)
{
    struct json writer;
    json_init(&writer, to->output, true);
    json_begin_object(&writer, NULL);
    json_bytes(&writer, "group", data->id->bytes, sizeof data->id->bytes);
    json_begin_array(&writer, "traces");
    for (size_t i = 0; i < data->count; i++)
        json_member(&writer, &data->members[i]);
    json_end_array(&writer);
    json_end_object(&writer);
}

void csv_recording(struct report *to, const struct report_group *data)
{
    struct csv writer;
    csv_init(&writer, to->output);
    csv_header(&writer, "path,trace_id,parent_trace_id,process_id,parent_process_id,command,events,"
                        "lost_events,file_bytes,closed,end_reason,end_code");
    for (size_t i = 0; i < data->count; i++) {
        const struct report_member *member = &data->members[i];
        struct report_info info = info_of(member);
        csv_text(&writer, member->path);
        csv_hex(&writer, member->trace.trace_id);
        if (member->trace.parent_trace_id)
            csv_hex(&writer, member->trace.parent_trace_id);
        else
            csv_empty(&writer);
        csv_unsigned(&writer, member->trace.process_id);
        csv_unsigned(&writer, member->trace.parent_process_id);
        csv_string(&writer, member->command);
        csv_unsigned(&writer, member->events);
        csv_count(&writer, member->is_closed ? member->end.lost_events : TTD_UNKNOWN);
        csv_unsigned(&writer, member->file_bytes);
        csv_bool(&writer, member->is_closed);
        csv_text(&writer, member->is_closed ? info_end_reason(&info) : "");
        csv_count(&writer, info_has_end_code(&info) ? member->end.code : TTD_UNKNOWN);
        csv_end_row(&writer);
    }
}
