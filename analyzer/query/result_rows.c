/* SPDX-License-Identifier: MIT */
#include "query/result_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/tables.h"
#include "report/sections/sections.h"
#include "report/writers/out.h"

/* Values. */

/* A value of the row that the statement has: a number, an address, or a text. A blob is a text,
 * with the digits of its bytes. */
struct result_value {
    int type;
    bool is_address;
    int64_t integer;
    double real;
    struct ttd_string text;
};

static struct result_value result_fetch(const struct result_rows *result, int column)
{
    /* Several calls with a column take longer than those with its value, which need no mutex. */
    sqlite3_value *source = sqlite3_column_value(result->statement, column);
    struct result_value value = {.type = sqlite3_value_type(source)};
    switch (value.type) {
    case SQLITE_INTEGER:
        value.integer = sqlite3_value_int64(source);
        value.is_address = result->has_addresses[column];
        break;
    case SQLITE_FLOAT:
        value.real = sqlite3_value_double(source);
        break;
    case SQLITE_NULL:
        break;
    default: {
        const char *data = (const char *)sqlite3_value_text(source);
        size_t size = data ? (size_t)sqlite3_value_bytes(source) : 0;
        value.text = (struct ttd_string){data ? data : "", size};
    }
    }
    return value;
}

/* Finds the columns of addresses. */
static void result_find_addresses(struct result_rows *result)
{
    for (int column = 0; column < result->columns; column++) {
        const char *type = sqlite3_column_decltype(result->statement, column);
        result->has_addresses[column] = type && strcmp(type, "ADDRESS") == 0;
    }
}

/* Writes a value that is a number, an address or a position, as every form has it. False if it is
 * none of them. */
static bool result_write_plain(struct text_output *output, const struct result_value *value)
{
    struct ttd_position position;
    if (value->is_address) {
        out_hex(output, (uint64_t)value->integer);
    } else if (value->type == SQLITE_INTEGER) {
        if (value->integer < 0)
            out_char(output, '-');
        out_unsigned(output,
                     value->integer < 0 ? -(uint64_t)value->integer : (uint64_t)value->integer);
    } else if (value->type == SQLITE_FLOAT) {
        out_format(output, "%.15g", value->real);
    } else if (value->text.size == QUERY_POSITION_SIZE - 1 &&
               query_position_parse(value->text.data, &position)) {
        out_position(output, position);
    } else {
        return false;
    }
    return true;
}

/* JSON and CSV have neither infinities nor NaN: they are null there. */
static bool result_is_null(const struct result_value *value)
{
    return value->type == SQLITE_NULL || (value->type == SQLITE_FLOAT && !isfinite(value->real));
}

/* Returns the text that `write` has composed in the output, to be freed. */
static char *result_take_text(struct text_output *output, size_t begin)
{
    char *text = strndup(output->buffer + begin, output->used - begin);
    output->column -= output->used - begin;
    output->used = begin;
    return text;
}

/* JSON: an object for each row. */

static void result_json_key(const struct result_rows *result, int column)
{
    const struct ttd_string *key = &result->keys[column];
    out_write(result->report->output, key->data, key->size);
}

/* Composes the key that stands before the values of each column, once. False without memory. */
static bool result_compose_keys(struct result_rows *result)
{
    struct text_output *output = result->report->output;
    out_flush(output);
    for (int column = 0; column < result->columns; column++) {
        if (column)
            out_write(output, ", ", 2);
        out_char(output, '"');
        escape_json(output, escape_string(sqlite3_column_name(result->statement, column)));
        out_write(output, "\": ", 3);
        size_t size = output->used;
        char *key = result_take_text(output, 0);
        if (!key)
            return false;
        result->keys[column] = (struct ttd_string){key, size};
    }
    return true;
}

static bool result_is_number(const struct result_value *value)
{
    return value->type == SQLITE_INTEGER || value->type == SQLITE_FLOAT;
}

static void result_json_row(const struct result_rows *result)
{
    struct text_output *output = result->report->output;
    out_text(output, result->is_lines ? "{" : result->rows ? ",\n    {" : "\n    {");
    for (int column = 0; column < result->columns; column++) {
        struct result_value value = result_fetch(result, column);
        bool is_quoted = value.is_address || !result_is_number(&value);
        result_json_key(result, column);
        if (result_is_null(&value)) {
            out_write(output, "null", 4);
            continue;
        }
        if (is_quoted)
            out_char(output, '"');
        if (!result_write_plain(output, &value))
            escape_json(output, value.text);
        if (is_quoted)
            out_char(output, '"');
    }
    out_text(output, result->is_lines ? "}\n" : "}");
}

static void result_json_end(const struct result_rows *result)
{
    struct text_output *output = result->report->output;
    const struct certainty *certainty = &result->report->certainty;
    out_text(output, result->rows ? "\n  ],\n" : "],\n");
    out_format(output, "  \"certain\": %s,\n  \"reasons\": [", certainty->count ? "false" : "true");
    for (size_t i = 0; i < certainty->count; i++) {
        out_text(output, i ? ", \"" : "\"");
        escape_json(output, escape_string(certainty->reasons[i]));
        out_char(output, '"');
    }
    out_text(output, "]\n}\n");
}

/* CSV. */

/* Whether a text consists of letters and digits: most do, and need no care. */
static bool result_is_word(struct ttd_string text)
{
    size_t size = 0;
    while (size < text.size && ((text.data[size] >= 'A' && text.data[size] <= 'Z') ||
                                (text.data[size] >= 'a' && text.data[size] <= 'z') ||
                                (text.data[size] >= '0' && text.data[size] <= '9')))
        size++;
    return text.size && size == text.size;
}

/* Writes a text as the lists in fields of CSV are written: parts between ';', each of which is no
 * formula. Quotes are written where a reader needs them, and for a row that would be empty. */
static void result_csv_text(const struct result_rows *result, struct ttd_string text)
{
    struct text_output *output = result->report->output;
    if (result_is_word(text)) {
        out_write(output, text.data, text.size);
        return;
    }
    bool is_quoted = !text.size && result->columns == 1;
    for (size_t i = 0; i < text.size && !is_quoted; i++)
        is_quoted = text.data[i] == '"' || text.data[i] == ',' || text.data[i] == ' ' ||
                    text.data[i] == ';';
    if (is_quoted)
        out_char(output, '"');
    while (true) {
        const char *end = text.size ? memchr(text.data, ';', text.size) : NULL;
        size_t size = end ? (size_t)(end - text.data) : text.size;
        escape_csv(output, (struct ttd_string){text.data, size});
        if (!end)
            break;
        out_char(output, ';');
        text.data += size + 1;
        text.size -= size + 1;
    }
    if (is_quoted)
        out_char(output, '"');
}

static void result_csv_header(const struct result_rows *result)
{
    for (int column = 0; column < result->columns; column++) {
        if (column)
            out_char(result->report->output, ',');
        result_csv_text(result, escape_string(sqlite3_column_name(result->statement, column)));
    }
    out_char(result->report->output, '\n');
}

static void result_csv_row(const struct result_rows *result)
{
    struct text_output *output = result->report->output;
    for (int column = 0; column < result->columns; column++) {
        if (column)
            out_char(output, ',');
        struct result_value value = result_fetch(result, column);
        if (result_is_null(&value))
            result_csv_text(result, (struct ttd_string){"", 0});
        else if (!result_write_plain(output, &value))
            result_csv_text(result, value.text);
    }
    out_char(output, '\n');
}

/* Text: columns as wide as the first rows need them. */

/* Composes a value, or the name of a column, as text to be freed. */
static char *result_compose(const struct result_rows *result, int column, bool is_header)
{
    struct text_output *output = result->report->output;
    out_flush(output);
    size_t width = output->width;
    output->width = 0;
    struct result_value value = {.type = SQLITE_TEXT};
    if (is_header)
        value.text = escape_string(sqlite3_column_name(result->statement, column));
    else
        value = result_fetch(result, column);
    if (value.type != SQLITE_NULL && !result_write_plain(output, &value))
        escape_text(output, value.text);
    output->width = width;
    return result_take_text(output, 0);
}

/* Columns of a terminal that an escaped text takes: its characters. */
static size_t result_columns(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += (*text & 0xc0) != 0x80;
    return count;
}

/* Returns the text behind so many characters. */
static const char *result_skip(const char *text, size_t count)
{
    while (*text && count) {
        text++;
        if ((*text & 0xc0) != 0x80)
            count--;
    }
    return text;
}

/* Writes a text without its middle if it is wider than its column. */
static size_t result_write_cell(struct text_output *output, const char *text, size_t width)
{
    size_t columns = result_columns(text);
    if (columns <= width) {
        out_text(output, text);
        return columns;
    }
    size_t head = (width - 1) / 2, tail = width - 1 - head;
    const char *end = result_skip(text, head);
    out_write(output, text, (size_t)(end - text));
    out_text(output, output->has_utf8 ? "…" : "~");
    out_text(output, result_skip(text, columns - tail));
    return width;
}

/* Narrows the widest columns of texts until a row fits a line; numbers are never cut. */
static void result_fit(struct result_rows *result)
{
    size_t room = result->report->output->width, *widths = result->text.widths;
    size_t total = 2 * (size_t)(result->columns - 1);
    for (int i = 0; i < result->columns; i++)
        total += widths[i];
    while (room && total > room) {
        int widest = -1;
        for (int i = 0; i < result->columns; i++) {
            if (!result->text.is_number[i] && widths[i] > RESULT_WIDTH_MIN &&
                (widest < 0 || widths[i] > widths[widest]))
                widest = i;
        }
        if (widest < 0)
            return;
        widths[widest]--;
        total--;
    }
}

static void result_write_line(const struct result_rows *result, char *const *cells)
{
    struct text_output *output = result->report->output;
    for (int i = 0; i < result->columns; i++) {
        size_t width = result->text.widths[i], columns = result_columns(cells[i]);
        bool is_number = result->text.is_number[i];
        if (i)
            out_text(output, "  ");
        for (size_t blanks = is_number ? columns : width; blanks < width; blanks++)
            out_char(output, ' ');
        columns = result_write_cell(output, cells[i], is_number ? SIZE_MAX : width);
        for (size_t blanks = is_number || i + 1 == result->columns ? width : columns;
             blanks < width; blanks++)
            out_char(output, ' ');
    }
    out_char(output, '\n');
}

/* Writes the rows that were kept; later ones are written at once. */
static void result_begin_text(struct result_rows *result)
{
    struct result_text *text = &result->text;
    if (!text->is_begun)
        result_fit(result);
    for (size_t row = 0; row < text->rows; row++) {
        char **cells = &text->cells[row * (size_t)result->columns];
        bool is_header = !row && !text->is_begun;
        if (is_header)
            out_bold(result->report->output);
        result_write_line(result, cells);
        if (is_header)
            out_plain(result->report->output);
        for (int i = 0; i < result->columns; i++)
            free(cells[i]);
    }
    text->rows = 0;
    text->is_begun = true;
}

static bool result_text_row(struct result_rows *result, bool is_header)
{
    struct result_text *text = &result->text;
    char **cells = &text->cells[text->rows * (size_t)result->columns];
    bool is_whole = true;
    for (int i = 0; i < result->columns; i++) {
        cells[i] = result_compose(result, i, is_header);
        is_whole &= cells[i] != NULL;
        size_t size = cells[i] ? result_columns(cells[i]) : 0;
        if (!text->is_begun && size > text->widths[i])
            text->widths[i] = size;
        if (!is_header && !text->is_begun)
            text->is_number[i] |= result_is_number(
                &(struct result_value){.type = sqlite3_column_type(result->statement, i)});
    }
    text->rows++;
    if (is_whole && (text->is_begun || text->rows == RESULT_ROWS_KEPT))
        result_begin_text(result);
    return is_whole;
}

bool result_ends_with(const char *path, const char *const *ends)
{
    size_t size = path ? strlen(path) : 0;
    for (; *ends; ends++) {
        size_t length = strlen(*ends);
        if (size > length && strcmp(path + size - length, *ends) == 0)
            return true;
    }
    return false;
}

bool result_rows_are_lines(const char *path)
{
    static const char *const ends[] = {".jsonl", ".ndjson", NULL};
    return result_ends_with(path, ends);
}

bool result_rows_begin(struct result_rows *result, struct report *report, bool is_lines,
                       sqlite3_stmt *statement)
{
    *result = (struct result_rows){.report = report,
                                   .statement = statement,
                                   .is_lines = is_lines,
                                   .columns = sqlite3_column_count(statement)};
    result_find_addresses(result);
    if (is_lines)
        return result_compose_keys(result);
    if (report->form == REPORT_JSON) {
        bool is_composed = result_compose_keys(result);
        out_text(report->output, "{\n  \"rows\": [");
        return is_composed;
    }
    if (report->form == REPORT_CSV) {
        result_csv_header(result);
        return true;
    }
    result->text.cells =
        calloc((RESULT_ROWS_KEPT + 1) * (size_t)result->columns, sizeof *result->text.cells);
    return result->text.cells && result_text_row(result, true);
}

bool result_rows_add(struct result_rows *result)
{
    bool is_whole = true;
    if (result->is_lines || result->report->form == REPORT_JSON)
        result_json_row(result);
    else if (result->report->form == REPORT_CSV)
        result_csv_row(result);
    else
        is_whole = result_text_row(result, false);
    result->rows++;
    return is_whole;
}

void result_rows_end(struct result_rows *result, bool is_complete)
{
    if (is_complete && !result->is_lines && result->report->form == REPORT_JSON)
        result_json_end(result);
    if (is_complete && result->text.cells) {
        if (!result->text.is_begun)
            result_begin_text(result);
        report_certainty_text(result->report);
    }
    for (size_t i = 0; i < result->text.rows * (size_t)result->columns; i++)
        free(result->text.cells[i]);
    free(result->text.cells);
    for (int i = 0; i < result->columns; i++)
        free((char *)(uintptr_t)result->keys[i].data);
}
