/* SPDX-License-Identifier: MIT */
/* Names of functions in text. Names of C++ functions consist mostly of template arguments, of which
 * the long ones are left out. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/sections/sections.h"
#include "report/writers/escape.h"

/* Longer template arguments are left out. */
#define ARGUMENTS_MAX 24

/* Of a name with more columns than this, long parameters are left out as well. */
#define COLUMNS_MAX 56

static bool stands_at(struct ttd_string name, size_t offset, const char *word)
{
    size_t size = strlen(word);
    return name.size - offset >= size && memcmp(name.data + offset, word, size) == 0;
}

/* Returns the size of an operator with '<' in its name that begins at an offset; 0 if there is
 * none. */
static size_t operator_size(struct ttd_string name, size_t offset)
{
    static const char *const names[] = {"operator<=>", "operator<<=", "operator<<",
                                        "operator<=", "operator<"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (stands_at(name, offset, names[i]))
            return strlen(names[i]);
    }
    return 0;
}

/* Returns the size of the bracketed part at an offset: up to the end if nothing closes it. */
static size_t arguments_size(struct ttd_string name, size_t offset)
{
    size_t depth = 0;
    for (size_t i = offset; i < name.size; i++) {
        char c = name.data[i];
        bool is_arrow = c == '>' && i > offset && name.data[i - 1] == '-';
        if (c == '<' || c == '(')
            depth++;
        else if ((c == '>' || c == ')') && !is_arrow && --depth == 0)
            return i + 1 - offset;
    }
    return name.size - offset;
}

/* Copies a name without parameters of more characters than these. */
static size_t drop_parameters(struct ttd_string name, char *text, size_t longest)
{
    static const char *const kept[] = {"(anonymous namespace)", "()"};
    size_t size = 0;
    for (size_t i = 0; i < name.size;) {
        bool is_kept =
            name.data[i] != '(' || stands_at(name, i, kept[0]) || stands_at(name, i, kept[1]);
        size_t left_out = is_kept ? 0 : arguments_size(name, i);
        if (left_out > longest) {
            memcpy(text + size, "(…)", strlen("(…)"));
            size += strlen("(…)");
            i += left_out;
            continue;
        }
        text[size++] = name.data[i++];
    }
    return size;
}

static size_t columns_of(struct ttd_string text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += ((unsigned char)text.data[i] & 0xC0) != 0x80;
    return count;
}

static size_t shorten(struct ttd_string name, char *text)
{
    static const char string[] =
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
    size_t size = 0;
    for (size_t i = 0; i < name.size;) {
        size_t copied = operator_size(name, i);
        size_t left_out = 0;
        const char *replacement = "<…>";
        if (stands_at(name, i, string)) {
            left_out = sizeof string - 1;
            replacement = "std::string";
        } else if (!copied && i && name.data[i] == '<') {
            /* At the begin stands a type of Rust, such as "<Map<I, F> as Iterator>::fold". */
            left_out = arguments_size(name, i);
        }
        if (left_out > ARGUMENTS_MAX) {
            memcpy(text + size, replacement, strlen(replacement));
            size += strlen(replacement);
            i += left_out;
            continue;
        }
        copied += !copied;
        memcpy(text + size, name.data + i, copied);
        size += copied;
        i += copied;
    }
    return size;
}

/* Returns a name without long arguments, in memory that the caller frees. */
static struct ttd_string function_shorten(const struct report *report, struct ttd_string name,
                                          char **text)
{
    *text = NULL;
    if (!report->shows_all && name.size > ARGUMENTS_MAX && memchr(name.data, '<', name.size))
        *text = malloc(name.size);
    if (*text)
        name = (struct ttd_string){*text, shorten(name, *text)};
    /* Never longer: the text may be shortened in its place. */
    if (*text && columns_of(name) > COLUMNS_MAX)
        name.size = drop_parameters(name, *text, ARGUMENTS_MAX);
    return name;
}

void report_function_text(struct report *report, struct ttd_string name)
{
    char *text;
    escape_text(report->output, function_shorten(report, name, &text));
    free(text);
}

size_t report_function_columns(const struct report *report, struct ttd_string name)
{
    char *text;
    size_t columns = columns_of(function_shorten(report, name, &text));
    free(text);
    return columns;
}

/* Returns the offset of a character, which is the size for the one behind the last. */
static size_t function_offset(struct ttd_string name, size_t column)
{
    size_t offset = 0;
    for (size_t count = 0; offset < name.size; offset++) {
        bool is_first = ((unsigned char)name.data[offset] & 0xC0) != 0x80;
        if (is_first && count++ == column)
            break;
    }
    return offset;
}

void report_function_cut(struct report *report, struct ttd_string name, size_t columns)
{
    char *text, *copy = NULL;
    name = function_shorten(report, name, &text);
    size_t count = columns_of(name);
    if (count > columns && memchr(name.data, '(', name.size))
        copy = malloc(name.size);
    if (copy) {
        name = (struct ttd_string){copy, drop_parameters(name, copy, strlen("(…)"))};
        count = columns_of(name);
    }
    if (count <= columns || columns < 3) {
        escape_text(report->output, name);
    } else {
        size_t head = function_offset(name, (columns - 1) / 2);
        size_t tail = function_offset(name, count - (columns - 1 - (columns - 1) / 2));
        escape_text(report->output, (struct ttd_string){name.data, head});
        out_text(report->output, "…");
        escape_text(report->output, (struct ttd_string){name.data + tail, name.size - tail});
    }
    free(copy);
    free(text);
}
