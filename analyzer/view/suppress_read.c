/* SPDX-License-Identifier: MIT */
/* Files of suppressions: their lines, the rules they become, and the rules of LeakSanitizer. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "symbols/canonical.h"
#include "symbols/demangle.h"
#include "view/suppress_parts.h"

enum ttd_status suppress_fail(struct rule_reader *reader, size_t line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->error->reason, sizeof reader->error->reason, format, arguments);
    va_end(arguments);
    reader->error->line = line;
    return TTD_ERROR_ARGUMENT;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

struct ttd_string suppress_trim(struct ttd_string text)
{
    while (text.size && is_blank(text.data[0]))
        text = (struct ttd_string){text.data + 1, text.size - 1};
    while (text.size && is_blank(text.data[text.size - 1]))
        text.size--;
    return text;
}

bool suppress_next_line(struct rule_reader *reader, struct ttd_string *line)
{
    while (reader->next_line < reader->text.size) {
        const char *begin = reader->text.data + reader->next_line;
        size_t remaining = reader->text.size - reader->next_line;
        const char *end = memchr(begin, '\n', remaining);
        size_t size = end ? (size_t)(end - begin) : remaining;
        reader->next_line += size + (end != NULL);
        reader->line++;
        *line = suppress_trim((struct ttd_string){begin, size});
        if (line->size && line->data[0] != '#')
            return true;
    }
    return false;
}

bool suppress_equals(struct ttd_string text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

bool suppress_take_word(struct ttd_string *text, const char *word)
{
    size_t size = strlen(word);
    if (text->size < size || memcmp(text->data, word, size) != 0)
        return false;
    *text = (struct ttd_string){text->data + size, text->size - size};
    return true;
}

static enum ttd_status suppress_keep_text(struct suppressions *suppressions, struct ttd_string text,
                                          struct ttd_string *result)
{
    char *copy = arena_copy(&suppressions->text, text.data, text.size);
    if (!copy)
        return TTD_ERROR_NO_MEMORY;
    *result = (struct ttd_string){copy, text.size};
    return TTD_OK;
}

enum ttd_status suppress_add_rule(struct rule_reader *reader, struct ttd_string name,
                                  struct suppression **rule)
{
    struct suppressions *suppressions = reader->suppressions;
    if (suppressions->count == SUPPRESS_RULES_MAX)
        return suppress_fail(reader, reader->line, "more than %d rules", SUPPRESS_RULES_MAX);
    enum ttd_status status = grow_array((void **)&suppressions->rules, &suppressions->capacity,
                                        suppressions->count + 1, sizeof *suppressions->rules);
    struct ttd_string result = {"", 0};
    if (status == TTD_OK)
        status = suppress_keep_text(suppressions, name, &result);
    if (status != TTD_OK)
        return status;
    *rule = &suppressions->rules[suppressions->count++];
    **rule = (struct suppression){.file = reader->file,
                                  .line = reader->line,
                                  .name = result,
                                  .first = suppressions->line_count};
    return TTD_OK;
}

static bool suppress_text_begins(struct ttd_string text, const char *word)
{
    return text.size >= strlen(word) && memcmp(text.data, word, strlen(word)) == 0;
}

static enum ttd_status keep_canonical(struct suppressions *suppressions, struct ttd_string name,
                                      struct ttd_string *result)
{
    char *text = arena_take(&suppressions->text, CANONICAL_ROOM(name.size));
    if (!text)
        return TTD_ERROR_NO_MEMORY;
    *result = (struct ttd_string){text, canonical_name(name, text)};
    return TTD_OK;
}

/* Determines the other names that a pattern of a function matches by. The pattern ends with a NUL.
 */
static enum ttd_status read_function(struct rule_reader *reader, struct suppression_line *line)
{
    struct suppressions *suppressions = reader->suppressions;
    struct ttd_string name = canonical_without_clone(line->pattern);
    struct ttd_string canonical;
    line->is_clone = name.size < line->pattern.size;
    line->pattern = name;
    if (suppress_text_begins(name, "_Z")) {
        enum ttd_status status = suppress_keep_text(suppressions, name, &name);
        struct ttd_string display = {"", 0};
        if (status == TTD_OK)
            display = demangler_find(&reader->demangler, name);
        if (!display.size)
            return status;
        status = suppress_keep_text(suppressions, display, &line->display);
        return status == TTD_OK ? keep_canonical(suppressions, line->display, &line->canonical)
                                : status;
    }
    /* A name with parameters is demangled, which is the only form of it. */
    bool is_call = name.size >= 10 && suppress_text_begins(name, "operator()");
    const char *parameters = is_call ? name.data + 10 : name.data;
    if (memchr(parameters, '(', name.size - (size_t)(parameters - name.data)))
        return TTD_OK;
    enum ttd_status status = keep_canonical(suppressions, name, &canonical);
    if (status != TTD_OK)
        return status;
    struct ttd_string last = canonical_last(canonical);
    if (last.data == canonical.data)
        line->inlined = last;
    return TTD_OK;
}

enum ttd_status suppress_add_line(struct rule_reader *reader, struct suppression *rule,
                                  struct suppression_line line)
{
    struct suppressions *suppressions = reader->suppressions;
    enum ttd_status status = suppress_keep_text(suppressions, line.pattern, &line.pattern);
    if (status == TTD_OK && line.part == SUPPRESS_FUNCTION)
        status = read_function(reader, &line);
    if (status == TTD_OK)
        status = grow_array((void **)&suppressions->lines, &suppressions->line_capacity,
                            suppressions->line_count + 1, sizeof *suppressions->lines);
    if (status != TTD_OK)
        return status;
    suppressions->lines[suppressions->line_count++] = line;
    rule->count++;
    return TTD_OK;
}

/* Reads "leak:pattern". Stars are added at the ends that are not anchored, so that one kind of
 * match serves all. */
static enum ttd_status read_sanitizer(struct rule_reader *reader, struct ttd_string line)
{
    struct ttd_string pattern = line;
    if (!suppress_take_word(&pattern, "leak:"))
        return suppress_fail(reader, reader->line,
                             "neither 'leak:PATTERN' nor a block that begins with '{': '%.*s'",
                             (int)(line.size < 60 ? line.size : 60), line.data);
    bool is_begin = suppress_take_word(&pattern, "^");
    bool is_end = pattern.size && pattern.data[pattern.size - 1] == '$';
    pattern.size -= is_end;
    if (!pattern.size)
        return suppress_fail(reader, reader->line, "'leak:' has no pattern");
    struct suppression *rule;
    enum ttd_status status = suppress_add_rule(reader, line, &rule);
    char *text =
        status == TTD_OK ? arena_take(&reader->suppressions->text, pattern.size + 2) : NULL;
    if (!text)
        return status == TTD_OK ? TTD_ERROR_NO_MEMORY : status;
    size_t size = 0;
    if (!is_begin)
        text[size++] = '*';
    memcpy(text + size, pattern.data, pattern.size);
    size += pattern.size;
    if (!is_end)
        text[size++] = '*';
    rule->kinds = SUPPRESS_LEAKS;
    rule->is_sanitizer = true;
    return suppress_add_line(
        reader, rule, (struct suppression_line){.part = SUPPRESS_ANY, .pattern = {text, size}});
}

enum ttd_status suppress_read(struct suppressions *suppressions, const char *file,
                              struct ttd_string text, struct suppress_error *error)
{
    struct rule_reader reader = {
        .suppressions = suppressions, .file = file, .text = text, .error = error};
    struct ttd_string line;
    enum ttd_status status = TTD_OK;
    if (text.size && memchr(text.data, '\0', text.size))
        return suppress_fail(&reader, 1, "not a text");
    while (status == TTD_OK && suppress_next_line(&reader, &line)) {
        status = suppress_equals(line, "{") ? suppress_read_block(&reader)
                                            : read_sanitizer(&reader, line);
    }
    demangler_free(&reader.demangler);
    return status;
}
