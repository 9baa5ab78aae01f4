/* SPDX-License-Identifier: MIT */
/* A row is composed in the output's buffer, which has room for the longest one. */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/trace/trace_reports.h"
#include "report/writers/row.h"

/* Bytes of a row, at most: 17 columns of less than 100. */
#define ROWS_ROW_MAX 2048

/* Bytes of a text that is composed once, at most: so many are always copied. */
#define ROWS_TEXT_MAX 48

/* Bytes of two columns that seldom change, at most. */
#define ROWS_PAIR_MAX 80

/** Text that is ready to be copied. */
struct rows_text {
    char text[ROWS_TEXT_MAX];
    size_t size;
};

/** Two columns of the last event, with the text before the value behind them. */
struct rows_pair {
    char text[ROWS_PAIR_MAX + ROWS_TEXT_MAX];
    size_t size;
    uint64_t first;
    uint64_t second;
};

/** The two hexadecimal digits of each byte. */
struct rows_digits {
    char pairs[256][2];
};

struct report_rows {
    struct report *report;
    bool is_json;
    bool has_times;
    /** The text before the value of each column, and behind the last one. */
    struct rows_text keys[EVENTS_COLUMNS + 1];
    /** Names of actions and functions, by their numbers, with the text before the next value. */
    struct rows_text actions[256];
    struct rows_text apis[256];
    /** The digits of all bytes: decimal up to 99, hexadecimal in capitals and in small letters. */
    char decimal[100][2];
    struct rows_digits capitals;
    struct rows_digits small;
    /** The handle of the heap, and its number. */
    struct rows_pair heap;
    /** The flags and the result. */
    struct rows_pair result;
    /** The sequence of the position that was written last, with its quote and its colon. */
    struct rows_text sequence;
    uint64_t last_sequence;
};

/* Texts that are composed once. */

/* Takes the text out of the empty buffer in which it was composed. */
static void rows_take(struct text_output *output, struct rows_text *text)
{
    assert(output->used <= ROWS_TEXT_MAX);
    text->size = output->used;
    memcpy(text->text, output->buffer, text->size);
    output->used = 0;
}

/* A name, and the text before the next column's value. */
static void rows_compose_name(struct report_rows *rows, const char *name, enum event_column next,
                              struct rows_text *text)
{
    struct text_output *output = rows->report->output;
    struct row row;
    if (rows->is_json)
        row_init_json(&row, output, false);
    else
        row_init_csv(&row, output);
    row_text(&row, NULL, name);
    out_write(output, rows->keys[next].text, rows->keys[next].size);
    rows_take(output, text);
}

static void rows_compose(struct report_rows *rows)
{
#define ROWS_COLUMN_NAME(id, name, type) name,
    static const char *const names[] = {EVENT_COLUMNS(ROWS_COLUMN_NAME)};
#undef ROWS_COLUMN_NAME
    struct text_output *output = rows->report->output;
    for (size_t i = 0; i <= EVENTS_COLUMNS; i++) {
        if (i == EVENTS_COLUMNS)
            out_text(output, rows->is_json ? "}\n" : "\n");
        else if (rows->is_json)
            out_format(output, "%s\"%s\": ", i ? ", " : "{", names[i]);
        else
            out_text(output, i ? "," : "");
        rows_take(output, &rows->keys[i]);
    }
    for (unsigned i = 0; i < 256; i++) {
        rows_compose_name(rows, ttd_action_name((enum ttd_action)i), EVENTS_API, &rows->actions[i]);
        rows_compose_name(rows, ttd_api_name(i), EVENTS_HEAP, &rows->apis[i]);
        memcpy(rows->capitals.pairs[i],
               (char[]){"0123456789ABCDEF"[i >> 4], "0123456789ABCDEF"[i & 15]}, 2);
        memcpy(rows->small.pairs[i],
               (char[]){"0123456789abcdef"[i >> 4], "0123456789abcdef"[i & 15]}, 2);
        if (i < 100)
            memcpy(rows->decimal[i], (char[]){(char)('0' + i / 10), (char)('0' + i % 10)}, 2);
    }
    for (size_t i = 0; i < EVENTS_COLUMNS && !rows->is_json; i++)
        out_format(output, "%s%s", i ? "," : "", names[i]);
    if (!rows->is_json)
        out_char(output, '\n');
}

/* Values. Each function writes at a place, and returns the one behind it. */

static inline char *rows_write_text(char *at, const struct rows_text *text)
{
    memcpy(at, text->text, ROWS_TEXT_MAX);
    return at + text->size;
}

static inline char *rows_write_decimal(const struct report_rows *rows, char *at, uint64_t value)
{
    char digits[40];
    size_t begin = 20;
    for (; value >= 100; value /= 100)
        memcpy(digits + (begin -= 2), rows->decimal[value % 100], 2);
    memcpy(digits + (begin -= 2), rows->decimal[value], 2);
    begin += value < 10;
    memcpy(at, digits + begin, 20);
    return at + 20 - begin;
}

static inline char *rows_write_hex(const struct rows_digits *bytes, char *at, uint64_t value)
{
    unsigned digits = value ? (67 - (unsigned)__builtin_clzll(value)) / 4 : 1;
    if (digits & 1)
        *at++ = bytes->pairs[value >> 4 * (digits - 1) & 15][1];
    for (unsigned shift = 4 * (digits & ~1U); shift; shift -= 8, at += 2)
        memcpy(at, bytes->pairs[value >> (shift - 8) & 255], 2);
    return at;
}

static char *rows_write_null(const struct report_rows *rows, char *at)
{
    memcpy(at, "null", 4);
    return rows->is_json ? at + 4 : at;
}

static inline char *rows_write_quote(const struct report_rows *rows, char *at)
{
    *at = '"';
    return at + rows->is_json;
}

static inline char *rows_key(const struct report_rows *rows, char *at, enum event_column column)
{
    return rows_write_text(at, &rows->keys[column]);
}

static inline char *rows_number(const struct report_rows *rows, char *at, bool has, uint64_t value)
{
    if (!has)
        return rows_write_null(rows, at);
    /* A larger number is a floating-point one in SQL. */
    if (value > INT64_MAX)
        return at + snprintf(at, 32, "%.15g", (double)value);
    return rows_write_decimal(rows, at, value);
}

static inline char *rows_address(const struct report_rows *rows, char *at, bool has, uint64_t value)
{
    if (!has)
        return rows_write_null(rows, at);
    at = rows_write_quote(rows, at);
    *at++ = '0';
    *at++ = 'x';
    at = rows_write_hex(&rows->small, at, value);
    return rows_write_quote(rows, at);
}

static inline char *rows_position(struct report_rows *rows, char *at, struct ttd_position position)
{
    struct rows_text *sequence = &rows->sequence;
    if (!ttd_position_is_valid(position))
        return rows_write_null(rows, at);
    if (position.sequence != rows->last_sequence || !sequence->size) {
        char *end = rows_write_quote(rows, sequence->text);
        end = rows_write_hex(&rows->capitals, end, position.sequence);
        *end++ = ':';
        sequence->size = (size_t)(end - sequence->text);
        rows->last_sequence = position.sequence;
    }
    at = rows_write_text(at, sequence);
    at = rows_write_hex(&rows->capitals, at, position.steps);
    return rows_write_quote(rows, at);
}

/* Columns that are mostly those of the last event. */

static inline bool rows_has_pair(const struct rows_pair *pair, uint64_t first, uint64_t second)
{
    return pair->size && pair->first == first && pair->second == second;
}

static void rows_keep_pair(struct rows_pair *pair, const char *end, uint64_t first, uint64_t second)
{
    pair->size = (size_t)(end - pair->text);
    pair->first = first;
    pair->second = second;
}

static inline char *rows_write_pair(char *at, const struct rows_pair *pair)
{
    memcpy(at, pair->text, ROWS_PAIR_MAX);
    return at + pair->size;
}

static char *rows_heap(struct report_rows *rows, char *at, const struct ttd_event *event)
{
    struct rows_pair *pair = &rows->heap;
    if (!rows_has_pair(pair, event->heap, 0)) {
        uint64_t handle = definitions_heap_handle(rows->report->definitions, event->heap);
        char *end = rows_address(rows, pair->text, true, handle);
        end = rows_number(rows, rows_key(rows, end, EVENTS_HEAP_ID), true, event->heap);
        rows_keep_pair(pair, rows_key(rows, end, EVENTS_ADDRESS), event->heap, 0);
    }
    return rows_write_pair(at, pair);
}

static char *rows_result(struct report_rows *rows, char *at, const struct ttd_event *event)
{
    struct rows_pair *pair = &rows->result;
    if (!rows_has_pair(pair, event->flags, event->result)) {
        char *end = rows_address(rows, pair->text, true, event->flags);
        end = rows_number(rows, rows_key(rows, end, EVENTS_RESULT), true, event->result);
        rows_keep_pair(pair, rows_key(rows, end, EVENTS_TIME_START), event->flags, event->result);
    }
    return rows_write_pair(at, pair);
}

static char *rows_write_event(struct report_rows *rows, char *at, const struct ttd_event *event)
{
    bool has_time = rows->has_times && event->wall_time != TTD_UNKNOWN;
    at = rows_number(rows, rows_key(rows, at, EVENTS_NUMBER), true, event->number);
    at = rows_position(rows, rows_key(rows, at, EVENTS_POSITION), ttd_event_position(event));
    at = rows_key(rows, at, EVENTS_ACTION);
    at = rows_write_text(at, &rows->actions[event->action]);
    at = rows_write_text(at, &rows->apis[event->api]);
    at = rows_heap(rows, at, event);
    at = rows_address(rows, at, event_has_address(event), event->address);
    at = rows_key(rows, at, EVENTS_PREVIOUS_ADDRESS);
    at = rows_address(rows, at, event_has_previous_address(event), event->previous_address);
    at = rows_key(rows, at, EVENTS_BASE_ADDRESS);
    at = rows_address(rows, at, event_has_base_address(event), event->base_address);
    at = rows_key(rows, at, EVENTS_SIZE);
    at = rows_number(rows, at, event_has_size(event), event->size);
    at = rows_result(rows, rows_key(rows, at, EVENTS_FLAGS), event);
    at = rows_position(rows, at, event->time_start);
    at = rows_position(rows, rows_key(rows, at, EVENTS_TIME_END), event->time_end);
    at = rows_number(rows, rows_key(rows, at, EVENTS_WALL_TIME), has_time, event->wall_time);
    at = rows_number(rows, rows_key(rows, at, EVENTS_THREAD), true, event->thread);
    at = rows_number(rows, rows_key(rows, at, EVENTS_STACK_ID), true, event->stack);
    return rows_key(rows, at, EVENTS_COLUMNS);
}

struct report_rows *report_rows_begin(struct report *report, bool has_times)
{
    struct report_rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return NULL;
    rows->report = report;
    rows->is_json = report->form == REPORT_JSON;
    rows->has_times = has_times;
    out_flush(report->output);
    rows_compose(rows);
    return rows;
}

void report_rows_add(struct report_rows *rows, const struct ttd_event *event)
{
    struct text_output *output = rows->report->output;
    if (OUT_BUFFER - output->used < ROWS_ROW_MAX)
        out_flush_pages(output);
    char *at = output->buffer + output->used;
    output->used += (size_t)(rows_write_event(rows, at, event) - at);
}

void report_rows_end(struct report_rows *rows)
{
    free(rows);
}
