/* SPDX-License-Identifier: MIT */
#include "well_formed.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DEPTH_MAX 64

/* ---- Text ---- */

/* Returns the length of the character at `data`, or 0 if it is malformed or a control character. */
static size_t character_size(const unsigned char *data, size_t size)
{
    if (data[0] < 0x80)
        return data[0] == '\n' || (data[0] >= 0x20 && data[0] != 0x7F);
    size_t length = data[0] >= 0xF0 ? 4 : data[0] >= 0xE0 ? 3 : 2;
    if (data[0] < 0xC2 || data[0] > 0xF4 || length > size)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((data[i] & 0xC0) != 0x80)
            return 0;
    bool is_overlong = (data[0] == 0xE0 && data[1] < 0xA0) || (data[0] == 0xF0 && data[1] < 0x90);
    bool is_surrogate = data[0] == 0xED && data[1] >= 0xA0;
    bool is_beyond = data[0] == 0xF4 && data[1] >= 0x90;
    bool is_control = data[0] == 0xC2 && data[1] < 0xA0;
    return is_overlong || is_surrogate || is_beyond || is_control ? 0 : length;
}

const char *well_formed_text(const char *data, size_t size)
{
    for (size_t i = 0; i < size;) {
        size_t length = character_size((const unsigned char *)data + i, size - i);
        if (!length)
            return "output is UTF-8 without control characters";
        i += length;
    }
    return NULL;
}

/* ---- JSON ---- */

struct cursor {
    const char *at;
    const char *end;
};

static char peek(const struct cursor *in)
{
    return in->at < in->end ? *in->at : '\0';
}

static void skip_space(struct cursor *in)
{
    while (peek(in) == ' ' || peek(in) == '\n')
        in->at++;
}

static bool skip_word(struct cursor *in, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(in->end - in->at) < size || memcmp(in->at, word, size) != 0)
        return false;
    in->at += size;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool skip_digits(struct cursor *in)
{
    const char *begin = in->at;
    while (is_digit(peek(in)))
        in->at++;
    return in->at > begin;
}

static bool skip_number(struct cursor *in)
{
    skip_word(in, "-");
    bool has_zero = peek(in) == '0';
    const char *begin = in->at;
    if (!skip_digits(in) || (has_zero && in->at > begin + 1))
        return false;
    if (skip_word(in, ".") && !skip_digits(in))
        return false;
    if (!skip_word(in, "e") && !skip_word(in, "E"))
        return true;
    if (!skip_word(in, "+"))
        skip_word(in, "-");
    return skip_digits(in);
}

static bool skip_escape(struct cursor *in)
{
    in->at++;
    char kind = peek(in);
    if (!kind || !strchr("\"\\/bfnrtu", kind))
        return false;
    in->at++;
    for (unsigned i = 0; kind == 'u' && i < 4; i++, in->at++) {
        char c = peek(in);
        if (!is_digit(c) && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F'))
            return false;
    }
    return true;
}

static bool skip_string(struct cursor *in)
{
    if (!skip_word(in, "\""))
        return false;
    while (in->at < in->end && *in->at != '"') {
        if ((unsigned char)*in->at < 0x20)
            return false;
        if (*in->at != '\\')
            in->at++;
        else if (!skip_escape(in))
            return false;
    }
    return skip_word(in, "\"");
}

static bool skip_value(struct cursor *in, unsigned depth);

static bool skip_members(struct cursor *in, unsigned depth, const char *close, bool has_names)
{
    in->at++;
    skip_space(in);
    if (skip_word(in, close))
        return true;
    do {
        skip_space(in);
        if (has_names) {
            if (!skip_string(in))
                return false;
            skip_space(in);
            if (!skip_word(in, ":"))
                return false;
        }
        if (!skip_value(in, depth + 1))
            return false;
        skip_space(in);
    } while (skip_word(in, ","));
    return skip_word(in, close);
}

static bool skip_value(struct cursor *in, unsigned depth)
{
    skip_space(in);
    if (depth == DEPTH_MAX)
        return false;
    switch (peek(in)) {
    case '{':
        return skip_members(in, depth, "}", true);
    case '[':
        return skip_members(in, depth, "]", false);
    case '"':
        return skip_string(in);
    case 't':
        return skip_word(in, "true");
    case 'f':
        return skip_word(in, "false");
    case 'n':
        return skip_word(in, "null");
    default:
        return skip_number(in);
    }
}

const char *well_formed_json(const char *data, size_t size)
{
    struct cursor in = {data, data + size};
    for (skip_space(&in); in.at < in.end; skip_space(&in))
        if (peek(&in) != '{' || !skip_value(&in, 0))
            return "JSON is a list of objects";
    return NULL;
}

/* ---- CSV ---- */

/* Whether a spreadsheet would take a cell for a formula. A negative number is none. */
static bool is_formula(const char *cell, size_t size)
{
    struct cursor in = {cell, cell + size};
    if (!size || !strchr("=+-@", cell[0]))
        return false;
    return !(cell[0] == '-' && skip_number(&in) && in.at == in.end);
}

/* Skips a cell. Returns NULL, or the fault. */
static const char *skip_cell(struct cursor *in)
{
    const char *begin = in->at;
    if (peek(in) != '"') {
        while (in->at < in->end && *in->at != ',' && *in->at != '\n')
            if (*in->at++ == '"')
                return "a quote is within quotes";
        return is_formula(begin, (size_t)(in->at - begin)) ? "no cell is a formula" : NULL;
    }
    in->at++;
    for (bool is_open = true; is_open;) {
        while (in->at < in->end && *in->at != '"' && *in->at != '\n')
            in->at++;
        if (!skip_word(in, "\""))
            return "quotes are closed";
        is_open = skip_word(in, "\"");
    }
    if (is_formula(begin + 1, (size_t)(in->at - begin) - 2))
        return "no cell in quotes is a formula";
    return peek(in) == ',' || peek(in) == '\n' ? NULL : "a cell ends with its quotes";
}

const char *well_formed_csv(const char *data, size_t size)
{
    struct cursor in = {data, data + size};
    size_t columns = 0;
    for (size_t cells = 0; in.at < in.end;) {
        const char *wrong = skip_cell(&in);
        if (wrong)
            return wrong;
        cells++;
        if (skip_word(&in, ","))
            continue;
        if (!skip_word(&in, "\n"))
            return "a row has an end";
        if (columns && cells != columns)
            return "rows have equally many cells";
        columns = cells;
        cells = 0;
    }
    return NULL;
}

/* ---- Folded stacks ---- */

const char *well_formed_folded(const char *data, size_t size)
{
    const char *end = data + size;
    for (const char *line = data; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            return "a line has an end";
        const char *digits = stop;
        while (digits > line && is_digit(digits[-1]))
            digits--;
        if (digits == stop || digits == line || digits[-1] != ' ')
            return "a folded stack ends with a number";
        line = stop + 1;
    }
    return NULL;
}
