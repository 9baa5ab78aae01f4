/* SPDX-License-Identifier: MIT */
/*
 * Files of suppressions and baselines may contain anything, and so may the names that rules are
 * matched with. A file is either read, or refused with a reason; a baseline that was read and
 * written reads the same. Every name has a canonical form, every stack a fingerprint. The first
 * bytes of an input are the names, the rest is the file.
 */
#include "../target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/lazy_stack.h"
#include "symbols/canonical.h"
#include "view/suppress.h"

/* Functions of the stack, innermost first; then its file and its module. */
#define FUNCTIONS 3
#define NAMES     (FUNCTIONS + 2)

/* Longest name. A byte with its size precedes each. */
#define NAME_MAX_SIZE 64

/* Longest number, with a space. */
#define COUNT_MAX_SIZE 22

struct input_bytes {
    const uint8_t *data;
    size_t size;
};

static struct ttd_string take(struct input_bytes *in, size_t size)
{
    size = size < in->size ? size : in->size;
    struct ttd_string content = {(const char *)in->data, size};
    *in = (struct input_bytes){in->data + size, in->size - size};
    return content;
}

static struct ttd_string take_name(struct input_bytes *in)
{
    struct ttd_string size = take(in, 1);
    return take(in, size.size ? (unsigned char)size.data[0] % NAME_MAX_SIZE : 0);
}

/* ---- The stack ---- */

static void define(struct definitions *names, const struct ttd_batch *batch)
{
    target_require(definitions_add(names, batch) == TTD_OK, "a definition");
}

/* Defines stack 1: one address with all functions, each inlined into the next. */
static void define_stack(struct definitions *names, struct input_bytes *in)
{
    struct ttd_string_definition strings[NAMES];
    struct ttd_symbol_frame frames[FUNCTIONS];
    for (ttd_id i = 0; i < NAMES; i++)
        strings[i] = (struct ttd_string_definition){i + 1, take_name(in)};
    for (ttd_id i = 0; i < FUNCTIONS; i++)
        frames[i] = (struct ttd_symbol_frame){i + 1, FUNCTIONS + 1, i};
    struct ttd_module module = {.action = TTD_MODULE_LOAD, .id = 1, .path = NAMES};
    struct ttd_stack stack = {.id = 1, .module = 1, .offset = 0x10};
    struct ttd_symbol symbol = {1, stack.offset, frames, FUNCTIONS};
    define(names,
           &(struct ttd_batch){.kind = TTD_KIND_STRINGS, .count = NAMES, .u.strings = strings});
    define(names, &(struct ttd_batch){.kind = TTD_KIND_MODULES, .count = 1, .u.modules = &module});
    define(names, &(struct ttd_batch){.kind = TTD_KIND_SYMBOLS, .count = 1, .u.symbols = &symbol});
    uint8_t payload[STORED_STACK_SIZE_MAX];
    struct ttd_batch stacks = lazy_stack(&stack, payload);
    define(names, &stacks);
}

/* ---- Suppressions ---- */

static void check_reason(enum ttd_status status, const struct suppress_error *error)
{
    target_require(status == TTD_ERROR_ARGUMENT, "a bad file is a bad argument");
    target_require(error->line > 0 && error->reason[0], "line and reason of a bad file");
}

static void match(struct suppressions *rules, struct definitions *names)
{
    for (unsigned kind = 0; kind < SUPPRESS_KINDS; kind++) {
        struct suppression *rule;
        target_require(suppress_find(rules, names, kind, TTD_API_MALLOC, 1, &rule) == TTD_OK,
                       "finding a rule");
        if (!rule)
            continue;
        target_require(rule >= rules->rules && rule < rules->rules + rules->count,
                       "one of the rules");
        target_require(rule->kinds >> kind & 1, "a rule of that kind");
    }
}

static void try_suppressions(struct ttd_string content, struct definitions *names)
{
    struct suppressions rules;
    struct suppress_error error = {.line = 0};
    suppress_init(&rules);
    enum ttd_status status = suppress_read(&rules, "file", content, &error);
    if (status == TTD_OK)
        match(&rules, names);
    else
        check_reason(status, &error);
    suppress_free(&rules);
}

/* ---- Fingerprints ---- */

/* A canonical name fits its buffer and contains its last part; the fingerprint of a stack does not
 * depend on earlier calls. */
static void try_names(struct definitions *names)
{
    struct fingerprinter fingerprinter = {.definitions = NULL};
    struct fingerprint first = {0, 0};
    struct fingerprint again = {0, 0};
    for (ttd_id i = 1; i <= FUNCTIONS; i++) {
        struct ttd_string canonical = definitions_canonical(names, i);
        struct ttd_string last = canonical_last(canonical);
        target_require(canonical.size <= CANONICAL_ROOM(definitions_function(names, i).size),
                       "room for a canonical name");
        target_require(last.data >= canonical.data &&
                           last.data + last.size <= canonical.data + canonical.size,
                       "the last part");
        char *bare = malloc(canonical.size + 1);
        target_require(bare && canonical_bare(canonical, bare) <= canonical.size, "a bare name");
        free(bare);
    }
    target_require(fingerprint_stack(&fingerprinter, names, 1, &first) == TTD_OK, "a fingerprint");
    target_require(fingerprint_stack(&fingerprinter, names, 1, &again) == TTD_OK, "it is kept");
    target_require(fingerprint_equal(first, again), "the same one");
    fingerprinter_free(&fingerprinter);
    target_require(fingerprint_stack(&fingerprinter, names, 1, &again) == TTD_OK,
                   "it is made again");
    target_require(fingerprint_equal(first, again), "the same one");
    fingerprinter_free(&fingerprinter);
}

/* ---- A baseline ---- */

static void add_text(char **end, const char *content)
{
    size_t size = strlen(content);
    memcpy(*end, content, size);
    *end += size;
}

/* Returns the text of a baseline's file, to be freed. */
static char *write_baseline(const struct baseline *baseline)
{
    /* No name of a kind is that long. */
    char *content = malloc(sizeof BASELINE_HEADER +
                           baseline->count * (NAME_MAX_SIZE + FINGERPRINT_TEXT + COUNT_MAX_SIZE));
    char *end = content;
    target_require(content != NULL, "memory");
    add_text(&end, BASELINE_HEADER);
    for (size_t i = 0; i < baseline->count; i++) {
        char print[FINGERPRINT_TEXT];
        fingerprint_format(baseline->records[i].fingerprint, print);
        add_text(&end, "\n");
        add_text(&end, baseline_kind_name(baseline->records[i].kind));
        add_text(&end, " ");
        add_text(&end, print);
        end += sprintf(end, " %llu", (unsigned long long)baseline->records[i].count);
    }
    *end = '\0';
    return content;
}

static void check_written(const struct baseline *baseline)
{
    char *content = write_baseline(baseline);
    struct baseline again;
    struct suppress_error error;
    baseline_init(&again);
    target_require(baseline_read(&again, (struct ttd_string){content, strlen(content)}, &error) ==
                       TTD_OK,
                   "what is written can be read");
    target_require(again.count == baseline->count, "as many entries");
    for (size_t i = 0; i < baseline->count; i++) {
        const struct baseline_record *record = baseline_find(&again, &baseline->records[i]);
        target_require(record && record->count == baseline->records[i].count, "the same entries");
    }
    baseline_free(&again);
    free(content);
}

static void try_baseline(struct ttd_string content)
{
    struct baseline baseline;
    struct suppress_error error = {.line = 0};
    baseline_init(&baseline);
    enum ttd_status status = baseline_read(&baseline, content, &error);
    if (status == TTD_OK)
        check_written(&baseline);
    else
        check_reason(status, &error);
    baseline_free(&baseline);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = target_copy(data, size);
    struct input_bytes in = {bytes, size};
    struct definitions names;
    definitions_init(&names);
    define_stack(&names, &in);
    struct ttd_string file = {(const char *)in.data, in.size};
    try_names(&names);
    try_suppressions(file, &names);
    try_baseline(file);
    definitions_free(&names);
    free(bytes);
    return 0;
}
