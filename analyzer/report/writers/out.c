/* SPDX-License-Identifier: MIT */
#include "report/writers/out.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/visible.h"

/* Bytes of a page of a file in memory, on nearly all machines. */
#define OUT_PAGE 4096

void out_init(struct text_output *output, int descriptor, bool has_color)
{
    output->descriptor = descriptor;
    output->error = 0;
    output->room = UINT64_MAX;
    output->is_full = false;
    output->has_color = has_color;
    output->has_utf8 = true;
    output->width = 0;
    output->used = 0;
    output->line = 0;
    output->is_line_begun = false;
    output->column = 0;
}

bool out_flush(struct text_output *output)
{
    size_t written = 0;
    /* A report that exceeds its limit ends here; is_full shows the caller why it could not write.
     */
    if (output->room < output->used) {
        output->is_full = true;
        output->error = output->error ? output->error : EFBIG;
    } else if (output->room != UINT64_MAX) {
        output->room -= output->used;
    }
    while (!output->error && written < output->used) {
        ssize_t n = write(output->descriptor, output->buffer + written, output->used - written);
        if (n >= 0)
            written += (size_t)n;
        else if (errno != EINTR)
            output->error = errno;
    }
    output->is_line_begun = output->line < output->used;
    output->used = 0;
    output->line = 0;
    return !output->error;
}

void out_flush_pages(struct text_output *output)
{
    size_t kept = output->used % OUT_PAGE;
    output->used -= kept;
    size_t written = output->used;
    out_flush(output);
    memmove(output->buffer, output->buffer + written, kept);
    output->used = kept;
}

/* Makes room in a full buffer. Writes whole lines if there are some: the last one may have to be
 * broken. */
static void out_make_room(struct text_output *output)
{
    size_t begin = output->width ? output->line : 0;
    size_t kept = begin ? output->used - begin : 0;
    output->used -= kept;
    out_flush(output);
    if (kept) {
        memmove(output->buffer, output->buffer + begin, kept);
        output->is_line_begun = false;
    }
    output->used = kept;
}

void out_write(struct text_output *output, const char *data, size_t size)
{
    output->column += size;
    /* Nearly all texts are short, and fit. */
    if (size && size <= OUT_BUFFER - output->used) {
        memcpy(output->buffer + output->used, data, size);
        output->used += size;
        return;
    }
    while (size && !output->error) {
        if (output->used == OUT_BUFFER)
            out_make_room(output);
        size_t room = OUT_BUFFER - output->used;
        size_t part = size < room ? size : room;
        memcpy(output->buffer + output->used, data, part);
        output->used += part;
        data += part;
        size -= part;
    }
}

/* Whether a byte begins a character of UTF-8. */
static bool out_is_first(char byte)
{
    return ((unsigned char)byte & 0xC0) != 0x80;
}

/* Returns the size of an escape sequence for a colour at the begin of a text; 0 if there is none.
 */
static size_t out_style_size(const char *text, size_t size)
{
    const char *end = size && text[0] == '\033' ? memchr(text, 'm', size) : NULL;
    return end ? (size_t)(end - text) + 1 : 0;
}

/* Whether a space stands between a number and its unit: "1.63 MB", "2 blocks". */
static bool out_is_before_unit(const char *space, size_t size)
{
    return size > 1 && isdigit((unsigned char)space[-1]) && isalpha((unsigned char)space[1]);
}

/* Returns how many bytes of a line fit into `width` columns: all, or those before a space, at best
 * one behind a comma or a semicolon; between parentheses, or between a number and its unit, only if
 * there is no other one. */
static size_t out_fit(const char *text, size_t size, size_t width)
{
    enum { INSIDE, OUTSIDE, BEHIND_COMMA, PLACES };
    size_t at[PLACES] = {0}, reach[PLACES] = {0};
    size_t columns = 0, depth = 0, i = 0;
    while (i < size && text[i] == ' ')
        i++;
    for (columns = i; i < size; i++) {
        size_t style = out_style_size(text + i, size - i);
        i += style;
        if (i == size)
            break;
        columns += out_is_first(text[i]);
        if (text[i] == ' ' && columns <= width + 1) {
            char before = text[i - 1];
            int place = depth || out_is_before_unit(text + i, size - i) ? INSIDE
                        : before == ',' || before == ';'                ? BEHIND_COMMA
                                                                        : OUTSIDE;
            at[place] = i;
            reach[place] = columns;
        }
        if (columns > width && out_is_first(text[i]))
            return reach[BEHIND_COMMA] > width / 2 ? at[BEHIND_COMMA]
                   : reach[OUTSIDE] > width / 3    ? at[OUTSIDE]
                   : at[INSIDE]                    ? at[INSIDE]
                   : at[OUTSIDE]                   ? at[OUTSIDE]
                                                   : i;
        if (text[i] == '(')
            depth++;
        else if (text[i] == ')' && depth)
            depth--;
    }
    return size;
}

static void out_end_line(struct text_output *output)
{
    char line[OUT_BUFFER];
    size_t size = output->used - output->line;
    size_t indent = 0, begin = 0;
    if (!output->is_line_begun && size > output->width) {
        memcpy(line, output->buffer + output->line, size);
        output->used = output->line;
        while (indent < size && line[indent] == ' ')
            indent++;
        indent = indent + 4 < output->width / 2 ? indent + 4 : output->width / 2;
        for (size_t room = output->width; begin < size; room = output->width - indent) {
            size_t fitting = out_fit(line + begin, size - begin, room);
            size_t end = begin + fitting;
            while (end > begin + 1 && line[end - 1] == ' ')
                end--;
            out_write(output, line + begin, end - begin);
            for (begin += fitting; begin < size && line[begin] == ' ';)
                begin++;
            if (begin == size)
                break;
            out_write(output, "\n", 1);
            output->line = output->used;
            for (size_t i = 0; i < indent; i++)
                out_write(output, " ", 1);
        }
    }
    out_write(output, "\n", 1);
    output->line = output->used;
    output->is_line_begun = false;
    output->column = 0;
}

void out_char_slowly(struct text_output *output, char c)
{
    if (c == '\n' && output->width) {
        out_end_line(output);
        return;
    }
    if (output->used == OUT_BUFFER)
        out_make_room(output);
    output->buffer[output->used++] = c;
    output->column = c == '\n' ? 0 : output->column + 1;
}

void out_text(struct text_output *output, const char *text)
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        out_write(output, text, (size_t)(end - text));
        out_char(output, '\n');
    }
    out_write(output, text, strlen(text));
    for (; *text; text++)
        output->column -= !out_is_first(*text);
}

/* Digits of 2^64 - 1. */
#define DIGITS 20

/* Writes the digits from `begin` to the middle of an array of 2 * DIGITS characters. They are
 * copied with what follows them, since a copy of constant size needs no call. */
static inline void out_digits(struct text_output *output, const char *digits, size_t begin)
{
    if (OUT_BUFFER - output->used < DIGITS) {
        out_write(output, digits + begin, DIGITS - begin);
        return;
    }
    memcpy(output->buffer + output->used, digits + begin, DIGITS);
    output->used += DIGITS - begin;
    output->column += DIGITS - begin;
}

void out_unsigned(struct text_output *output, uint64_t value)
{
    char text[2 * DIGITS] = "";
    size_t begin = DIGITS;
    do {
        text[--begin] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    out_digits(output, text, begin);
}

void out_grouped(struct text_output *output, uint64_t value)
{
    /* 20 digits and six commas. */
    char text[27];
    size_t begin = sizeof text;
    unsigned digits = 0;
    do {
        if (digits && digits % 3 == 0)
            text[--begin] = ',';
        text[--begin] = (char)('0' + value % 10);
        value /= 10;
        digits++;
    } while (value);
    out_write(output, text + begin, sizeof text - begin);
}

/* Writes a number from 1 up to 1,000, and its unit. */
static void out_three_digits(struct text_output *output, double value, const char *unit)
{
    out_format(output, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, unit);
}

void out_size(struct text_output *output, uint64_t bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes / 1000;
    size_t unit = 0;
    if (bytes < 1000) {
        out_unsigned(output, bytes);
        out_text(output, bytes == 1 ? " byte" : " bytes");
        return;
    }
    /* From 999.5 on, three digits need the next unit. */
    while (value >= 999.5) {
        value /= 1000;
        unit++;
    }
    out_three_digits(output, value, units[unit]);
}

void out_duration(struct text_output *output, uint64_t time)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double value = (double)time;
    size_t unit = time ? 0 : 3;
    for (; value >= 999.5 && unit < 3; unit++)
        value /= 1000;
    if (unit && value > 0 && value < 999.5) {
        out_three_digits(output, value, units[unit]);
        return;
    }
    out_grouped(output, (uint64_t)(value + 0.5));
    out_char(output, ' ');
    out_text(output, units[unit]);
}

void out_hex(struct text_output *output, uint64_t value)
{
    char text[2 * DIGITS] = "";
    size_t begin = DIGITS;
    do {
        text[--begin] = "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (value);
    text[--begin] = 'x';
    text[--begin] = '0';
    out_digits(output, text, begin);
}

void out_position(struct text_output *output, struct ttd_position position)
{
    char text[TTD_POSITION_TEXT];
    out_write(output, text, ttd_position_format(position, text));
}

void out_format(struct text_output *output, const char *format, ...)
{
    /* Enough for numbers and fixed words. Names may be of any length; they are not formatted but
     * escaped. */
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    out_text(output, text);
}

void out_tab(struct text_output *output, size_t column)
{
    if (output->column)
        out_char(output, ' ');
    while (output->column < column)
        out_char(output, ' ');
}

void out_bar(struct text_output *output, double share, size_t columns)
{
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    unsigned eighths = (unsigned)(share * (double)columns * 8 + 0.5);
    if (!output->has_utf8)
        eighths = (eighths + 4) / 8 * 8;
    size_t used = eighths / 8;
    for (size_t i = 0; i < used; i++)
        out_text(output, output->has_utf8 ? "█" : "#");
    out_text(output, parts[eighths % 8]);
    for (used += eighths % 8 > 0; used < columns; used++)
        out_char(output, ' ');
}

static uint64_t out_round_time(uint64_t time, uint64_t step)
{
    uint64_t rest = time % step;
    return time - rest + (2 * rest >= step && time - rest <= UINT64_MAX - step ? step : 0);
}

void time_text(char text[TIME_TEXT], uint64_t time)
{
    uint64_t step = 1;
    int digits = 9;
    /* Rounding up may add a digit. */
    while (step < TIME_SECOND && out_round_time(time, step) >= 1000 * step)
        step *= 10;
    uint64_t rounded = out_round_time(time, step);
    for (uint64_t scale = step; scale > 1; scale /= 10)
        digits--;
    if (!rounded)
        digits = 0;
    snprintf(text, TIME_TEXT, "+%.*fs", digits, (double)rounded / (double)TIME_SECOND);
}

/* Colours take no room on the screen, so they leave the column as it is. */
static void out_style(struct text_output *output, const char *sequence)
{
    size_t column = output->column;
    if (output->has_color)
        out_text(output, sequence);
    output->column = column;
}

void out_bold(struct text_output *output)
{
    out_style(output, "\033[1m");
}

void out_alarm(struct text_output *output)
{
    out_style(output, "\033[1;31m");
}

void out_dim(struct text_output *output)
{
    out_style(output, "\033[2m");
}

void out_plain(struct text_output *output)
{
    out_style(output, "\033[0m");
}

struct ttd_string escape_string(const char *text)
{
    return (struct ttd_string){text, strlen(text)};
}

/* Writes the characters from `begin` on that need no escape in any output, as nearly all characters
 * do. Returns where they end. */
static size_t out_write_plain(struct text_output *output, struct ttd_string text, size_t begin)
{
    const unsigned char *data = (const unsigned char *)text.data;
    size_t end = begin;
    while (end < text.size && data[end] >= 0x20 && data[end] < 0x7F && data[end] != '"' &&
           data[end] != '\\' && data[end] != ';')
        end++;
    if (end > begin)
        out_write(output, text.data + begin, end - begin);
    return end;
}

static void escape_write_bytes(struct text_output *output, const unsigned char *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out_format(output, "\\x%02x", data[i]);
}

/* The kind of output; decides about the characters to escape. */
enum meaning { PLAIN, LIST, CELL };

/* Writes one character that may need an escape, and returns its length. */
static size_t out_write_one(struct text_output *output, const unsigned char *data, size_t size,
                            enum meaning kind)
{
    uint32_t character = 0;
    size_t length = visible_decode(data, size, &character);
    if (character == '\\' && length)
        out_text(output, "\\\\");
    else if (character == '"' && kind == CELL)
        out_text(output, "\"\"");
    else if (!length || visible_is_hidden(character) || (character == ';' && kind != PLAIN))
        escape_write_bytes(output, data, length ? length : 1);
    else {
        out_write(output, (const char *)data, length);
        output->column -= length - 1;
    }
    return length ? length : 1;
}

size_t escape_columns(struct ttd_string text, size_t *offset)
{
    uint32_t character = 0;
    const unsigned char *data = (const unsigned char *)text.data + *offset;
    size_t length = visible_decode(data, text.size - *offset, &character);
    size_t size = length ? length : 1;
    *offset += size;
    if (character == '\\' && length)
        return 2;
    return !length || visible_is_hidden(character) ? size * strlen("\\x00") : 1;
}

/* Writes a text in any output but JSON. */
static void escape_write_text(struct text_output *output, struct ttd_string text, size_t begin,
                              enum meaning kind)
{
    const unsigned char *data = (const unsigned char *)text.data;
    for (size_t i = begin; (i = out_write_plain(output, text, i)) < text.size;)
        i += out_write_one(output, data + i, text.size - i, kind);
}

void escape_text(struct text_output *output, struct ttd_string text)
{
    if (!output->error)
        escape_write_text(output, text, 0, PLAIN);
}

void escape_folded(struct text_output *output, struct ttd_string text)
{
    if (!output->error)
        escape_write_text(output, text, 0, LIST);
}

/* A character that has a meaning in some output, and the text that stands for it. */
struct escape_name {
    char character;
    const char *name;
};

/* Writes a text, with names for some characters. */
static void escape_by_name(struct text_output *output, struct ttd_string text,
                           const struct escape_name *names)
{
    size_t begin = 0;
    if (!text.size)
        return;
    for (size_t i = 0; i < text.size; i++) {
        const struct escape_name *name = names;
        while (name->name && name->character != text.data[i])
            name++;
        if (!name->name)
            continue;
        escape_text(output, (struct ttd_string){text.data + begin, i - begin});
        out_text(output, name->name);
        begin = i + 1;
    }
    escape_text(output, (struct ttd_string){text.data + begin, text.size - begin});
}

void escape_xml(struct text_output *output, struct ttd_string text)
{
    static const struct escape_name names[] = {{'&', "&amp;"},  {'<', "&lt;"},   {'>', "&gt;"},
                                               {'"', "&quot;"}, {'\'', "&#39;"}, {0, NULL}};
    escape_by_name(output, text, names);
}

void escape_comment(struct text_output *output, struct ttd_string text)
{
    static const struct escape_name names[] = {{'#', "\\x23"}, {0, NULL}};
    escape_by_name(output, text, names);
}

void escape_property(struct text_output *output, struct ttd_string text)
{
    static const struct escape_name names[] = {{'%', "%25"}, {':', "%3A"}, {',', "%2C"}, {0, NULL}};
    escape_by_name(output, text, names);
}

void escape_message(struct text_output *output, struct ttd_string text)
{
    static const struct escape_name names[] = {{'%', "%25"}, {0, NULL}};
    escape_by_name(output, text, names);
}

/* Characters that are seen as a space: many spreadsheets drop them at the beginning of a field. */
static bool escape_is_blank(uint32_t character)
{
    return character == ' ' || character == 0xA0 || character == 0x1680 ||
           (character >= 0x2000 && character <= 0x200A) || character == 0x202F ||
           character == 0x205F || character == 0x3000;
}

/* Returns how many bytes at the beginning of a field make it a formula: '=', '+', '-', '@', or the
 * wide forms that some spreadsheets take for these; or a quote: it may hide one of them where ';'
 * separates fields; and blanks in front of it. */
static size_t out_formula_size(struct ttd_string text)
{
    const unsigned char *data = (const unsigned char *)text.data;
    uint32_t character = 0;
    size_t size = 0, length = 0;
    do {
        size += length;
        length = size < text.size ? visible_decode(data + size, text.size - size, &character) : 0;
    } while (length && escape_is_blank(character));
    bool is_wide = character > 0xFF00 && character < 0xFF5F;
    if (!length)
        return 0;
    switch (is_wide ? character - 0xFEE0 : character) {
    case '=':
    case '+':
    case '-':
    case '@':
    case '"':
        return size + length;
    default:
        return 0;
    }
}

void escape_csv(struct text_output *output, struct ttd_string text)
{
    size_t formula = out_formula_size(text);
    escape_write_bytes(output, (const unsigned char *)text.data, formula);
    escape_write_text(output, text, formula, CELL);
}

/* Writes a character as one `\u` escape, or as two beyond U+FFFF. */
static void out_write_unit(struct text_output *output, uint32_t character)
{
    if (character > 0xFFFF) {
        out_format(output, "\\u%04x", 0xD7C0 + (character >> 10));
        character = 0xDC00 | (character & 0x3FF);
    }
    out_format(output, "\\u%04x", character);
}

void escape_json(struct text_output *output, struct ttd_string text)
{
    const unsigned char *data = (const unsigned char *)text.data;
    if (output->error)
        return;
    for (size_t i = 0; (i = out_write_plain(output, text, i)) < text.size;) {
        uint32_t character = 0;
        size_t length = visible_decode(data + i, text.size - i, &character);
        if (!length) {
            out_text(output, "\\ufffd");
            i++;
            continue;
        }
        if (character == '"' || character == '\\') {
            out_char(output, '\\');
            out_char(output, (char)character);
        } else if (visible_is_hidden(character)) {
            out_write_unit(output, character);
        } else {
            out_write(output, text.data + i, length);
        }
        i += length;
    }
}

const char *guid_text(const uint8_t guid[16], char text[GUID_TEXT])
{
    char *end = text;
    for (size_t i = 0; i < 16; i++)
        end += sprintf(end, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", guid[i]);
    return text;
}

bool guid_is_given(const uint8_t guid[16])
{
    uint8_t bits = 0;
    for (size_t i = 0; i < 16; i++)
        bits |= guid[i];
    return bits != 0;
}
