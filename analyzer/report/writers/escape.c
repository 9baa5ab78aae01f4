/* SPDX-License-Identifier: MIT */
#include "report/writers/escape.h"

#include <stdio.h>
#include <string.h>

#include "common/visible.h"

struct ttd_string escape_string(const char *text)
{
    return (struct ttd_string){text, strlen(text)};
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

static void escape_write_bytes(struct text_output *output, const unsigned char *data, size_t size)
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

/* Writes a text in any output but JSON. */
static void escape_write_text(struct text_output *output, struct ttd_string text, size_t begin,
                              enum meaning kind)
{
    const unsigned char *data = (const unsigned char *)text.data;
    for (size_t i = begin; (i = write_plain(output, text, i)) < text.size;)
        i += write_one(output, data + i, text.size - i, kind);
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

/* Returns how many bytes at the beginning of a field make it a formula: '=', '+', '-', '@', or the
 * wide forms that some spreadsheets take for these; or a quote, which may hide one of them where
 * ';' separates fields. */
static size_t formula_size(struct ttd_string text)
{
    uint32_t character = 0;
    size_t length =
        text.size ? visible_decode((const unsigned char *)text.data, text.size, &character) : 0;
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
    escape_write_bytes(output, (const unsigned char *)text.data, formula);
    escape_write_text(output, text, formula, CELL);
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
            write_unit(output, character);
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
