/* SPDX-License-Identifier: MIT */
#include "report/escape.h"
#include "report/formats.h"

void text_index(struct report *to, const struct report_index *data)
{
    escape_text(to->output, escape_string(data->file));
    out_text(to->output, ": ");
    report_count(to->output, data->keyframes, "keyframe");
    if (data->summaries) {
        out_text(to->output, " and ");
        out_grouped(to->output, data->summaries);
        out_text(to->output, data->summaries == 1 ? " summary" : " summaries");
    }
    out_text(to->output, " of ");
    report_count(to->output, data->events, "event");
    out_text(to->output, ", ");
    report_count(to->output, data->bytes, "byte");
    out_char(to->output, '\n');
}

void json_index(struct report *to, const struct report_index *data)
{
    struct json writer;
    json_init(&writer, to->output, true);
    json_begin_object(&writer, NULL);
    json_text(&writer, "index", data->file);
    json_unsigned(&writer, "keyframes", data->keyframes);
    json_unsigned(&writer, "summaries", data->summaries);
    json_unsigned(&writer, "events", data->events);
    json_unsigned(&writer, "index_bytes", data->bytes);
    json_end_object(&writer);
}

void csv_index(struct report *to, const struct report_index *data)
{
    struct csv writer;
    csv_init(&writer, to->output);
    csv_header(&writer, "index,keyframes,summaries,events,index_bytes");
    csv_text(&writer, data->file);
    csv_unsigned(&writer, data->keyframes);
    csv_unsigned(&writer, data->summaries);
    csv_unsigned(&writer, data->events);
    csv_unsigned(&writer, data->bytes);
    csv_end_row(&writer);
}
