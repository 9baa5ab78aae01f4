/* SPDX-License-Identifier: MIT */
/* Names of functions in text. Names of C++ functions consist mostly of template arguments, of which
 * the long ones are left out. */
#include <stdlib.h>
#include <string.h>

#include "report/sections/sections.h"
#include "report/writers/escape.h"

/* Longer template arguments are left out. */
#define ARGUMENTS_MAX 24

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

/* Returns the size of the bracketed part at an offset; 0 if nothing closes it. */
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
    return 0;
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
        } else if (!copied && name.data[i] == '<') {
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

void report_function_text(struct report *report, struct ttd_string name)
{
    char *text = NULL;
    if (!report->shows_all && name.size > ARGUMENTS_MAX && memchr(name.data, '<', name.size))
        text = malloc(name.size);
    escape_text(report->output, text ? (struct ttd_string){text, shorten(name, text)} : name);
    free(text);
}
