/* SPDX-License-Identifier: MIT */
#include "view/suppress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "heap/site_table.h"
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

void baseline_init(struct baseline *baseline)
{
    memset(baseline, 0, sizeof *baseline);
    map_init(&baseline->index);
}

void baseline_free(struct baseline *baseline)
{
    free(baseline->records);
    map_free(&baseline->index);
    memset(baseline, 0, sizeof *baseline);
}

const char *baseline_kind_name(unsigned kind)
{
    return kind == SUPPRESS_LEAK ? "leak" : heap_error_name((enum heap_error_kind)kind);
}

/* The kind is mixed into the fingerprint (a hash), so that two numbers are enough for a key. */
static uint64_t baseline_first_key(const struct baseline_record *record)
{
    return record->fingerprint.high ^ (uint64_t)record->kind << 56;
}

static struct baseline_record *baseline_lookup(const struct baseline *baseline,
                                               const struct baseline_record *record)
{
    uint32_t index = map_get(&baseline->index, baseline_first_key(record), record->fingerprint.low);
    return index == MAP_NONE ? NULL : &baseline->records[index];
}

const struct baseline_record *baseline_find(const struct baseline *baseline,
                                            const struct baseline_record *record)
{
    return baseline_lookup(baseline, record);
}

enum ttd_status baseline_add(struct baseline *baseline, const struct baseline_record *record)
{
    struct baseline_record *existing = baseline_lookup(baseline, record);
    /* Findings of one fingerprint are one record: a baseline counts, so that a new one more is
     * noticed. */
    if (existing) {
        existing->count = heap_add(existing->count, record->count);
        return TTD_OK;
    }
    enum ttd_status status = grow_array((void **)&baseline->records, &baseline->capacity,
                                        baseline->count + 1, sizeof *baseline->records);
    if (status == TTD_OK)
        status = map_set(&baseline->index, baseline_first_key(record), record->fingerprint.low,
                         (uint32_t)baseline->count);
    if (status == TTD_OK)
        baseline->records[baseline->count++] = *record;
    return status;
}

/* Sorted, so that a baseline in version control changes only where findings do. */
static int baseline_compare(const void *a, const void *b)
{
    const struct baseline_record *left_record = a;
    const struct baseline_record *right_record = b;
    if (left_record->kind != right_record->kind)
        return left_record->kind > right_record->kind ? 1 : -1;
    if (left_record->fingerprint.high != right_record->fingerprint.high)
        return left_record->fingerprint.high > right_record->fingerprint.high ? 1 : -1;
    return (left_record->fingerprint.low > right_record->fingerprint.low) -
           (left_record->fingerprint.low < right_record->fingerprint.low);
}

void baseline_sort(struct baseline *baseline)
{
    if (baseline->count)
        qsort(baseline->records, baseline->count, sizeof *baseline->records, baseline_compare);
}

static bool baseline_parse_kind(struct ttd_string name, unsigned *kind)
{
    for (unsigned i = 0; i < SUPPRESS_KINDS; i++) {
        const char *kind_name = baseline_kind_name(i);
        if (strlen(kind_name) == name.size && memcmp(kind_name, name.data, name.size) == 0) {
            *kind = i;
            return true;
        }
    }
    return false;
}

/* Takes the part of a line before the next space, or all of it. */
static struct ttd_string baseline_take_part(struct ttd_string *line)
{
    const char *space = line->size ? memchr(line->data, ' ', line->size) : NULL;
    struct ttd_string part = {line->data, space ? (size_t)(space - line->data) : line->size};
    size_t part_size = part.size + (space != NULL);
    *line = (struct ttd_string){line->data + part_size, line->size - part_size};
    return part;
}

static bool baseline_parse_count(struct ttd_string text, uint64_t *count)
{
    *count = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned char)text.data[i] - '0';
        if (digit > 9 || *count > (UINT64_MAX - digit) / 10)
            return false;
        *count = *count * 10 + digit;
    }
    return text.size > 0;
}

/* Parses a line such as "leak 0123… 3 for people". */
static bool baseline_parse_entry(struct ttd_string line, struct baseline_record *record)
{
    char text[FINGERPRINT_TEXT] = "";
    if (!baseline_parse_kind(baseline_take_part(&line), &record->kind))
        return false;
    struct ttd_string print = baseline_take_part(&line);
    if (print.size != sizeof text - 1)
        return false;
    memcpy(text, print.data, print.size);
    return fingerprint_parse(text, &record->fingerprint) &&
           baseline_parse_count(baseline_take_part(&line), &record->count);
}

static bool baseline_text_equals(struct ttd_string line, const char *text)
{
    return line.size == strlen(text) && memcmp(line.data, text, line.size) == 0;
}

static enum ttd_status baseline_read_header(struct ttd_string line, struct suppress_error *error)
{
    if (baseline_text_equals(line, BASELINE_HEADER))
        return TTD_OK;
    if (baseline_text_equals(line, BASELINE_OLD))
        snprintf(error->reason, sizeof error->reason,
                 "a baseline of an earlier version, which knows stacks by other fingerprints: "
                 "make it anew with --write-baseline");
    else
        snprintf(error->reason, sizeof error->reason, "no baseline: it does not begin with '%s'",
                 BASELINE_HEADER);
    return TTD_ERROR_ARGUMENT;
}

static enum ttd_status baseline_read_line(struct baseline *baseline, struct ttd_string line,
                                          size_t number, struct suppress_error *error)
{
    struct baseline_record record = {.stack = TTD_NONE};
    error->line = number;
    if (number == 1)
        return baseline_read_header(line, error);
    if (!line.size || line.data[0] == '#')
        return TTD_OK;
    if (baseline_parse_entry(line, &record))
        return baseline_add(baseline, &record);
    snprintf(error->reason, sizeof error->reason,
             "not a kind of finding, a fingerprint and a number");
    return TTD_ERROR_ARGUMENT;
}

enum ttd_status baseline_read(struct baseline *baseline, struct ttd_string text,
                              struct suppress_error *error)
{
    enum ttd_status status = TTD_OK;
    size_t number = 0;
    do {
        const char *end = text.size ? memchr(text.data, '\n', text.size) : NULL;
        size_t size = end ? (size_t)(end - text.data) : text.size;
        /* Lines may end as Windows has them. */
        size_t shown_count = size && text.data[size - 1] == '\r' ? size - 1 : size;
        status = baseline_read_line(baseline, (struct ttd_string){text.data, shown_count}, ++number,
                                    error);
        size += end != NULL;
        text = (struct ttd_string){text.data + size, text.size - size};
    } while (text.size && status == TTD_OK);
    return status;
}

/* Order matters: a block freed where it was allocated, and allocated where it was freed, are two
 * findings. */
static struct fingerprint baseline_mix(struct fingerprint a, struct fingerprint b)
{
    const uint64_t prime = UINT64_C(0x9E3779B97F4A7C15);
    struct fingerprint mixed = {(a.high ^ a.high >> 29) * prime + b.high,
                                (a.low ^ a.low >> 31) * prime + b.low};
    return mixed;
}

enum ttd_status baseline_record_of(struct fingerprinter *fingerprinter,
                                   struct definitions *definitions, unsigned kind,
                                   const ttd_id stacks[BASELINE_STACKS],
                                   struct baseline_record *result)
{
    struct baseline_record record = {.kind = kind, .stack = stacks[0]};
    enum ttd_status status =
        fingerprint_stack(fingerprinter, definitions, stacks[0], &record.fingerprint);
    for (size_t i = 1; i < BASELINE_STACKS && status == TTD_OK; i++) {
        struct fingerprint stack_fingerprint = {0, 0};
        if (stacks[i] == TTD_NONE)
            continue;
        status = fingerprint_stack(fingerprinter, definitions, stacks[i], &stack_fingerprint);
        record.fingerprint = baseline_mix(record.fingerprint, stack_fingerprint);
    }
    if (status == TTD_OK)
        *result = record;
    return status;
}
