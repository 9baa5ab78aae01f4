/* SPDX-License-Identifier: MIT */
#include "report/escape.h"

#include <string.h>

ttd_string escape_string(const char *text)
{
    return (ttd_string){text, strlen(text)};
}

/*
 * Length of the UTF-8 sequence at `data` and its character; 0 if it is none: overlong, a surrogate,
 * beyond U+10FFFF, cut off.
 */
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

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

/* Writes, from `begin` on, what stands for itself everywhere, as nearly all characters do. Returns
 * where that ends. */
static size_t write_plain(out *output, ttd_string text, size_t begin)
{
    const unsigned char *data = (const unsigned char *)text.data;
    size_t end = begin;
    while (end < text.size && data[end] >= 0x20 && data[end] < 0x7F && data[end] != '"' &&
           data[end] != '\\')
        end++;
    if (end > begin)
        out_write(output, text.data + begin, end - begin);
    return end;
}

void escape_text(out *output, ttd_string text)
{
    const unsigned char *data = (const unsigned char *)text.data;
    for (size_t i = 0; (i = write_plain(output, text, i)) < text.size;) {
        uint32_t character = 0;
        size_t length = decode(data + i, text.size - i, &character);
        if (length && !is_control(character)) {
            out_write(output, text.data + i, length);
            output->column -= length - 1;
            i += length;
            continue;
        }
        for (size_t end = i + (length ? length : 1); i < end; i++)
            out_format(output, "\\x%02x", data[i]);
    }
}

void escape_json(out *output, ttd_string text)
{
    const unsigned char *data = (const unsigned char *)text.data;
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
        } else if (is_control(character)) {
            out_format(output, "\\u%04x", character);
        } else {
            out_write(output, text.data + i, length);
        }
        i += length;
    }
}

void escape_folded(out *output, ttd_string text)
{
    for (;;) {
        const char *end = text.size ? memchr(text.data, ';', text.size) : NULL;
        size_t part = end ? (size_t)(end - text.data) : text.size;
        escape_text(output, (ttd_string){text.data, part});
        if (!end)
            return;
        out_char(output, ':');
        text = (ttd_string){end + 1, text.size - part - 1};
    }
}

void escape_csv(out *output, ttd_string text)
{
    bool must_quote = false;
    for (size_t i = 0; i < text.size; i++)
        must_quote |= text.data[i] == '"' || text.data[i] == ',' || text.data[i] == ' ';
    if (!must_quote) {
        escape_text(output, text);
        return;
    }
    out_char(output, '"');
    for (size_t i = 0; i < text.size;) {
        const char *quote = memchr(text.data + i, '"', text.size - i);
        size_t part = quote ? (size_t)(quote - text.data) - i : text.size - i;
        escape_text(output, (ttd_string){text.data + i, part});
        i += part;
        if (quote) {
            out_text(output, "\"\"");
            i++;
        }
    }
    out_char(output, '"');
}
