/* SPDX-License-Identifier: MIT */
/* Suppressions of valgrind: blocks in braces. Blocks of other tools are read over, but must be well
 * formed. */
#include <string.h>

#include "view/suppress_parts.h"

static const uint32_t free_kinds =
    SUPPRESS_BIT(HEAP_ERROR_DOUBLE_FREE) | SUPPRESS_BIT(HEAP_ERROR_REALLOC_OF_FREED) |
    SUPPRESS_BIT(HEAP_ERROR_INVALID_FREE) | SUPPRESS_BIT(HEAP_ERROR_INTERIOR_FREE) |
    SUPPRESS_BIT(HEAP_ERROR_MISMATCHED_FREE) | SUPPRESS_BIT(HEAP_ERROR_MISMATCHED_SIZE) |
    SUPPRESS_BIT(HEAP_ERROR_WRONG_HEAP) | SUPPRESS_BIT(HEAP_ERROR_USE_OF_DESTROYED_HEAP);

/* Whether a comma-separated list of tools contains one. */
static bool has_tool(struct ttd_string tools, const char *tool)
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

static uint32_t own_kinds(struct ttd_string name)
{
    for (int i = 0; i < HEAP_ERROR_KINDS; i++) {
        if (suppress_equals(name, heap_error_name((enum heap_error_kind)i)))
            return SUPPRESS_BIT(i);
    }
    return suppress_equals(name, "leak") ? SUPPRESS_LEAKS : 0;
}

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
    if (has_tool(tools, "ttdanalyze")) {
        *kinds = own_kinds(kind);
        if (!*kinds)
            return suppress_fail(reader, reader->line, "ttdanalyze has no finding '%.*s'",
                                 (int)(kind.size < 60 ? kind.size : 60), kind.data);
    }
    if (!has_tool(tools, "Memcheck"))
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
        split_source(&line);
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

enum ttd_status suppress_read_block(struct rule_reader *reader)
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
