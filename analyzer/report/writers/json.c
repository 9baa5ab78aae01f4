/* SPDX-License-Identifier: MIT */
#include "report/writers/json.h"

#include <math.h>

#include "report/writers/escape.h"

/* Readers that hold numbers as doubles lose digits from 2^53 on: larger ones are strings. */
#define EXACT_MAX (UINT64_C(1) << 53)

void json_init(struct json *json, struct text_output *output, bool is_indented)
{
    *json = (struct json){.output = output, .is_indented = is_indented};
}

static void new_line(struct json *json)
{
    if (!json->is_indented)
        return;
    out_char(json->output, '\n');
    for (unsigned i = 0; i < json->depth; i++)
        out_text(json->output, "  ");
}

/* Writes the text before a value: comma, new line and key. */
static void begin_value(struct json *json, const char *key)
{
    if (json->depth) {
        if (json->has_member[json->depth])
            out_char(json->output, ',');
        json->has_member[json->depth] = true;
        new_line(json);
    }
    if (!key)
        return;
    out_char(json->output, '"');
    out_text(json->output, key);
    out_text(json->output, json->is_indented ? "\": " : "\":");
}

static void begin_level(struct json *json, const char *key, char bracket)
{
    begin_value(json, key);
    out_char(json->output, bracket);
    if (json->depth < JSON_DEPTH_MAX)
        json->depth++;
    json->has_member[json->depth] = false;
}

static void end_level(struct json *json, char bracket)
{
    /* An empty object or array stays on one line. */
    bool has_member = json->has_member[json->depth];
    json->depth--;
    if (has_member)
        new_line(json);
    out_char(json->output, bracket);
    if (!json->depth && json->is_indented)
        out_char(json->output, '\n');
}

void json_begin_object(struct json *json, const char *key)
{
    begin_level(json, key, '{');
}

void json_end_object(struct json *json)
{
    end_level(json, '}');
}

void json_begin_array(struct json *json, const char *key)
{
    begin_level(json, key, '[');
}

void json_end_array(struct json *json)
{
    end_level(json, ']');
}

void json_string(struct json *json, const char *key, struct ttd_string text)
{
    begin_value(json, key);
    out_char(json->output, '"');
    escape_json(json->output, text);
    out_char(json->output, '"');
}

void json_text(struct json *json, const char *key, const char *text)
{
    if (text)
        json_string(json, key, escape_string(text));
    else
        json_null(json, key);
}

void json_name(struct json *json, const char *key, struct ttd_string text)
{
    if (text.size)
        json_string(json, key, text);
    else
        json_null(json, key);
}

void json_unsigned(struct json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    if (value >= EXACT_MAX)
        out_char(json->output, '"');
    out_unsigned(json->output, value);
    if (value >= EXACT_MAX)
        out_char(json->output, '"');
}

void json_difference(struct json *json, const char *key, uint64_t old_value, uint64_t new_value)
{
    uint64_t distance = old_value > new_value ? old_value - new_value : new_value - old_value;
    begin_value(json, key);
    if (distance >= EXACT_MAX)
        out_char(json->output, '"');
    if (old_value > new_value)
        out_char(json->output, '-');
    out_unsigned(json->output, distance);
    if (distance >= EXACT_MAX)
        out_char(json->output, '"');
}

void json_count(struct json *json, const char *key, uint64_t value)
{
    if (value == TTD_UNKNOWN)
        json_null(json, key);
    else
        json_unsigned(json, key, value);
}

void json_double(struct json *json, const char *key, double value)
{
    /* JSON has neither infinities nor NaN. */
    if (!isfinite(value)) {
        json_null(json, key);
        return;
    }
    begin_value(json, key);
    out_format(json->output, "%.6g", value);
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin_value(json, key);
    out_text(json->output, value ? "true" : "false");
}

void json_null(struct json *json, const char *key)
{
    begin_value(json, key);
    out_text(json->output, "null");
}

void json_hex(struct json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    out_char(json->output, '"');
    out_hex(json->output, value);
    out_char(json->output, '"');
}

void json_hex_if(struct json *json, const char *key, bool has, uint64_t value)
{
    if (has)
        json_hex(json, key, value);
    else
        json_null(json, key);
}

void json_position(struct json *json, const char *key, struct ttd_position position)
{
    if (!ttd_position_is_valid(position)) {
        json_null(json, key);
        return;
    }
    begin_value(json, key);
    out_char(json->output, '"');
    out_position(json->output, position);
    out_char(json->output, '"');
}

void json_bytes(struct json *json, const char *key, const uint8_t *data, size_t size)
{
    begin_value(json, key);
    out_char(json->output, '"');
    for (size_t i = 0; i < size; i++)
        out_format(json->output, "%02x", data[i]);
    out_char(json->output, '"');
}
