/* SPDX-License-Identifier: MIT */
/* Files of suppressions: their lines, the rules they become, and the rules of LeakSanitizer. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "symbols/canonical.h"
#include "symbols/demangle.h"
#include "view/suppress.h"

/** The bit of a kind of finding in suppression.kinds. */
#define SUPPRESS_BIT(kind) (UINT32_C(1) << (kind))

/** Leaks of every kind. */
#define SUPPRESS_LEAKS                                                                             \
    (SUPPRESS_BIT(SUPPRESS_LEAK) | SUPPRESS_BIT(SUPPRESS_DEFINITE) |                               \
     SUPPRESS_BIT(SUPPRESS_INDIRECT) | SUPPRESS_BIT(SUPPRESS_POSSIBLE) |                           \
     SUPPRESS_BIT(SUPPRESS_REACHABLE))

/** A file that is being read, up to the line `line`. */
struct rule_reader {
    struct suppressions *suppressions;
    const char *file;
    struct ttd_string text;
    /** Offset of the next line in `text`. */
    size_t next_line;
    size_t line;
    struct suppress_error *error;
    struct demangler demangler;
};

/** Sets the reader's error. Returns TTD_ERROR_ARGUMENT. */
__attribute__((format(printf, 3, 4))) static enum ttd_status
suppress_fail(struct rule_reader *reader, size_t line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->error->reason, sizeof reader->error->reason, format, arguments);
    va_end(arguments);
    reader->error->line = line;
    return TTD_ERROR_ARGUMENT;
}

static bool suppress_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/** Removes blanks at both ends. */
static struct ttd_string suppress_trim(struct ttd_string text)
{
    while (text.size && suppress_is_blank(text.data[0]))
        text = (struct ttd_string){text.data + 1, text.size - 1};
    while (text.size && suppress_is_blank(text.data[text.size - 1]))
        text.size--;
    return text;
}

/** Reads the next line that is neither empty nor a comment; false at the end. */
static bool suppress_next_line(struct rule_reader *reader, struct ttd_string *line)
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

static bool suppress_equals(struct ttd_string text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/** Removes a word from the beginning of `text`; false if it does not begin with it. */
static bool suppress_take_word(struct ttd_string *text, const char *word)
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

/** Adds a rule without lines. @return TTD_OK, TTD_ERROR_ARGUMENT (too many), TTD_ERROR_NO_MEMORY.
 */
static enum ttd_status suppress_add_rule(struct rule_reader *reader, struct ttd_string name,
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

static enum ttd_status suppress_keep_canonical(struct suppressions *suppressions,
                                               struct ttd_string name, struct ttd_string *result)
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
        return status == TTD_OK
                   ? suppress_keep_canonical(suppressions, line->display, &line->canonical)
                   : status;
    }
    /* A name with parameters is demangled: its only form. */
    bool is_call = name.size >= 10 && suppress_text_begins(name, "operator()");
    const char *parameters = is_call ? name.data + 10 : name.data;
    if (memchr(parameters, '(', name.size - (size_t)(parameters - name.data)))
        return TTD_OK;
    enum ttd_status status = suppress_keep_canonical(suppressions, name, &canonical);
    if (status != TTD_OK)
        return status;
    struct ttd_string last = canonical_last(canonical);
    if (last.data == canonical.data)
        line->inlined = last;
    return TTD_OK;
}

/** Adds a line to the newest rule, and copies its pattern. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
static enum ttd_status suppress_add_line(struct rule_reader *reader, struct suppression *rule,
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

/* Whether a comma-separated list of tools contains one. */
static bool suppress_has_tool(struct ttd_string tools, const char *tool)
{
    while (tools.size) {
        const char *comma = memchr(tools.data, ',', tools.size);
        size_t size = comma ? (size_t)(comma - tools.data) : tools.size;
        if (suppress_equals((struct ttd_string){tools.data, size}, tool))
            return true;
        size += comma != NULL;
        tools = (struct ttd_string){tools.data + size, tools.size - size};
    }
    return false;
}

static uint32_t suppress_own_kinds(struct ttd_string name)
{
    for (int i = 0; i < HEAP_ERROR_KINDS; i++) {
        if (suppress_equals(name, heap_error_name((enum heap_error_kind)i)))
            return SUPPRESS_BIT(i);
    }
    return suppress_equals(name, "leak") ? SUPPRESS_LEAKS : 0;
}

static const uint32_t free_kinds =
    SUPPRESS_BIT(HEAP_ERROR_DOUBLE_FREE) | SUPPRESS_BIT(HEAP_ERROR_REALLOC_OF_FREED) |
    SUPPRESS_BIT(HEAP_ERROR_INVALID_FREE) | SUPPRESS_BIT(HEAP_ERROR_INTERIOR_FREE) |
    SUPPRESS_BIT(HEAP_ERROR_MISMATCHED_FREE) | SUPPRESS_BIT(HEAP_ERROR_MISMATCHED_SIZE) |
    SUPPRESS_BIT(HEAP_ERROR_WRONG_HEAP) | SUPPRESS_BIT(HEAP_ERROR_USE_OF_DESTROYED_HEAP);

/* Reads a line such as "Memcheck:Leak", the tools and the kind. A kind of another tool has no bits,
 * so that its frames are not read. */
static enum ttd_status valgrind_read_kinds(struct rule_reader *reader, struct ttd_string line,
                                           uint32_t *kinds)
{
    const char *colon = memchr(line.data, ':', line.size);
    if (!colon || colon == line.data || colon + 1 == line.data + line.size)
        return suppress_fail(reader, reader->line, "no TOOL:KIND such as Memcheck:Leak: '%.*s'",
                             (int)(line.size < 60 ? line.size : 60), line.data);
    struct ttd_string tools = {line.data, (size_t)(colon - line.data)};
    struct ttd_string kind = {colon + 1, line.size - tools.size - 1};
    *kinds = 0;
    if (suppress_has_tool(tools, "ttdanalyze")) {
        *kinds = suppress_own_kinds(kind);
        if (!*kinds)
            return suppress_fail(reader, reader->line, "ttdanalyze has no finding '%.*s'",
                                 (int)(kind.size < 60 ? kind.size : 60), kind.data);
    }
    if (!suppress_has_tool(tools, "Memcheck"))
        return TTD_OK;
    if (suppress_equals(kind, "Leak"))
        *kinds |= SUPPRESS_LEAKS;
    else if (suppress_equals(kind, "Free"))
        *kinds |= free_kinds;
    else if (suppress_equals(kind, "FishyValue"))
        *kinds |= SUPPRESS_BIT(HEAP_ERROR_FAILED_CALL);
    return TTD_OK;
}

static enum ttd_status read_leak_kinds(struct rule_reader *reader, struct ttd_string list,
                                       struct suppression *rule)
{
    static const struct {
        const char *name;
        uint32_t kinds;
    } leaks[] = {{"definite", SUPPRESS_BIT(SUPPRESS_DEFINITE)},
                 {"indirect", SUPPRESS_BIT(SUPPRESS_INDIRECT)},
                 {"possible", SUPPRESS_BIT(SUPPRESS_POSSIBLE)},
                 {"reachable", SUPPRESS_BIT(SUPPRESS_REACHABLE)},
                 {"all", SUPPRESS_LEAKS}};
    list = suppress_trim(list);
    rule->kinds = 0;
    if (suppress_equals(list, "none"))
        return TTD_OK;
    rule->kinds = SUPPRESS_BIT(SUPPRESS_LEAK);
    do {
        const char *comma = list.size ? memchr(list.data, ',', list.size) : NULL;
        struct ttd_string name = {list.data, comma ? (size_t)(comma - list.data) : list.size};
        bool is_known = false;
        for (size_t i = 0; i < sizeof leaks / sizeof leaks[0]; i++) {
            if (!suppress_equals(suppress_trim(name), leaks[i].name))
                continue;
            rule->kinds |= leaks[i].kinds;
            is_known = true;
        }
        if (!is_known)
            return suppress_fail(reader, reader->line, "unknown kind of leak '%.*s'",
                                 (int)(name.size < 60 ? name.size : 60), name.data);
        size_t name_size = name.size + (comma != NULL);
        list = (struct ttd_string){list.data + name_size, list.size - name_size};
    } while (list.size);
    return TTD_OK;
}

/* Splits "file.c:123" into pattern and line; without a number the whole is the pattern. */
static void suppress_split_source(struct suppression_line *line)
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
        return suppress_fail(reader, reader->line, "more than %d frames", SUPPRESS_FRAMES_MAX);
    if (suppress_take_word(&line.pattern, "fun:"))
        line.part = SUPPRESS_FUNCTION;
    else if (suppress_take_word(&line.pattern, "obj:"))
        line.part = SUPPRESS_OBJECT;
    else if (suppress_take_word(&line.pattern, "src:"))
        line.part = SUPPRESS_SOURCE;
    else if (!suppress_equals(text, "..."))
        return suppress_fail(reader, reader->line, "not fun:, obj:, src: or '...': '%.*s'",
                             (int)(text.size < 60 ? text.size : 60), text.data);
    if (line.part == SUPPRESS_SOURCE)
        suppress_split_source(&line);
    if (!line.pattern.size)
        return suppress_fail(reader, reader->line, "a pattern is missing");
    return suppress_add_line(reader, rule, line);
}

static enum ttd_status read_frames(struct rule_reader *reader, size_t begin,
                                   struct suppression *rule)
{
    struct ttd_string line;
    bool is_used = rule->kinds;
    bool is_leak = rule->kinds & SUPPRESS_BIT(SUPPRESS_LEAK);
    while (suppress_next_line(reader, &line)) {
        if (suppress_equals(line, "}"))
            return rule->count || !is_used
                       ? TTD_OK
                       : suppress_fail(reader, reader->line, "a rule without frames");
        enum ttd_status status = TTD_OK;
        struct ttd_string list = line;
        if (is_leak && !rule->count && suppress_take_word(&list, "match-leak-kinds:"))
            status = read_leak_kinds(reader, list, rule);
        else if (is_used)
            status = read_frame(reader, line, rule);
        if (status != TTD_OK)
            return status;
    }
    return suppress_fail(reader, begin, "a block that does not end with '}'");
}

/** Reads a rule of valgrind, whose '{' was read. @return TTD_OK, TTD_ERROR_ARGUMENT,
 * TTD_ERROR_NO_MEMORY. */
static enum ttd_status suppress_read_block(struct rule_reader *reader)
{
    size_t begin = reader->line;
    struct ttd_string name, line;
    if (!suppress_next_line(reader, &name) || suppress_equals(name, "}"))
        return suppress_fail(reader, begin, "a block without a name");
    struct suppression *rule;
    enum ttd_status status = suppress_add_rule(reader, name, &rule);
    if (status != TTD_OK)
        return status;
    rule->line = begin;
    if (!suppress_next_line(reader, &line))
        return suppress_fail(reader, begin, "a block that does not end with '}'");
    status = valgrind_read_kinds(reader, line, &rule->kinds);
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
        return suppress_fail(&reader, 1, "not a text");
    while (status == TTD_OK && suppress_next_line(&reader, &line)) {
        status = suppress_equals(line, "{") ? suppress_read_block(&reader)
                                            : read_sanitizer(&reader, line);
    }
    demangler_free(&reader.demangler);
    return status;
}

/* Suppressions of valgrind: blocks in braces. Blocks of other tools are read over, but must be well
 * formed. */
