/* SPDX-License-Identifier: MIT */
#include "report/writers/row.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "report/writers/out.h"

/* Readers that hold numbers as doubles lose digits from 2^53 on: larger ones are strings. */
#define EXACT_MAX (UINT64_C(1) << 53)

void row_init_json(struct row *row, struct text_output *output, bool is_indented)
{
    *row = (struct row){.output = output, .is_json = true, .is_indented = is_indented};
}

void row_init_csv(struct row *row, struct text_output *output)
{
    *row = (struct row){.output = output};
}

void row_init_sink(struct row *row, struct text_output *output, struct row_sink *sink)
{
    /* Records that are in no array are at level 1. */
    *row = (struct row){.output = output, .sink = sink, .is_in_list = !sink->list, .list_depth = 1};
}

/* Passes a value to the sink, if there is one and the value is a record's. Returns false if the
 * value is to be written as text. */
static inline bool row_sinks(struct row *row, const char *key, const struct row_value *value)
{
    if (!row->sink)
        return false;
    if (key && row->is_in_list && row->depth == row->list_depth)
        row->sink->value(row->sink, key, value);
    return true;
}

static void row_new_line(struct row *row)
{
    if (!row->is_indented)
        return;
    out_char(row->output, '\n');
    for (unsigned i = 0; i < row->depth; i++)
        out_write(row->output, "  ", 2);
}

static bool row_begin_member(struct row *row, const char *key)
{
    if (row->depth) {
        if (row->has_member[row->depth])
            out_char(row->output, ',');
        row->has_member[row->depth] = true;
        row_new_line(row);
    }
    if (key) {
        out_char(row->output, '"');
        out_write(row->output, key, strlen(key));
        out_write(row->output, "\": ", row->is_indented ? 3 : 2);
    }
    return true;
}

static bool row_write_name(struct row *row, const char *key)
{
    out_write(row->output, key, strlen(key));
    return false;
}

/* The first column of a row has no comma before it. */
static bool row_begin_column(struct row *row, const char *key)
{
    if (row->depth != row->record_depth)
        return false;
    if (row->has_member[0])
        out_char(row->output, ',');
    row->has_member[0] = true;
    return row->is_header ? row_write_name(row, key) : true;
}

/* Writes the text before a value: comma, new line and key. Returns false if no value follows. */
static inline bool row_begin_value(struct row *row, const char *key)
{
    return row->is_json ? row_begin_member(row, key) : row_begin_column(row, key);
}

static void row_quote(struct row *row, bool is_quoted)
{
    if (is_quoted)
        out_char(row->output, '"');
}

static void row_begin_level(struct row *row, const char *key, char bracket)
{
    if (row->sink && row->sink->list && key && bracket == '[' && !row->is_in_list &&
        strcmp(key, row->sink->list) == 0) {
        row->is_in_list = true;
        row->list_depth = row->depth + 2;
    }
    if (row->is_json) {
        row_begin_member(row, key);
        out_char(row->output, bracket);
    }
    if (row->depth < ROW_DEPTH_MAX)
        row->depth++;
    row->has_member[row->depth] = false;
}

/* Drops text that a visitor of CSV has written behind a value. */
static void row_end_sunk_record(struct row *row)
{
    row->output->used = 0;
    row->sink->end_record(row->sink);
}

static void row_end_level(struct row *row, char bracket)
{
    /* An empty object or array stays on one line. */
    bool has_member = row->has_member[row->depth];
    row->depth--;
    if (row->sink && row->is_in_list) {
        if (bracket == '}' && row->depth + 1 == row->list_depth)
            row_end_sunk_record(row);
        if (bracket == ']' && row->sink->list && row->depth + 2 == row->list_depth)
            row->is_in_list = false;
    }
    if (!row->is_json)
        return;
    if (has_member)
        row_new_line(row);
    out_char(row->output, bracket);
    if (!row->depth && row->is_indented)
        out_char(row->output, '\n');
}

void row_begin_object(struct row *row, const char *key)
{
    row_begin_level(row, key, '{');
}

void row_end_object(struct row *row)
{
    row_end_level(row, '}');
}

void row_begin_array(struct row *row, const char *key)
{
    row_begin_level(row, key, '[');
}

void row_end_array(struct row *row)
{
    row_end_level(row, ']');
}

void row_begin_record(struct row *row)
{
    row_begin_level(row, NULL, '{');
    row->record_depth = row->depth;
    row->has_member[0] = false;
}

void row_end_record(struct row *row)
{
    if (!row->is_json && !row->sink) {
        if (row->has_verdict)
            row_bool(row, "certain", row->is_certain);
        out_char(row->output, '\n');
        row->is_header = false;
    }
    row->record_depth = 0;
    row_end_level(row, '}');
}

bool row_begin_header(struct row *row)
{
    if (row->is_json || row->has_header || row->sink)
        return false;
    row->is_header = row->has_header = true;
    row_begin_record(row);
    return true;
}

static const void *row_record(struct row *row)
{
    const char *record = row->list.next;
    if (!row->list.left) {
        row_end_array(row);
        return NULL;
    }
    row->list.left--;
    row->list.next = record + row->list.size;
    row_begin_record(row);
    return record;
}

const void *row_first(struct row *row, const char *key, const void *array, size_t count,
                      size_t size, const void *empty)
{
    assert(!row->list.left);
    row->list = (struct row_list){array, count, size};
    row_begin_array(row, key);
    if (row_begin_header(row))
        return empty;
    return row_record(row);
}

const void *row_next(struct row *row)
{
    row_end_record(row);
    return row_record(row);
}

void row_string(struct row *row, const char *key, struct ttd_string text)
{
    if (row_sinks(row, key, &(struct row_value){.type = ROW_TEXT, .text = text}))
        return;
    bool is_quoted = row->is_json;
    if (!row_begin_value(row, key))
        return;
    /* In CSV blanks are quoted too: a reader might trim them. Line ends are escaped, not quoted. */
    for (size_t i = 0; i < text.size && !is_quoted; i++)
        is_quoted = text.data[i] == '"' || text.data[i] == ',' || text.data[i] == ' ';
    row_quote(row, is_quoted);
    if (row->is_json)
        escape_json(row->output, text);
    else
        escape_csv(row->output, text);
    row_quote(row, is_quoted);
}

void row_text(struct row *row, const char *key, const char *text)
{
    if (text)
        row_string(row, key, escape_string(text));
    else
        row_null(row, key);
}

void row_name(struct row *row, const char *key, struct ttd_string text)
{
    if (text.size)
        row_string(row, key, text);
    else
        row_null(row, key);
}

/* The sign is written by itself: no signed type holds all differences of two u64. */
static void row_number(struct row *row, bool is_negative, uint64_t value)
{
    bool is_quoted = value >= EXACT_MAX && row->is_json;
    row_quote(row, is_quoted);
    if (is_negative)
        out_char(row->output, '-');
    out_unsigned(row->output, value);
    row_quote(row, is_quoted);
}

void row_unsigned(struct row *row, const char *key, uint64_t value)
{
    if (row_sinks(row, key, &(struct row_value){.type = ROW_UNSIGNED, .number = value}))
        return;
    if (row_begin_value(row, key))
        row_number(row, false, value);
}

void row_difference(struct row *row, const char *key, uint64_t old_value, uint64_t new_value)
{
    bool is_negative = old_value > new_value;
    uint64_t size = is_negative ? old_value - new_value : new_value - old_value;
    struct row_value value = {.type = is_negative ? ROW_NEGATIVE : ROW_UNSIGNED, .number = size};
    if (!row_sinks(row, key, &value) && row_begin_value(row, key))
        row_number(row, is_negative, size);
}

void row_count(struct row *row, const char *key, uint64_t value)
{
    row_unsigned_if(row, key, value != TTD_UNKNOWN, value);
}

void row_double(struct row *row, const char *key, double value)
{
    /* JSON has neither infinities nor NaN. */
    if (!isfinite(value))
        row_null(row, key);
    else if (!row_sinks(row, key, &(struct row_value){.type = ROW_REAL, .real = value}) &&
             row_begin_value(row, key))
        out_format(row->output, "%.6g", value);
}

void row_bool(struct row *row, const char *key, bool value)
{
    if (row_sinks(row, key, &(struct row_value){.type = ROW_BOOL, .number = value}))
        return;
    if (row_begin_value(row, key))
        out_write(row->output, value ? "true" : "false", value ? 4 : 5);
}

void row_null(struct row *row, const char *key)
{
    if (row_sinks(row, key, &(struct row_value){.type = ROW_NULL}))
        return;
    if (row_begin_value(row, key) && row->is_json)
        out_write(row->output, "null", 4);
}

void row_hex(struct row *row, const char *key, uint64_t value)
{
    if (row_sinks(row, key, &(struct row_value){.type = ROW_ADDRESS, .number = value}))
        return;
    if (!row_begin_value(row, key))
        return;
    row_quote(row, row->is_json);
    out_hex(row->output, value);
    row_quote(row, row->is_json);
}

void row_position(struct row *row, const char *key, struct ttd_position position)
{
    if (!ttd_position_is_valid(position)) {
        row_null(row, key);
        return;
    }
    if (row_sinks(row, key, &(struct row_value){.type = ROW_POSITION, .position = position}) ||
        !row_begin_value(row, key))
        return;
    row_quote(row, row->is_json);
    out_position(row->output, position);
    row_quote(row, row->is_json);
}

void row_bytes(struct row *row, const char *key, const uint8_t *data, size_t size)
{
    bool is_quoted = row->is_json;
    if (row->sink ? !row_begin_field(row, key) : !row_begin_value(row, key))
        return;
    row_quote(row, is_quoted);
    for (size_t i = 0; i < size; i++)
        out_format(row->output, "%02x", data[i]);
    row_quote(row, is_quoted);
    if (row->sink)
        row_end_field(row);
}

void row_unsigned_if(struct row *row, const char *key, bool has, uint64_t value)
{
    if (has)
        row_unsigned(row, key, value);
    else
        row_null(row, key);
}

void row_hex_if(struct row *row, const char *key, bool has, uint64_t value)
{
    if (has)
        row_hex(row, key, value);
    else
        row_null(row, key);
}

bool row_has(struct row *row, const char *key, bool has)
{
    if (!has && !row->is_json)
        row_null(row, key);
    return has;
}

/* In the output's buffer, from its beginning, so that there is most room. */
static bool row_begin_sunk_field(struct row *row, const char *key)
{
    if (!row->is_in_list || row->depth != row->list_depth)
        return false;
    row->output->used = 0;
    row->field_key = key;
    return true;
}

bool row_begin_field(struct row *row, const char *key)
{
    if (row->sink)
        return row_begin_sunk_field(row, key);
    bool begins = row_begin_value(row, key);
    row_quote(row, begins);
    return begins;
}

void row_field_text(struct row *row, struct ttd_string text, bool is_first)
{
    if (!is_first)
        out_char(row->output, ';');
    escape_csv(row->output, text);
}

void row_end_field(struct row *row)
{
    if (row->sink) {
        struct ttd_string text = {row->output->buffer, row->output->used};
        row_sinks(row, row->field_key, &(struct row_value){.type = ROW_TEXT, .text = text});
        row->output->used = 0;
        return;
    }
    row_quote(row, true);
}
