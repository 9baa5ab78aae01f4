/* SPDX-License-Identifier: MIT */
#include "report/json.h"

#include <math.h>

#include "report/escape.h"

#define EXACT_MAX (UINT64_C(1) << 53)

void json_init(struct json *writer, struct out *output, bool is_indented)
{
    *writer = (struct json){.output = output, .is_indented = is_indented};
}

static void new_line(struct json *writer)
{
    if (!writer->is_indented)
        return;
    out_char(writer->output, '\n');
    for (unsigned i = 0; i < writer->depth; i++)
        out_text(writer->output, "  ");
}

/* What comes before a value: comma, line, key. */
static void begin_value(struct json *writer, const char *key)
{
    if (writer->depth) {
        if (writer->has_member[writer->depth])
            out_char(writer->output, ',');
        writer->has_member[writer->depth] = true;
        new_line(writer);
    }
    if (!key)
        return;
    out_char(writer->output, '"');
    out_text(writer->output, key);
    out_text(writer->output, writer->is_indented ? "\": " : "\":");
}

static void begin_level(struct json *writer, const char *key, char bracket)
{
    begin_value(writer, key);
    out_char(writer->output, bracket);
    if (writer->depth < JSON_DEPTH_MAX)
        writer->depth++;
    writer->has_member[writer->depth] = false;
}

static void end_level(struct json *writer, char bracket)
{
    bool has_member = writer->has_member[writer->depth];
    writer->depth--;
    if (has_member)
        new_line(writer);
    out_char(writer->output, bracket);
    if (!writer->depth && writer->is_indented)
        out_char(writer->output, '\n');
}

void json_begin_object(struct json *writer, const char *key)
{
    begin_level(writer, key, '{');
}

void json_end_object(struct json *writer)
{
    end_level(writer, '}');
}

void json_begin_array(struct json *writer, const char *key)
{
    begin_level(writer, key, '[');
}

void json_end_array(struct json *writer)
{
    end_level(writer, ']');
}

void json_string(struct json *writer, const char *key, struct ttd_string text)
{
    begin_value(writer, key);
    out_char(writer->output, '"');
    escape_json(writer->output, text);
    out_char(writer->output, '"');
}

void json_text(struct json *writer, const char *key, const char *text)
{
    if (text)
        json_string(writer, key, escape_string(text));
    else
        json_null(writer, key);
}

void json_name(struct json *writer, const char *key, struct ttd_string text)
{
    if (text.size)
        json_string(writer, key, text);
    else
        json_null(writer, key);
}

void json_unsigned(struct json *writer, const char *key, uint64_t value)
{
    begin_value(writer, key);
    if (value >= EXACT_MAX)
        out_char(writer->output, '"');
    out_unsigned(writer->output, value);
    if (value >= EXACT_MAX)
        out_char(writer->output, '"');
}

void json_difference(struct json *writer, const char *key, uint64_t from, uint64_t to)
{
    uint64_t distance = from > to ? from - to : to - from;
    begin_value(writer, key);
    if (distance >= EXACT_MAX)
        out_char(writer->output, '"');
    if (from > to)
        out_char(writer->output, '-');
    out_unsigned(writer->output, distance);
    if (distance >= EXACT_MAX)
        out_char(writer->output, '"');
}

void json_count(struct json *writer, const char *key, uint64_t value)
{
    if (value == TTD_UNKNOWN)
        json_null(writer, key);
    else
        json_unsigned(writer, key, value);
}

void json_double(struct json *writer, const char *key, double value)
{
    if (!isfinite(value)) {
        json_null(writer, key);
        return;
    }
    begin_value(writer, key);
    out_format(writer->output, "%.6g", value);
}

void json_bool(struct json *writer, const char *key, bool value)
{
    begin_value(writer, key);
    out_text(writer->output, value ? "true" : "false");
}

void json_null(struct json *writer, const char *key)
{
    begin_value(writer, key);
    out_text(writer->output, "null");
}

void json_hex(struct json *writer, const char *key, uint64_t value)
{
    begin_value(writer, key);
    out_char(writer->output, '"');
    out_hex(writer->output, value);
    out_char(writer->output, '"');
}

void json_position(struct json *writer, const char *key, struct ttd_position position)
{
    if (!ttd_position_is_valid(position)) {
        json_null(writer, key);
        return;
    }
    begin_value(writer, key);
    out_char(writer->output, '"');
    out_position(writer->output, position);
    out_char(writer->output, '"');
}

void json_bytes(struct json *writer, const char *key, const uint8_t *data, size_t size)
{
    begin_value(writer, key);
    out_char(writer->output, '"');
    for (size_t i = 0; i < size; i++)
        out_format(writer->output, "%02x", data[i]);
    out_char(writer->output, '"');
}
