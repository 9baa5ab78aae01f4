/* SPDX-License-Identifier: MIT */
#include "report/csv.h"

#include "report/escape.h"

void csv_init(struct csv *writer, struct out *output)
{
    *writer = (struct csv){.output = output};
}

void csv_header(struct csv *writer, const char *names)
{
    out_text(writer->output, names);
    if (writer->has_verdict)
        out_text(writer->output, ",certain");
    out_char(writer->output, '\n');
}

static void begin_field(struct csv *writer)
{
    if (writer->has_field)
        out_char(writer->output, ',');
    writer->has_field = true;
}

void csv_string(struct csv *writer, struct ttd_string text)
{
    bool is_quoted = false;
    for (size_t i = 0; i < text.size && !is_quoted; i++)
        is_quoted = text.data[i] == '"' || text.data[i] == ',' || text.data[i] == ' ';
    begin_field(writer);
    if (is_quoted)
        out_char(writer->output, '"');
    escape_csv(writer->output, text);
    if (is_quoted)
        out_char(writer->output, '"');
}

void csv_list_begin(struct csv *writer)
{
    begin_field(writer);
    out_char(writer->output, '"');
}

void csv_list_item(struct csv *writer, struct ttd_string text, bool is_first)
{
    if (!is_first)
        out_char(writer->output, ';');
    escape_csv(writer->output, text);
}

void csv_list_end(struct csv *writer)
{
    out_char(writer->output, '"');
}

void csv_text(struct csv *writer, const char *text)
{
    csv_string(writer, escape_string(text));
}

void csv_bool(struct csv *writer, bool value)
{
    begin_field(writer);
    out_text(writer->output, value ? "true" : "false");
}

void csv_unsigned(struct csv *writer, uint64_t value)
{
    begin_field(writer);
    out_unsigned(writer->output, value);
}

void csv_difference(struct csv *writer, uint64_t from, uint64_t to)
{
    begin_field(writer);
    if (from > to)
        out_char(writer->output, '-');
    out_unsigned(writer->output, from > to ? from - to : to - from);
}

void csv_count(struct csv *writer, uint64_t value)
{
    if (value == TTD_UNKNOWN)
        csv_empty(writer);
    else
        csv_unsigned(writer, value);
}

void csv_double(struct csv *writer, double value)
{
    begin_field(writer);
    out_format(writer->output, "%.6g", value);
}

void csv_hex(struct csv *writer, uint64_t value)
{
    begin_field(writer);
    out_hex(writer->output, value);
}

void csv_position(struct csv *writer, struct ttd_position position)
{
    begin_field(writer);
    if (ttd_position_is_valid(position))
        out_position(writer->output, position);
}

void csv_empty(struct csv *writer)
{
    begin_field(writer);
}

void csv_end_row(struct csv *writer)
{
    if (writer->has_verdict)
        csv_bool(writer, writer->is_certain);
    out_char(writer->output, '\n');
    writer->has_field = false;
}
