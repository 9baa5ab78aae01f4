/* SPDX-License-Identifier: MIT */
/* Words of tracegen for snapshots. Lists have commas between their parts, and colons between the
 * numbers of a part; those at its end may be missing. */
#include <stdlib.h>
#include <string.h>

#include "support/programs/tracegen.h"

#define PARTS_MAX 65536
#define FIELDS    6

/* Splits the next part of a list; false at its end. */
static bool next_part(char **rest, const char *fields[FIELDS])
{
    char *part = *rest ? strsep(rest, ",") : NULL;
    for (int i = 0; i < FIELDS; i++) {
        const char *field = part ? strsep(&part, ":") : NULL;
        fields[i] = field ? field : i ? "" : NULL;
    }
    return fields[0];
}

static uint64_t number(const char *field)
{
    return strtoull(field, NULL, 0);
}

static void *room(size_t size)
{
    void *parts = calloc(PARTS_MAX, size);
    if (!parts)
        fail("no memory");
    return parts;
}

/* regions=KIND:BEGIN:SIZE:THREAD:MODULE:NAME,... */
static void write_regions(const struct line *from)
{
    struct ttd_region *regions = room(sizeof *regions);
    struct ttd_regions record = {.snapshot = (uint32_t)number_of(from, "snapshot", 1),
                                 .first = (uint32_t)number_of(from, "first", 1),
                                 .regions = regions};
    const char *fields[FIELDS];
    for (char *rest = text_of(from, "regions");
         record.count < PARTS_MAX && next_part(&rest, fields);)
        regions[record.count++] =
            (struct ttd_region){.kind = (enum ttd_region_kind)number(fields[0]),
                                .begin = number(fields[1]),
                                .size = number(fields[2]),
                                .thread = (ttd_id)number(fields[3]),
                                .module = (ttd_id)number(fields[4]),
                                .name = string_id(fields[5])};
    check(ttd_writer_regions(writer, &record));
    free(regions);
}

/* words=REGION:OFFSET:VALUE,... */
static void write_references(const struct line *from)
{
    struct ttd_reference *references = room(sizeof *references);
    struct ttd_references record = {.snapshot = (uint32_t)number_of(from, "snapshot", 1),
                                    .references = references};
    const char *fields[FIELDS];
    for (char *rest = text_of(from, "words"); record.count < PARTS_MAX && next_part(&rest, fields);)
        references[record.count++] = (struct ttd_reference){.region = (uint32_t)number(fields[0]),
                                                            .offset = number(fields[1]),
                                                            .value = number(fields[2])};
    check(ttd_writer_references(writer, &record));
    free(references);
}

/* classes=ADDRESS:NAME,... */
static void write_classes(const struct line *from)
{
    struct ttd_class *classes = room(sizeof *classes);
    struct ttd_classes record = {.snapshot = (uint32_t)number_of(from, "snapshot", 1),
                                 .classes = classes};
    const char *fields[FIELDS];
    for (char *rest = text_of(from, "classes");
         record.count < PARTS_MAX && next_part(&rest, fields);)
        classes[record.count++] = (struct ttd_class){number(fields[0]), string_id(fields[1])};
    check(ttd_writer_classes(writer, &record));
    free(classes);
}

/* headers=WORD,... */
static void write_block_headers(const struct line *from)
{
    uint64_t *headers = room(sizeof *headers);
    struct ttd_block_headers record = {.snapshot = (uint32_t)number_of(from, "snapshot", 1),
                                       .flags = (uint32_t)number_of(from, "flags", 0),
                                       .begin = number_of(from, "begin", 0),
                                       .headers = headers};
    const char *fields[FIELDS];
    for (char *rest = text_of(from, "headers");
         record.count < PARTS_MAX && next_part(&rest, fields);)
        headers[record.count++] = number(fields[0]);
    check(ttd_writer_block_headers(writer, &record));
    free(headers);
}

static void write_variable(const struct line *from)
{
    struct ttd_variable variable = {.module = id_of(from, "module", 1),
                                    .offset = number_of(from, "offset", 0),
                                    .size = number_of(from, "size", 0),
                                    .name = string_id(text_of(from, "name"))};
    check(ttd_writer_variable(writer, &variable));
}

/* addresses=CFA,... */
static void write_frames(const struct line *from)
{
    uint64_t *addresses = room(sizeof *addresses);
    struct ttd_frames frames = {.snapshot = (uint32_t)number_of(from, "snapshot", 1),
                                .thread = id_of(from, "thread", 1),
                                .stack = id_of(from, "stack", 0),
                                .addresses = addresses};
    const char *fields[FIELDS];
    for (char *rest = text_of(from, "addresses");
         frames.count < PARTS_MAX && next_part(&rest, fields);)
        addresses[frames.count++] = number(fields[0]);
    check(ttd_writer_frames(writer, &frames));
    free(addresses);
}

static void write_snapshot(const struct line *from)
{
    struct ttd_snapshot snapshot = {
        .number = (uint32_t)number_of(from, "number", 1),
        .position = position_of(from, "position"),
        .wall_time = number_of(from, "wall", 0),
        .duration = number_of(from, "duration", 0),
        .contents = (uint32_t)number_of(from, "contents", TTD_SNAPSHOT_REFERENCES),
        .reason = (uint32_t)number_of(from, "reason", TTD_SNAPSHOT_EXIT),
        .flags = (uint32_t)number_of(from, "flags", TTD_SNAPSHOT_STOPPED),
        .missing = number_of(from, "missing", 0),
        .thread = id_of(from, "thread", 1)};
    check(ttd_writer_snapshot(writer, &snapshot));
}

/* registers=NUMBER:VALUE,... */
static void write_fatal_signal(const struct line *from)
{
    struct ttd_register registers[TTD_REGISTERS_MAX];
    struct ttd_fatal_signal signal = {.position = position_of(from, "position"),
                                      .wall_time = number_of(from, "wall", 0),
                                      .thread = id_of(from, "thread", 1),
                                      .stack = id_of(from, "stack", 0),
                                      .signal = (uint32_t)number_of(from, "signal", 11),
                                      .code = strtoll(text_of(from, "code"), NULL, 0),
                                      .address = number_of(from, "address", 0),
                                      .snapshot = (uint32_t)number_of(from, "snapshot", 0),
                                      .registers = registers};
    const char *fields[FIELDS];
    for (char *rest = text_of(from, "registers");
         signal.count < TTD_REGISTERS_MAX && next_part(&rest, fields);)
        registers[signal.count++] =
            (struct ttd_register){(uint32_t)number(fields[0]), number(fields[1])};
    check(ttd_writer_fatal_signal(writer, &signal));
}

const struct word snapshot_words[] = {
    {"regions", write_regions},
    {"references", write_references},
    {"block_headers", write_block_headers},
    {"classes", write_classes},
    {"variable", write_variable},
    {"frames", write_frames},
    {"snapshot", write_snapshot},
    {"fatal", write_fatal_signal},
    {NULL, NULL},
};
