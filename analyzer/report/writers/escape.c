/* SPDX-License-Identifier: MIT */
#include "report/writers/escape.h"

#include <string.h>

struct ttd_string escape_string(const char *text)
{
    return (struct ttd_string){text, strlen(text)};
}

/* Decodes the UTF-8 sequence at `data`. Returns its length; 0 if it is invalid: overlong, a
 * surrogate, beyond U+10FFFF, cut off. */
static size_t decode(const unsigned char *data, size_t size, uint32_t *character)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = data[0];
    if (first < 0x80) {
        *character = first;
        return 1;
    }
    size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || length > size)
        return 0;
    uint32_t value = first & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((data[i] & 0xC0) != 0x80)
            return 0;
        value = value << 6 | (data[i] & 0x3F);
    }
    if (value < smallest[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
        return 0;
    *character = value;
    return length;
}

/* Whether a reader could not see a character as what it is: controls, line separators, direction
 * marks, and characters without width such as tags and variation selectors. The table has the
 * controls, format characters and default ignorable characters of Unicode, in order. */
static bool is_hidden(uint32_t character)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } ranges[] = {{0x0000, 0x001F},   {0x007F, 0x009F},   {0x00AD, 0x00AD},   {0x034F, 0x034F},
                  {0x0600, 0x0605},   {0x061C, 0x061C},   {0x06DD, 0x06DD},   {0x070F, 0x070F},
                  {0x0890, 0x0891},   {0x08E2, 0x08E2},   {0x115F, 0x1160},   {0x17B4, 0x17B5},
                  {0x180B, 0x180F},   {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},
                  {0x3164, 0x3164},   {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},
                  {0xFFF0, 0xFFFB},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F},
                  {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && ranges[i].first <= character; i++) {
        if (character <= ranges[i].last)
            return true;
    }
    return false;
}

/* Writes the characters from `begin` on that need no escape in any output, as nearly all characters
 * do. Returns where they end. */
static size_t write_plain(struct text_output *output, struct ttd_string text, size_t begin)
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

static void write_bytes(struct text_output *output, const unsigned char *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out_format(output, "\\x%02x", data[i]);
}

/* The kind of output, which decides which characters are escaped. */
enum meaning { PLAIN, LIST, CELL };

/* Writes one character that may need an escape, and returns its length. */
static size_t write_one(struct text_output *output, const unsigned char *data, size_t size,
                        enum meaning kind)
{
    uint32_t character = 0;
    size_t length = decode(data, size, &character);
    if (character == '\\' && length)
        out_text(output, "\\\\");
    else if (character == '"' && kind == CELL)
        out_text(output, "\"\"");
    else if (!length || is_hidden(character) || (character == ';' && kind != PLAIN))
        write_bytes(output, data, length ? length : 1);
    else {
        out_write(output, (const char *)data, length);
        output->column -= length - 1;
    }
    return length ? length : 1;
}

/* Writes a text in any output but JSON. */
static void write_text(struct text_output *output, struct ttd_string text, size_t begin,
                       enum meaning kind)
{
    const unsigned char *data = (const unsigned char *)text.data;
    for (size_t i = begin; (i = write_plain(output, text, i)) < text.size;)
        i += write_one(output, data + i, text.size - i, kind);
}

void escape_text(struct text_output *output, struct ttd_string text)
{
    if (!output->error)
        write_text(output, text, 0, PLAIN);
}

void escape_folded(struct text_output *output, struct ttd_string text)
{
    if (!output->error)
        write_text(output, text, 0, LIST);
}

/* Returns how many bytes at the beginning of a field make it a formula: '=', '+', '-', '@', or the
 * wide forms that some spreadsheets take for these; or a quote, which may hide one of them where
 * ';' separates fields. */
static size_t formula_size(struct ttd_string text)
{
    uint32_t character = 0;
    size_t length = text.size ? decode((const unsigned char *)text.data, text.size, &character) : 0;
    bool is_wide = character > 0xFF00 && character < 0xFF5F;
    switch (is_wide ? character - 0xFEE0 : character) {
    case '=':
    case '+':
    case '-':
    case '@':
    case '"':
        return length;
    default:
        return 0;
    }
}

void escape_csv(struct text_output *output, struct ttd_string text)
{
    size_t formula = formula_size(text);
    write_bytes(output, (const unsigned char *)text.data, formula);
    write_text(output, text, formula, CELL);
}

/* Writes a character as one `\u` escape, or as two beyond U+FFFF. */
static void write_unit(struct text_output *output, uint32_t character)
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
    for (size_t i = 0; (i = write_plain(output, text, i)) < text.size;) {
        uint32_t character = 0;
        size_t length = decode(data + i, text.size - i, &character);
        if (!length) {
            out_text(output, "\\ufffd");
            i++;
            continue;
        }
        if (character == '"' || character == '\\') {
            out_char(output, '\\');
            out_char(output, (char)character);
        } else if (is_hidden(character)) {
            write_unit(output, character);
        } else {
            out_write(output, text.data + i, length);
        }
        i += length;
    }
}
