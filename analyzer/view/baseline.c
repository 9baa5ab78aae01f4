/* SPDX-License-Identifier: MIT */
#include "view/baseline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "heap/rows.h"

void baseline_init(struct baseline *baseline)
{
    memset(baseline, 0, sizeof *baseline);
    map_init(&baseline->index);
}

void baseline_free(struct baseline *baseline)
{
    free(baseline->entries);
    map_free(&baseline->index);
    memset(baseline, 0, sizeof *baseline);
}

const char *baseline_kind_name(unsigned kind)
{
    return kind == SUPPRESS_LEAK ? "leak" : heap_error_name((enum heap_error_kind)kind);
}

/* Fingerprints are hashes: another kind is another number. */
static uint64_t first_key(const struct baseline_entry *entry)
{
    return entry->print.high ^ (uint64_t)entry->kind << 56;
}

static struct baseline_entry *find(const struct baseline *baseline,
                                   const struct baseline_entry *entry)
{
    uint32_t index = map_get(&baseline->index, first_key(entry), entry->print.low);
    return index == MAP_NONE ? NULL : &baseline->entries[index];
}

const struct baseline_entry *baseline_find(const struct baseline *baseline,
                                           const struct baseline_entry *entry)
{
    return find(baseline, entry);
}

enum ttd_status baseline_add(struct baseline *baseline, const struct baseline_entry *entry)
{
    struct baseline_entry *known = find(baseline, entry);
    if (known) {
        known->count = heap_add(known->count, entry->count);
        return TTD_OK;
    }
    enum ttd_status status = grow_array((void **)&baseline->entries, &baseline->capacity,
                                        baseline->count + 1, sizeof *baseline->entries);
    if (status == TTD_OK)
        status = map_set(&baseline->index, first_key(entry), entry->print.low,
                         (uint32_t)baseline->count);
    if (status == TTD_OK)
        baseline->entries[baseline->count++] = *entry;
    return status;
}

static int compare(const void *a, const void *b)
{
    const struct baseline_entry *x = a;
    const struct baseline_entry *y = b;
    if (x->kind != y->kind)
        return x->kind > y->kind ? 1 : -1;
    if (x->print.high != y->print.high)
        return x->print.high > y->print.high ? 1 : -1;
    return (x->print.low > y->print.low) - (x->print.low < y->print.low);
}

void baseline_sort(struct baseline *baseline)
{
    if (baseline->count)
        qsort(baseline->entries, baseline->count, sizeof *baseline->entries, compare);
}

static bool parse_kind(struct ttd_string name, unsigned *kind)
{
    for (unsigned i = 0; i < SUPPRESS_KINDS; i++) {
        const char *known = baseline_kind_name(i);
        if (strlen(known) == name.size && memcmp(known, name.data, name.size) == 0) {
            *kind = i;
            return true;
        }
    }
    return false;
}

/* Takes the part of a line up to the next space, which may be the whole. */
static struct ttd_string take_part(struct ttd_string *line)
{
    const char *space = line->size ? memchr(line->data, ' ', line->size) : NULL;
    struct ttd_string part = {line->data, space ? (size_t)(space - line->data) : line->size};
    size_t used = part.size + (space != NULL);
    *line = (struct ttd_string){line->data + used, line->size - used};
    return part;
}

static bool parse_count(struct ttd_string text, uint64_t *count)
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

/* "leak 0123… 3 for people" */
static bool parse_entry(struct ttd_string line, struct baseline_entry *entry)
{
    char text[FINGERPRINT_TEXT] = "";
    if (!parse_kind(take_part(&line), &entry->kind))
        return false;
    struct ttd_string print = take_part(&line);
    if (print.size != sizeof text - 1)
        return false;
    memcpy(text, print.data, print.size);
    return fingerprint_parse(text, &entry->print) && parse_count(take_part(&line), &entry->count);
}

static bool equals(struct ttd_string line, const char *text)
{
    return line.size == strlen(text) && memcmp(line.data, text, line.size) == 0;
}

static enum ttd_status read_header(struct ttd_string line, struct suppress_error *error)
{
    if (equals(line, BASELINE_HEADER))
        return TTD_OK;
    if (equals(line, BASELINE_OLD))
        snprintf(error->reason, sizeof error->reason,
                 "a baseline of an earlier version, which knows stacks by other fingerprints: "
                 "make it anew with --write-baseline");
    else
        snprintf(error->reason, sizeof error->reason, "no baseline: it does not begin with '%s'",
                 BASELINE_HEADER);
    return TTD_ERROR_ARGUMENT;
}

static enum ttd_status read_line(struct baseline *baseline, struct ttd_string line, size_t number,
                                 struct suppress_error *error)
{
    struct baseline_entry entry = {.stack = TTD_NONE};
    error->line = number;
    if (number == 1)
        return read_header(line, error);
    if (!line.size || line.data[0] == '#')
        return TTD_OK;
    if (parse_entry(line, &entry))
        return baseline_add(baseline, &entry);
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
        size_t shown = size && text.data[size - 1] == '\r' ? size - 1 : size;
        status = read_line(baseline, (struct ttd_string){text.data, shown}, ++number, error);
        size += end != NULL;
        text = (struct ttd_string){text.data + size, text.size - size};
    } while (text.size && status == TTD_OK);
    return status;
}

static struct fingerprint mix(struct fingerprint a, struct fingerprint b)
{
    const uint64_t prime = UINT64_C(0x9E3779B97F4A7C15);
    struct fingerprint mixed = {(a.high ^ a.high >> 29) * prime + b.high,
                                (a.low ^ a.low >> 31) * prime + b.low};
    return mixed;
}

enum ttd_status baseline_entry_of(struct fingerprinter *fingerprinter,
                                  struct definitions *definitions, unsigned kind,
                                  const ttd_id stacks[BASELINE_STACKS],
                                  struct baseline_entry *entry)
{
    struct baseline_entry found = {.kind = kind, .stack = stacks[0]};
    enum ttd_status status = fingerprint_stack(fingerprinter, definitions, stacks[0], &found.print);
    for (size_t i = 1; i < BASELINE_STACKS && status == TTD_OK; i++) {
        struct fingerprint other = {0, 0};
        if (stacks[i] == TTD_NONE)
            continue;
        status = fingerprint_stack(fingerprinter, definitions, stacks[i], &other);
        found.print = mix(found.print, other);
    }
    if (status == TTD_OK)
        *entry = found;
    return status;
}
