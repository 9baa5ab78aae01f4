/* SPDX-License-Identifier: MIT */
#include "report/writers/csv.h"

#include "report/writers/escape.h"

void csv_init(struct csv *csv, struct text_output *output)
{
    *csv = (struct csv){.output = output};
}

void csv_header(struct csv *csv, const char *names)
{
    out_text(csv->output, names);
    if (csv->has_verdict)
        out_text(csv->output, ",certain");
    out_char(csv->output, '\n');
}

static void begin_field(struct csv *csv)
{
    if (csv->has_field)
        out_char(csv->output, ',');
    csv->has_field = true;
}

void csv_string(struct csv *csv, struct ttd_string text)
{
    /* Blanks are quoted too: a reader might trim them. Line ends are escaped, not quoted. */
    bool is_quoted = false;
    for (size_t i = 0; i < text.size && !is_quoted; i++)
        is_quoted = text.data[i] == '"' || text.data[i] == ',' || text.data[i] == ' ';
    begin_field(csv);
    if (is_quoted)
        out_char(csv->output, '"');
    escape_csv(csv->output, text);
    if (is_quoted)
        out_char(csv->output, '"');
}

void csv_list_begin(struct csv *csv)
{
    begin_field(csv);
    out_char(csv->output, '"');
}

void csv_list_item(struct csv *csv, struct ttd_string text, bool is_first)
{
    if (!is_first)
        out_char(csv->output, ';');
    escape_csv(csv->output, text);
}

void csv_list_end(struct csv *csv)
{
    out_char(csv->output, '"');
}

void csv_text(struct csv *csv, const char *text)
{
    csv_string(csv, escape_string(text));
}

void csv_bool(struct csv *csv, bool value)
{
    begin_field(csv);
    out_text(csv->output, value ? "true" : "false");
}

void csv_unsigned(struct csv *csv, uint64_t value)
{
    begin_field(csv);
    out_unsigned(csv->output, value);
}

void csv_difference(struct csv *csv, uint64_t old_value, uint64_t new_value)
{
    /* The sign is written by itself: no signed type holds all differences of two u64. */
    begin_field(csv);
    if (old_value > new_value)
        out_char(csv->output, '-');
    out_unsigned(csv->output,
                 old_value > new_value ? old_value - new_value : new_value - old_value);
}

void csv_count(struct csv *csv, uint64_t value)
{
    if (value == TTD_UNKNOWN)
        csv_empty(csv);
    else
        csv_unsigned(csv, value);
}

void csv_double(struct csv *csv, double value)
{
    begin_field(csv);
    out_format(csv->output, "%.6g", value);
}

void csv_hex(struct csv *csv, uint64_t value)
{
    begin_field(csv);
    out_hex(csv->output, value);
}

void csv_position(struct csv *csv, struct ttd_position position)
{
    begin_field(csv);
    if (ttd_position_is_valid(position))
        out_position(csv->output, position);
}

/* An unknown value is an empty field, as for spreadsheets; JSON has null for it. */
void csv_empty(struct csv *csv)
{
    begin_field(csv);
}

void csv_unsigned_if(struct csv *csv, bool has, uint64_t value)
{
    if (has)
        csv_unsigned(csv, value);
    else
        csv_empty(csv);
}

void csv_hex_if(struct csv *csv, bool has, uint64_t value)
{
    if (has)
        csv_hex(csv, value);
    else
        csv_empty(csv);
}

void csv_end_row(struct csv *csv)
{
    if (csv->has_verdict)
        csv_bool(csv, csv->is_certain);
    out_char(csv->output, '\n');
    csv->has_field = false;
}
