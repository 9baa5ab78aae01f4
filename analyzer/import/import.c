/* SPDX-License-Identifier: MIT */
#include "import/import.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/import_builder.h"

const struct import_format import_formats[] = {
    {"heaptrack", "raw data of heaptrack (heaptrack --raw)", import_heaptrack},
    {"windbg", "heap objects of a TTD trace, printed by dx in WinDbg", import_windbg},
    {"mtrace", "a log of glibc's mtrace()", import_mtrace},
    {"lttng", "events of LTTng's wrapper of the C library, printed by babeltrace2", import_lttng},
    {"xperf", "heap events in the text of xperf -a dumper (experimental)", import_xperf},
    {NULL, NULL, NULL}};

const struct import_format *import_find(const char *name)
{
    for (const struct import_format *format = import_formats; format->name; format++) {
        if (!strcmp(format->name, name))
            return format;
    }
    return NULL;
}

/* Reads the text. One without a single line of the format makes no trace. */
static enum ttd_status import_read(const struct import_format *format, struct import_text *text,
                                   struct import_builder *builder)
{
    enum ttd_status status = format->read(text, builder);
    if (status != TTD_OK || builder->writer)
        return status;
    text->line = 0;
    return import_text_fail(text, TTD_ERROR_UNSUPPORTED, "nothing in it is %s", format->summary);
}

enum ttd_status import_trace(const struct import_format *format, const struct ttd_input *input,
                             const struct ttd_output *output, struct import_result *result,
                             struct ttd_error *error)
{
    struct import_text text;
    struct import_builder builder;
    *result = (struct import_result){.events = 0};
    enum ttd_status status = import_text_open(&text, input, result, error);
    import_builder_open(&builder, output, &text);
    if (status == TTD_OK)
        status = import_read(format, &text, &builder);
    status = import_builder_close(&builder, status);
    result->lines = text.line;
    import_text_close(&text);
    if (input->close)
        input->close(input->context);
    return status;
}

/* Bytes that are read at once; a line of the maximal length always fits behind a part of one. */
#define IMPORT_BUFFER ((size_t)1 << 20)

enum ttd_status import_text_open(struct import_text *text, const struct ttd_input *input,
                                 struct import_result *result, struct ttd_error *error)
{
    *text = (struct import_text){.input = input, .result = result, .error = error};
    text->buffer = malloc(IMPORT_BUFFER);
    return text->buffer ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

void import_text_close(struct import_text *text)
{
    free(text->buffer);
    text->buffer = NULL;
}

enum ttd_status import_text_fail(struct import_text *text, enum ttd_status status,
                                 const char *format, ...)
{
    va_list arguments;
    char *reason = text->result->reason;
    int used = 0;
    if (text->line)
        used = snprintf(reason, IMPORT_REASON_SIZE,
                        "line %llu, offset 0x%llx: ", (unsigned long long)text->line,
                        (unsigned long long)text->line_offset);
    va_start(arguments, format);
    vsnprintf(reason + used, IMPORT_REASON_SIZE - (size_t)used, format, arguments);
    va_end(arguments);
    return status;
}

/* Reads more bytes behind those in the buffer. */
static enum ttd_status import_text_fill(struct import_text *text)
{
    size_t got = 0;
    memmove(text->buffer, text->buffer + text->begin, text->end - text->begin);
    text->end -= text->begin;
    text->begin = 0;
    int failure = text->input->read_at(text->input->context, text->offset, text->buffer + text->end,
                                       IMPORT_BUFFER - text->end, &got);
    if (failure) {
        *text->error = (struct ttd_error){.status = TTD_ERROR_IO,
                                          .system_error = failure,
                                          .offset = text->offset,
                                          .chunk = TTD_NOWHERE,
                                          .what = ""};
        return TTD_ERROR_IO;
    }
    text->is_at_end = got < IMPORT_BUFFER - text->end;
    text->end += got;
    text->offset += got;
    return TTD_OK;
}

/* Refuses a file that is no text of bytes, by how it begins. */
static enum ttd_status import_text_begin(struct import_text *text)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *reason;
    } refused[] = {
        {"\x28\xB5\x2F\xFD", 4, "the file is compressed: zstd -dc FILE | ttdanalyze import ... -"},
        {"\x1F\x8B", 2, "the file is compressed: gzip -dc FILE | ttdanalyze import ... -"},
        {"\xFF\xFE", 2, "the text is UTF-16: convert it with iconv -f UTF-16 -t UTF-8"},
        {"\xFE\xFF", 2, "the text is UTF-16: convert it with iconv -f UTF-16 -t UTF-8"},
        {"heap profile:", 13,
         "a heap profile has sums of samples and no calls: no block can be followed in it"},
        {"heap_v2/", 8,
         "a heap profile has sums of samples and no calls: no block can be followed in it"},
        {"\x89TTD", 4, "this is a trace already"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (text->end >= refused[i].size &&
            memcmp(text->buffer, refused[i].bytes, refused[i].size) == 0)
            return import_text_fail(text, TTD_ERROR_UNSUPPORTED, "%s", refused[i].reason);
    }
    if (text->end >= 3 && memcmp(text->buffer, "\xEF\xBB\xBF", 3) == 0)
        text->begin = 3;
    return TTD_OK;
}

enum ttd_status import_text_line(struct import_text *text, struct ttd_string *line)
{
    const char *end = text->end > text->begin
                          ? memchr(text->buffer + text->begin, '\n', text->end - text->begin)
                          : NULL;
    if (!end && !text->is_at_end) {
        bool is_first = !text->offset;
        enum ttd_status status = import_text_fill(text);
        if (status == TTD_OK && is_first)
            status = import_text_begin(text);
        if (status != TTD_OK)
            return status;
        end = text->end > text->begin
                  ? memchr(text->buffer + text->begin, '\n', text->end - text->begin)
                  : NULL;
    }
    if (text->begin == text->end)
        return TTD_END;
    const char *begin = text->buffer + text->begin;
    size_t size = end ? (size_t)(end - begin) : text->end - text->begin;
    text->line++;
    text->line_offset = text->offset - (text->end - text->begin);
    if (size > IMPORT_LINE_MAX)
        return import_text_fail(text, TTD_ERROR_CORRUPT, "the line is longer than %d bytes",
                                IMPORT_LINE_MAX);
    text->begin += size + (end ? 1 : 0);
    if (size && begin[size - 1] == '\r')
        size--;
    *line = (struct ttd_string){begin, size};
    return TTD_OK;
}

/* Values of hexadecimal digits plus 1; 0 for no digit. */
static const uint8_t import_digits[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16};

bool import_take_hex(struct ttd_string *rest, uint64_t *number)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < rest->size; i++) {
        uint8_t digit = import_digits[(unsigned char)rest->data[i]];
        if (!digit)
            break;
        if (value >> 60)
            return false;
        value = value << 4 | (digit - 1u);
    }
    if (!i)
        return false;
    import_drop(rest, i);
    *number = value;
    return true;
}

bool import_take_decimal(struct ttd_string *rest, uint64_t *number)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < rest->size && rest->data[i] >= '0' && rest->data[i] <= '9'; i++) {
        uint64_t digit = (uint64_t)(rest->data[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (!i)
        return false;
    import_drop(rest, i);
    *number = value;
    return true;
}

bool import_take_number(struct ttd_string *rest, uint64_t *number)
{
    struct ttd_string digits = *rest;
    if (!import_take(&digits, "0x"))
        return import_take_decimal(rest, number);
    if (!import_take_hex(&digits, number))
        return false;
    *rest = digits;
    return true;
}
