/* SPDX-License-Identifier: MIT */
#include "view/suppress.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/canonical.h"
#include "view/function_names.h"

void suppress_init(struct suppressions *suppressions)
{
    memset(suppressions, 0, sizeof *suppressions);
    map_init(&suppressions->sites);
}

void suppress_free(struct suppressions *suppressions)
{
    free(suppressions->rules);
    free(suppressions->lines);
    arena_free(&suppressions->text);
    map_free(&suppressions->sites);
    frame_list_free(&suppressions->frames);
    memset(suppressions, 0, sizeof *suppressions);
}

static struct ttd_string suppress_text_of(const char *text)
{
    return (struct ttd_string){text, strlen(text)};
}

static bool suppress_text_equals(struct ttd_string text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* Replaces an unknown name by "???", as valgrind calls it. */
static struct ttd_string suppress_known(struct ttd_string text)
{
    return text.size ? text : suppress_text_of("???");
}

static bool suppress_pattern_has(struct ttd_string pattern, struct ttd_string text)
{
    return glob_match(GLOB_STARS_AND_MARKS, pattern, text);
}

/* Whether valgrind would call a function "(below main)". */
static bool suppress_is_below_main(struct ttd_string function)
{
    return suppress_text_equals(function, "_start") ||
           suppress_text_equals(function, "__libc_start_call_main") ||
           suppress_pattern_has(suppress_text_of("__libc_start_main*"), function) ||
           suppress_pattern_has(suppress_text_of("generic_start_main*"), function);
}

/* Whether a pattern matches the public name of an internal symbol of the C library: valgrind
 * reports "__GI___strdup" as strdup. */
static bool matches_alias(struct ttd_string pattern, struct ttd_string symbol)
{
    static const char prefix[] = "__GI_";
    size_t size = sizeof prefix - 1;
    if (symbol.size <= size || memcmp(symbol.data, prefix, size) != 0)
        return false;
    while (size < symbol.size - 1 && symbol.data[size] == '_')
        size++;
    return suppress_pattern_has(pattern,
                                (struct ttd_string){symbol.data + size, symbol.size - size});
}

static bool suppress_same_text(struct ttd_string a, struct ttd_string b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/*
 * Whether a function matches by another of its names. A mangled pattern also matches a frame whose
 * demangled name is the same, since constructors have several symbols, and a frame without a
 * mangled name whose canonical name is the same. An inlined function has only a short name in
 * valgrind.
 */
static bool matches_other_name(const struct suppression_line *line, struct definitions *definitions,
                               const struct frame *frame)
{
    bool is_mangled = frame->symbol.size != frame->function.size;
    if (line->is_clone &&
        (suppress_pattern_has(line->pattern, canonical_without_clone(frame->symbol)) ||
         suppress_pattern_has(line->pattern, canonical_without_clone(frame->function))))
        return true;
    if (line->display.size && suppress_same_text(line->display, frame->function))
        return true;
    if (line->display.size && !is_mangled)
        return suppress_same_text(line->canonical, definitions_canonical(definitions, frame->name));
    return line->inlined.size && frame->is_inlined &&
           suppress_pattern_has(line->inlined,
                                canonical_last(definitions_canonical(definitions, frame->name)));
}

static bool matches_function(const struct suppression_line *line, struct definitions *definitions,
                             const struct frame *frame)
{
    struct ttd_string pattern = line->pattern;
    if (matches_alias(pattern, frame->symbol))
        return true;
    if (suppress_text_equals(pattern, "(below main)"))
        return suppress_is_below_main(frame->symbol);
    return suppress_pattern_has(pattern, suppress_known(frame->symbol)) ||
           suppress_pattern_has(pattern, suppress_known(frame->function)) ||
           (frame->function.size && matches_other_name(line, definitions, frame));
}

static bool matches_source(const struct suppression_line *line, const struct frame *frame)
{
    if (line->line && line->line != frame->line)
        return false;
    return frame->file.size && (suppress_pattern_has(line->pattern, frame->file) ||
                                suppress_pattern_has(line->pattern, glob_base_name(frame->file)));
}

static bool matches_any(struct ttd_string pattern, const struct frame *frame)
{
    const struct ttd_string texts[] = {frame->function, frame->symbol, frame->file, frame->module};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].size && glob_match(GLOB_STARS, pattern, texts[i]))
            return true;
    }
    return false;
}

static bool suppress_matches_frame(const struct suppression_line *line,
                                   struct definitions *definitions, const struct frame *frame)
{
    switch (line->part) {
    case SUPPRESS_FUNCTION:
        return matches_function(line, definitions, frame);
    case SUPPRESS_OBJECT:
        return suppress_pattern_has(line->pattern, suppress_known(frame->module));
    case SUPPRESS_SOURCE:
        return matches_source(line, frame);
    case SUPPRESS_ANY:
        return matches_any(line->pattern, frame);
    case SUPPRESS_FRAMES:
        break;
    }
    return true;
}

/* Whether the lines match the first frames of a stack; the frames beyond them do not matter. */
static bool matches_frames(const struct suppression_line *lines, size_t count,
                           struct definitions *definitions, const struct frame_list *frames)
{
    size_t frame_count = frames->count;
    size_t l = 0;
    size_t f = 0;
    /* State of backtracking: the line after the last "...", and the frame where it was tried
     * last. */
    size_t dots = SIZE_MAX;
    size_t tried = 0;
    while (l < count) {
        if (lines[l].part == SUPPRESS_FRAMES) {
            dots = ++l;
            tried = f;
        } else if (f < frame_count &&
                   suppress_matches_frame(&lines[l], definitions, &frames->frames[f])) {
            l++;
            f++;
        } else if (dots != SIZE_MAX && tried < frame_count) {
            l = dots;
            f = ++tried;
        } else {
            return false;
        }
    }
    return true;
}

/* Finds the first rule of LeakSanitizer that matches at an address, plus 1; 0 for none. */
static enum ttd_status suppress_find_at(struct suppressions *suppressions,
                                        struct definitions *definitions,
                                        const struct ttd_stack *stack, uint32_t *rule)
{
    *rule = map_get(&suppressions->sites, stack->module, stack->offset);
    if (*rule != MAP_NONE)
        return TTD_OK;
    suppressions->frames.count = 0;
    enum ttd_status status = frame_list_add(&suppressions->frames, definitions, stack);
    *rule = 0;
    for (size_t i = 0; i < suppressions->count && !*rule && status == TTD_OK; i++) {
        const struct suppression *candidate = &suppressions->rules[i];
        for (size_t k = 0; candidate->is_sanitizer && k < suppressions->frames.count && !*rule;
             k++) {
            if (suppress_matches_frame(&suppressions->lines[candidate->first], definitions,
                                       &suppressions->frames.frames[k]))
                *rule = (uint32_t)i + 1;
        }
    }
    return status == TTD_OK ? map_set(&suppressions->sites, stack->module, stack->offset, *rule)
                            : status;
}

static enum ttd_status suppress_find_sanitizer(struct suppressions *suppressions,
                                               struct definitions *definitions, ttd_id stack,
                                               size_t *best)
{
    struct ttd_stack current;
    enum ttd_status status;
    while ((status = definitions_stack(definitions, stack, &current)) == TTD_OK) {
        uint32_t rule;
        status = suppress_find_at(suppressions, definitions, &current, &rule);
        if (status != TTD_OK)
            return status;
        if (rule && rule - 1 < *best)
            *best = rule - 1;
        stack = current.parent;
    }
    return status == TTD_END ? TTD_OK : status;
}

/* Sets suppressions->frames to the stack, with the frame of the called function that valgrind adds.
 */
static enum ttd_status suppress_expand(struct suppressions *suppressions,
                                       struct definitions *definitions, uint8_t api, ttd_id stack)
{
    enum ttd_status status = frame_list_expand(&suppressions->frames, definitions, stack);
    struct frame called = {.function = suppress_text_of(ttd_api_name(api)),
                           .symbol = suppress_text_of(allocators_symbol(api)),
                           .module = suppress_text_of("vgpreload_memcheck")};
    struct frame_list *list = &suppressions->frames;
    bool is_there =
        list->count && (suppress_text_equals(list->frames[0].symbol, called.symbol.data) ||
                        suppress_text_equals(list->frames[0].function, called.function.data));
    if (status == TTD_OK && !is_there) {
        status = frame_list_push(list, &called);
        if (status == TTD_OK) {
            memmove(list->frames + 1, list->frames, (list->count - 1) * sizeof *list->frames);
            list->frames[0] = called;
        }
    }
    return status;
}

enum ttd_status suppress_find(struct suppressions *suppressions, struct definitions *definitions,
                              unsigned kind, uint8_t api, ttd_id stack, struct suppression **rule)
{
    size_t best = suppressions->count;
    enum ttd_status status = TTD_OK;
    *rule = NULL;
    if (kind >= SUPPRESS_LEAK && suppressions->count)
        status = suppress_find_sanitizer(suppressions, definitions, stack, &best);
    if (status == TTD_OK && suppressions->count)
        status = suppress_expand(suppressions, definitions, api, stack);
    for (size_t i = 0; i < best && status == TTD_OK; i++) {
        const struct suppression *candidate = &suppressions->rules[i];
        if (!candidate->is_sanitizer && candidate->kinds >> kind & 1 &&
            matches_frames(&suppressions->lines[candidate->first], candidate->count, definitions,
                           &suppressions->frames))
            best = i;
    }
    if (status == TTD_OK && best < suppressions->count)
        *rule = &suppressions->rules[best];
    return status;
}
