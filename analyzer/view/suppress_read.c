/* SPDX-License-Identifier: MIT */
/* Files of suppressions, which may contain anything. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "symbols/canonical.h"
#include "symbols/demangle.h"
#include "view/suppress.h"

struct rule_reader {
    struct suppressions *suppressions;
    const char *file;
    struct ttd_string text;
    size_t at;
    size_t line;
    struct suppress_error *error;
};

#define BIT(kind) (UINT32_C(1) << (kind))

static const uint32_t free_kinds = BIT(HEAP_ERROR_DOUBLE_FREE) | BIT(HEAP_ERROR_REALLOC_OF_FREED) |
                                   BIT(HEAP_ERROR_INVALID_FREE) | BIT(HEAP_ERROR_INTERIOR_FREE) |
                                   BIT(HEAP_ERROR_MISMATCHED_FREE) |
                                   BIT(HEAP_ERROR_MISMATCHED_SIZE) | BIT(HEAP_ERROR_WRONG_HEAP) |
                                   BIT(HEAP_ERROR_USE_OF_DESTROYED_HEAP);

__attribute__((format(printf, 3, 4))) static enum ttd_status
fail(struct rule_reader *reader, size_t line, const char *format, ...)
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

static struct ttd_string trim(struct ttd_string text)
{
    while (text.size && is_blank(text.data[0]))
        text = (struct ttd_string){text.data + 1, text.size - 1};
    while (text.size && is_blank(text.data[text.size - 1]))
        text.size--;
    return text;
}

/* The next line that is neither empty nor a comment; false at the end. */
static bool next_line(struct rule_reader *reader, struct ttd_string *line)
{
    while (reader->at < reader->text.size) {
        const char *begin = reader->text.data + reader->at;
        size_t left = reader->text.size - reader->at;
        const char *end = memchr(begin, '\n', left);
        size_t size = end ? (size_t)(end - begin) : left;
        reader->at += size + (end != NULL);
        reader->line++;
        *line = trim((struct ttd_string){begin, size});
        if (line->size && line->data[0] != '#')
            return true;
    }
    return false;
}

static bool equals(struct ttd_string text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* Removes a word at the beginning, if it is there. */
static bool take_word(struct ttd_string *text, const char *word)
{
    size_t size = strlen(word);
    if (text->size < size || memcmp(text->data, word, size) != 0)
        return false;
    *text = (struct ttd_string){text->data + size, text->size - size};
    return true;
}

static enum ttd_status keep(struct suppressions *suppressions, struct ttd_string text,
                            struct ttd_string *kept)
{
    char *copy = arena_copy(&suppressions->text, text.data, text.size);
    if (!copy)
        return TTD_ERROR_NO_MEMORY;
    *kept = (struct ttd_string){copy, text.size};
    return TTD_OK;
}

static enum ttd_status add_rule(struct rule_reader *reader, struct ttd_string name,
                                struct suppression **rule)
{
    struct suppressions *suppressions = reader->suppressions;
    if (suppressions->count == SUPPRESS_RULES_MAX)
        return fail(reader, reader->line, "more than %d rules", SUPPRESS_RULES_MAX);
    enum ttd_status status = grow_array((void **)&suppressions->rules, &suppressions->capacity,
                                        suppressions->count + 1, sizeof *suppressions->rules);
    struct ttd_string kept = {"", 0};
    if (status == TTD_OK)
        status = keep(suppressions, name, &kept);
    if (status != TTD_OK)
        return status;
    *rule = &suppressions->rules[suppressions->count++];
    **rule = (struct suppression){.file = reader->file,
                                  .line = reader->line,
                                  .name = kept,
                                  .first = suppressions->line_count};
    return TTD_OK;
}

static bool begins(struct ttd_string text, const char *word)
{
    return text.size >= strlen(word) && memcmp(text.data, word, strlen(word)) == 0;
}

static enum ttd_status keep_canonical(struct suppressions *suppressions, struct ttd_string name,
                                      struct ttd_string *kept)
{
    char *text = arena_take(&suppressions->text, CANONICAL_ROOM(name.size));
    if (!text)
        return TTD_ERROR_NO_MEMORY;
    *kept = (struct ttd_string){text, canonical_name(name, text)};
    return TTD_OK;
}

/* Finds out which other names of a function the pattern, which ends with a NUL, stands for. */
static enum ttd_status read_function(struct suppressions *suppressions,
                                     struct suppression_line *line)
{
    struct ttd_string name = canonical_without_clone(line->pattern);
    char display[DEMANGLE_MAX + 1];
    struct ttd_string canonical;
    line->is_clone = name.size < line->pattern.size;
    line->pattern = name;
    if (begins(name, "_Z")) {
        enum ttd_status status = keep(suppressions, name, &name);
        size_t size = status == TTD_OK ? demangle(name.data, display) : 0;
        if (!size)
            return status;
        status = keep(suppressions, (struct ttd_string){display, size}, &line->display);
        return status == TTD_OK ? keep_canonical(suppressions, line->display, &line->canonical)
                                : status;
    }
    /* A name with parameters is demangled already. */
    bool is_call = name.size >= 10 && begins(name, "operator()");
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

static enum ttd_status add_line(struct suppressions *suppressions, struct suppression *rule,
                                struct suppression_line line)
{
    enum ttd_status status = keep(suppressions, line.pattern, &line.pattern);
    if (status == TTD_OK && line.part == SUPPRESS_FUNCTION)
        status = read_function(suppressions, &line);
    if (status == TTD_OK)
        status = grow_array((void **)&suppressions->lines, &suppressions->line_capacity,
                            suppressions->line_count + 1, sizeof *suppressions->lines);
    if (status != TTD_OK)
        return status;
    suppressions->lines[suppressions->line_count++] = line;
    rule->count++;
    return TTD_OK;
}

/* "leak:pattern": as a pattern of the whole name in any frame. */
static enum ttd_status read_sanitizer(struct rule_reader *reader, struct ttd_string line)
{
    struct ttd_string pattern = line;
    if (!take_word(&pattern, "leak:"))
        return fail(reader, reader->line,
                    "neither 'leak:PATTERN' nor a block that begins with '{': '%.*s'",
                    (int)(line.size < 60 ? line.size : 60), line.data);
    bool is_begin = take_word(&pattern, "^");
    bool is_end = pattern.size && pattern.data[pattern.size - 1] == '$';
    pattern.size -= is_end;
    if (!pattern.size)
        return fail(reader, reader->line, "'leak:' has no pattern");
    struct suppression *rule;
    enum ttd_status status = add_rule(reader, line, &rule);
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
    rule->kinds = BIT(SUPPRESS_LEAK);
    rule->is_sanitizer = true;
    return add_line(reader->suppressions, rule,
                    (struct suppression_line){.part = SUPPRESS_ANY, .pattern = {text, size}});
}

/* Whether a comma-separated list of tools has one. */
static bool has_tool(struct ttd_string tools, const char *wanted)
{
    while (tools.size) {
        const char *comma = memchr(tools.data, ',', tools.size);
        size_t size = comma ? (size_t)(comma - tools.data) : tools.size;
        if (equals((struct ttd_string){tools.data, size}, wanted))
            return true;
        size += comma != NULL;
        tools = (struct ttd_string){tools.data + size, tools.size - size};
    }
    return false;
}

static uint32_t own_kinds(struct ttd_string name)
{
    for (int i = 0; i < HEAP_ERROR_KINDS; i++) {
        if (equals(name, heap_error_name((enum heap_error_kind)i)))
            return BIT(i);
    }
    return equals(name, "leak") ? BIT(SUPPRESS_LEAK) : 0;
}

/* "Memcheck:Leak": tools and a kind. */
static enum ttd_status read_kinds(struct rule_reader *reader, struct ttd_string line,
                                  uint32_t *kinds)
{
    const char *colon = memchr(line.data, ':', line.size);
    if (!colon || colon == line.data || colon + 1 == line.data + line.size)
        return fail(reader, reader->line, "no TOOL:KIND such as Memcheck:Leak: '%.*s'",
                    (int)(line.size < 60 ? line.size : 60), line.data);
    struct ttd_string tools = {line.data, (size_t)(colon - line.data)};
    struct ttd_string kind = {colon + 1, line.size - tools.size - 1};
    *kinds = 0;
    if (has_tool(tools, "ttdanalyze")) {
        *kinds = own_kinds(kind);
        if (!*kinds)
            return fail(reader, reader->line, "ttdanalyze has no finding '%.*s'",
                        (int)(kind.size < 60 ? kind.size : 60), kind.data);
    }
    if (!has_tool(tools, "Memcheck"))
        return TTD_OK;
    if (equals(kind, "Leak"))
        *kinds |= BIT(SUPPRESS_LEAK);
    else if (equals(kind, "Free"))
        *kinds |= free_kinds;
    else if (equals(kind, "FishyValue"))
        *kinds |= BIT(HEAP_ERROR_FAILED_CALL);
    return TTD_OK;
}

static enum ttd_status read_leak_kinds(struct rule_reader *reader, struct ttd_string list,
                                       struct suppression *rule)
{
    static const char *const names[] = {"definite", "indirect", "possible", "reachable", "all"};
    list = trim(list);
    if (equals(list, "none")) {
        rule->kinds = 0;
        return TTD_OK;
    }
    do {
        const char *comma = list.size ? memchr(list.data, ',', list.size) : NULL;
        struct ttd_string name = {list.data, comma ? (size_t)(comma - list.data) : list.size};
        bool is_known = false;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            is_known |= equals(trim(name), names[i]);
        if (!is_known)
            return fail(reader, reader->line, "unknown kind of leak '%.*s'",
                        (int)(name.size < 60 ? name.size : 60), name.data);
        size_t used = name.size + (comma != NULL);
        list = (struct ttd_string){list.data + used, list.size - used};
    } while (list.size);
    return TTD_OK;
}

/* "file.c:123": the number, if there is one, is not part of the pattern. */
static void split_source(struct suppression_line *line)
{
    size_t digits = 0;
    uint64_t number = 0;
    size_t size = line->pattern.size;
    while (digits < size && digits < 9) {
        char c = line->pattern.data[size - 1 - digits];
        if (c < '0' || c > '9')
            break;
        digits++;
    }
    if (!digits || digits == size || line->pattern.data[size - 1 - digits] != ':')
        return;
    for (size_t i = size - digits; i < size; i++)
        number = number * 10 + (uint64_t)(line->pattern.data[i] - '0');
    line->line = (uint32_t)number;
    line->pattern.size = size - digits - 1;
}

static enum ttd_status read_frame(struct rule_reader *reader, struct ttd_string text,
                                  struct suppression *rule)
{
    struct suppression_line line = {.part = SUPPRESS_FRAMES, .pattern = text};
    if (rule->count == SUPPRESS_FRAMES_MAX)
        return fail(reader, reader->line, "more than %d frames", SUPPRESS_FRAMES_MAX);
    if (take_word(&line.pattern, "fun:"))
        line.part = SUPPRESS_FUNCTION;
    else if (take_word(&line.pattern, "obj:"))
        line.part = SUPPRESS_OBJECT;
    else if (take_word(&line.pattern, "src:"))
        line.part = SUPPRESS_SOURCE;
    else if (!equals(text, "..."))
        return fail(reader, reader->line, "not fun:, obj:, src: or '...': '%.*s'",
                    (int)(text.size < 60 ? text.size : 60), text.data);
    if (line.part == SUPPRESS_SOURCE)
        split_source(&line);
    if (!line.pattern.size)
        return fail(reader, reader->line, "a pattern is missing");
    return add_line(reader->suppressions, rule, line);
}

static enum ttd_status read_frames(struct rule_reader *reader, size_t begin,
                                   struct suppression *rule)
{
    struct ttd_string line;
    bool is_used = rule->kinds;
    bool is_leak = rule->kinds & BIT(SUPPRESS_LEAK);
    while (next_line(reader, &line)) {
        if (equals(line, "}"))
            return rule->count || !is_used ? TTD_OK
                                           : fail(reader, reader->line, "a rule without frames");
        enum ttd_status status = TTD_OK;
        struct ttd_string list = line;
        if (is_leak && !rule->count && take_word(&list, "match-leak-kinds:"))
            status = read_leak_kinds(reader, list, rule);
        else if (is_used)
            status = read_frame(reader, line, rule);
        if (status != TTD_OK)
            return status;
    }
    return fail(reader, begin, "a block that does not end with '}'");
}

static enum ttd_status read_block(struct rule_reader *reader)
{
    size_t begin = reader->line;
    struct ttd_string name, line;
    if (!next_line(reader, &name) || equals(name, "}"))
        return fail(reader, begin, "a block without a name");
    struct suppression *rule;
    enum ttd_status status = add_rule(reader, name, &rule);
    if (status != TTD_OK)
        return status;
    rule->line = begin;
    if (!next_line(reader, &line))
        return fail(reader, begin, "a block that does not end with '}'");
    status = read_kinds(reader, line, &rule->kinds);
    return status == TTD_OK ? read_frames(reader, begin, rule) : status;
}

enum ttd_status suppress_read(struct suppressions *suppressions, const char *file,
                              struct ttd_string text, struct suppress_error *error)
{
    struct rule_reader reader = {
        .suppressions = suppressions, .file = file, .text = text, .error = error};
    struct ttd_string line;
    enum ttd_status status = TTD_OK;
    if (text.size && memchr(text.data, '\0', text.size))
        return fail(&reader, 1, "not a text");
    while (status == TTD_OK && next_line(&reader, &line)) {
        status = equals(line, "{") ? read_block(&reader) : read_sanitizer(&reader, line);
    }
    return status;
}
