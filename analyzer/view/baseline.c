/* SPDX-License-Identifier: MIT */
#include "view/baseline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "heap/site_table.h"

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
