/* SPDX-License-Identifier: MIT */
/* Files with a snapshot, or a part of one, that is not as it must be. */
#include "vectors/items.h"

#include "support/chunk_edit.h"

/** 2^31 and 2^32 as varints. */
#define TWO_31 0x80, 0x80, 0x80, 0x80, 8
#define TWO_32 0x80, 0x80, 0x80, 0x80, 0x10

/* Snapshots: number, position, wall time, duration, contents, reason, flags, missing, thread,
 * regions, references. */
ITEM(snapshot_zero, TTD_KIND_SNAPSHOTS, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
ITEM(snapshot_position, TTD_KIND_SNAPSHOTS, 0, 1, INVALID, INVALID, 0, 0, 1, 0, 0, 0, 0, 0, 0)
ITEM(snapshot_empty, TTD_KIND_SNAPSHOTS, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
ITEM(snapshot_contents, TTD_KIND_SNAPSHOTS, 0, 1, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0)
ITEM(snapshot_reason, TTD_KIND_SNAPSHOTS, 0, 1, 1, 0, 0, 0, 1, TWO_31, 0, 0, 0, 0, 0)
ITEM(snapshot_flags, TTD_KIND_SNAPSHOTS, 0, 1, 1, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0)
ITEM(snapshot_thread, TTD_KIND_SNAPSHOTS, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 99, 0, 0)

/* Regions: snapshot, first; kind, begin, size, thread, module, name. */
#define REGIONS(snapshot, first) U32(snapshot), U32(first)
ITEM(regions_snapshot, TTD_KIND_REGIONS, 0, REGIONS(0, 1), 1, 2, 1, 0, 0, 0)
ITEM(regions_first, TTD_KIND_REGIONS, 0, REGIONS(1, 0), 1, 2, 1, 0, 0, 0)
ITEM(region_kind_zero, TTD_KIND_REGIONS, 0, REGIONS(1, 1), 0, 2, 1, 0, 0, 0)
ITEM(region_kind, TTD_KIND_REGIONS, 0, REGIONS(1, 1), 8, 2, 1, 0, 0, 0)
ITEM(region_empty, TTD_KIND_REGIONS, 0, REGIONS(1, 1), 1, 2, 0, 0, 0, 0)
/* zigzag(-1): it begins at the last address. */
ITEM(region_beyond, TTD_KIND_REGIONS, 0, REGIONS(1, 1), 1, 1, 2, 0, 0, 0)
ITEM(region_registers, TTD_KIND_REGIONS, 0, REGIONS(1, 1), 4, 16, 8, 0, 0, 0)
ITEM(region_thread, TTD_KIND_REGIONS, 0, REGIONS(1, 1), 3, 2, 1, 99, 0, 0)
ITEM(region_module, TTD_KIND_REGIONS, 0, REGIONS(1, 1), 2, 2, 1, 0, 99, 0)
ITEM(region_name, TTD_KIND_REGIONS, 0, REGIONS(1, 1), 2, 2, 1, 0, 0, 99)
ITEM(regions_order, TTD_KIND_REGIONS, 0, REGIONS(1, 2), 1, 2, 1, 0, 0, 0)

static void regions_beyond(struct vector_file *file)
{
    static const uint8_t payload[] = {REGIONS(1u, 0xFFFFFFFFu), 1, 2, 1, 0, 0, 0, 1, 2, 1, 0, 0, 0};
    ttd_put32(vector_chunk(file, HEAPS) + TTD_HEADER_RECORD_COUNT, 2);
    vector_replace(file, TTD_KIND_REGIONS, 0, payload, sizeof payload);
}

/* References: snapshot, reserved, sizes of columns; region, offset, value. */
#define REFERENCES(snapshot, reserved, regions, offsets, values)                                   \
    U32(snapshot), U32(reserved), U32(regions), U32(offsets), U32(values)
ITEM(references_snapshot, TTD_KIND_REFERENCES, 0, REFERENCES(0, 0, 1, 1, 1), 1, 0, 2)
ITEM(references_reserved, TTD_KIND_REFERENCES, 0, REFERENCES(1, 1, 1, 1, 1), 1, 0, 2)
ITEM(reference_region_zero, TTD_KIND_REFERENCES, 0, REFERENCES(1, 0, 1, 1, 1), 0, 0, 2)
ITEM(reference_region, TTD_KIND_REFERENCES, 0, REFERENCES(1, 0, 5, 1, 1), TWO_32, 0, 2)
ITEM(reference_value, TTD_KIND_REFERENCES, 0, REFERENCES(1, 0, 1, 1, 1), 1, 0, 0)
ITEM(reference_undefined, TTD_KIND_REFERENCES, 0, REFERENCES(1, 0, 1, 1, 1), 1, 0, 2)
ITEM(references_column, TTD_KIND_REFERENCES, 0, REFERENCES(1, 0, 1, 1, 2), 1, 0, 2, 2)

/* Both of the same word: rotr3(-8). */
static void references_order(struct vector_file *file)
{
    static const uint8_t payload[] = {REFERENCES(1, 0, 2, 10, 2),
                                      1,
                                      0,
                                      1,
                                      0xFF,
                                      0xFF,
                                      0xFF,
                                      0xFF,
                                      0xFF,
                                      0xFF,
                                      0xFF,
                                      0xFF,
                                      0x1F,
                                      2,
                                      2};
    ttd_put32(vector_chunk(file, HEAPS) + TTD_HEADER_RECORD_COUNT, 2);
    vector_replace(file, TTD_KIND_REFERENCES, 0, payload, sizeof payload);
}

/* Variables: module, offset, size, name. */
ITEM(variable_module, TTD_KIND_VARIABLES, 0, 0, 2, 8, 1)
ITEM(variable_undefined, TTD_KIND_VARIABLES, 0, 99, 2, 8, 1)

/* Frames: snapshot, thread, stack, count, addresses. */
ITEM(frames_snapshot, TTD_KIND_FRAMES, 0, 0, 1, 0, 1, 2)
ITEM(frames_count, TTD_KIND_FRAMES, 0, 1, 1, 0, 0x81, 0x20, 2, 2, 2, 2)
ITEM(frames_stack, TTD_KIND_FRAMES, 0, 1, 1, 99, 1, 2)

/* Classes: snapshot, reserved; address, name. */
ITEM(classes_snapshot, TTD_KIND_CLASSES, 0, U32(0), U32(0), 2, 1)
ITEM(classes_reserved, TTD_KIND_CLASSES, 0, U32(1), U32(1), 2, 1)
ITEM(class_name, TTD_KIND_CLASSES, 0, U32(1), U32(0), 2, 99)

/* Fatal signals: position, wall time, thread, stack, signal, code, address, snapshot, count,
 * registers. */
ITEM(signal_position, TTD_KIND_FATAL_SIGNALS, 0, INVALID, INVALID, 0, 1, 0, 11, 2, 0, 0, 0)
ITEM(signal_zero, TTD_KIND_FATAL_SIGNALS, 0, 1, 0, 0, 1, 0, 0, 2, 0, 0, 0)
ITEM(signal_number, TTD_KIND_FATAL_SIGNALS, 0, 1, 0, 0, 1, 0, TWO_31, 2, 0, 0, 0)
ITEM(signal_registers, TTD_KIND_FATAL_SIGNALS, 0, 1, 0, 0, 1, 0, 11, 2, 0, 0, 65, 0, 0)
ITEM(signal_stack, TTD_KIND_FATAL_SIGNALS, 0, 1, 0, 0, 1, 99, 11, 2, 0, 0, 0)

/* Chunks of the file that the following are made of, behind the one of the trace. */
enum {
    FIRST_REGIONS = 1,
    FIRST_REFERENCES,
    MORE_REFERENCES,
    FIRST_END,
    SECOND_REGIONS,
    SECOND_END
};

static void write_two(struct ttd_memory_output *memory)
{
    struct ttd_writer_options options = ttd_writer_options_default();
    options.codec = TTD_CODEC_RAW;
    struct ttd_writer *writer = vector_writer(memory, &options);
    struct ttd_region regions[] = {{.kind = TTD_REGION_HEAP, .begin = 0x1000, .size = 0x1000},
                                   {.kind = TTD_REGION_STACK, .begin = 0x4000, .size = 0x1000}};
    struct ttd_reference references[] = {{1, 8, 0x1010}, {2, 0, 0x1010}};
    struct ttd_snapshot snapshot = {
        .number = 1, .position = {1, 0}, .contents = TTD_SNAPSHOT_REFERENCES};
    vector_check(ttd_writer_regions(
        writer, &(struct ttd_regions){.snapshot = 1, .first = 1, .regions = regions, .count = 2}));
    vector_check(ttd_writer_references(
        writer, &(struct ttd_references){.snapshot = 1, .references = references, .count = 1}));
    vector_check(ttd_writer_references(
        writer, &(struct ttd_references){.snapshot = 1, .references = references + 1, .count = 1}));
    vector_check(ttd_writer_snapshot(writer, &snapshot));
    vector_check(ttd_writer_regions(
        writer, &(struct ttd_regions){.snapshot = 3, .first = 1, .regions = regions, .count = 2}));
    snapshot.number = 3;
    vector_check(ttd_writer_snapshot(writer, &snapshot));
    vector_close(writer);
}

/** Sets a byte of the payload of a chunk, and makes its checksums right. */
static void set(struct vector_file *file, size_t number, size_t at, uint8_t value)
{
    size_t chunk = chunk_edit_find(file->data, file->size, number);
    file->data[chunk + TTD_HEADER_SIZE + at] = value;
    chunk_edit_seal(file->data + chunk, file->size - chunk);
}

static void references_continued(struct vector_file *file)
{
    set(file, MORE_REFERENCES, TTD_REFERENCES_COLUMNS, 1);
}

static void region_twice(struct vector_file *file)
{
    set(file, SECOND_REGIONS, TTD_REGIONS_SNAPSHOT, 1);
}

static void snapshot_twice(struct vector_file *file)
{
    set(file, SECOND_END, 0, 1);
}

static void snapshot_lacks(struct vector_file *file)
{
    set(file, FIRST_END, 11, 3); /* the last byte, references */
}

static void snapshot_falls(struct vector_file *file)
{
    set(file, SECOND_END, 0, 2);
}

/** A bad file that reads well, and of which verify says first what is wrong. */
#define DOUBTFUL(name_, purpose_, requirements_, write_, damage_, what_)                           \
    {                                                                                              \
        .name = "bad-" name_, .purpose = purpose_, .requirements = requirements_, .write = write_, \
        .damage = damage_, .chunk = VECTOR_NOWHERE, .verify_status = TTD_ERROR_CORRUPT,            \
        .verify_what = what_                                                                       \
    }

const struct vector vectors_bad_snapshots[] = {
    BAD("snapshot-zero", "a snapshot of number 0", "R-78", snapshot_zero, HEAPS,
        "number of a snapshot"),
    BAD("snapshot-position", "a snapshot at the invalid position", "R-66", snapshot_position, HEAPS,
        "invalid position"),
    BAD("snapshot-empty", "a snapshot of nothing", "R-78", snapshot_empty, HEAPS,
        "contents of a snapshot"),
    BAD("snapshot-contents", "a snapshot of a fourth thing", "R-78", snapshot_contents, HEAPS,
        "contents of a snapshot"),
    BAD("snapshot-reason", "a reason of 2^31", "R-78", snapshot_reason, HEAPS,
        "reason of a snapshot"),
    BAD("snapshot-flags", "a reserved flag of a snapshot", "R-78", snapshot_flags, HEAPS,
        "unknown flags of a snapshot"),
    DOUBTFUL("snapshot-thread", "a thread of a snapshot that is not defined", "R-7", NULL,
             snapshot_thread, "undefined thread of a snapshot"),
    BAD("regions-snapshot-zero", "regions of snapshot 0", "R-81", regions_snapshot, HEAPS,
        "number of a snapshot"),
    BAD("regions-first-zero", "a region of number 0", "R-81", regions_first, HEAPS,
        "number of a region"),
    BAD("regions-beyond", "a region of number 2^32", "R-81", regions_beyond, HEAPS,
        "number of a region"),
    BAD("region-kind-zero", "a region of kind 0", "R-81", region_kind_zero, HEAPS,
        "kind of a region"),
    BAD("region-kind", "a region of an eighth kind", "R-81", region_kind, HEAPS,
        "value out of range"),
    BAD("region-empty", "a region of no bytes", "R-81", region_empty, HEAPS, "size of a region"),
    BAD("region-beyond", "a region that ends after 2^64", "R-81", region_beyond, HEAPS,
        "size of a region"),
    BAD("region-registers", "registers that do not begin at 0", "R-81", region_registers, HEAPS,
        "begin of registers"),
    DOUBTFUL("region-thread", "a thread of a region that is not defined", "R-7", NULL,
             region_thread, "undefined identifier of a region"),
    DOUBTFUL("region-module", "a module of a region that is not defined", "R-7", NULL,
             region_module, "undefined identifier of a region"),
    DOUBTFUL("region-name", "a name of a region that is not defined", "R-7", NULL, region_name,
             "undefined identifier of a region"),
    DOUBTFUL("regions-order", "a second region without a first one", "R-82", NULL, regions_order,
             "order of regions"),
    BAD("references-snapshot-zero", "references of snapshot 0", "R-83", references_snapshot, HEAPS,
        "number of a snapshot"),
    BAD("references-reserved", "the reserved field of references", "R-83", references_reserved,
        HEAPS, "reserved field is not zero"),
    BAD("references-column", "a column of more references than there are", "R-22",
        references_column, HEAPS, "bytes left over in the payload"),
    BAD("references-order", "two references of the same word", "R-83", references_order, HEAPS,
        "order of references"),
    BAD("reference-region-zero", "a word in region 0", "R-83", reference_region_zero, HEAPS,
        "region of a reference"),
    BAD("reference-region", "a word in region 2^32", "R-83", reference_region, HEAPS,
        "region of a reference"),
    BAD("reference-value", "a word that is 0", "R-83", reference_value, HEAPS,
        "value of a reference"),
    DOUBTFUL("reference-undefined", "a word in a region that is not there", "R-84", NULL,
             reference_undefined, "undefined region of a reference"),
    DOUBTFUL("references-continued",
             "references that go back from one chunk to the next; only verify looks there", "R-84",
             write_two, references_continued, "order of references"),
    DOUBTFUL("snapshot-part-late", "regions of a snapshot behind its record: those before count",
             "R-79", write_two, region_twice, "part of a snapshot behind its end"),
    DOUBTFUL("snapshot-again", "a number of two snapshots: the first counts", "R-79", write_two,
             snapshot_twice, "number of a snapshot"),
    DOUBTFUL("snapshot-lacks", "a snapshot of more references than there are", "R-79", write_two,
             snapshot_lacks, "number of parts of a snapshot"),
    DOUBTFUL("snapshot-order", "a snapshot of a number below that of a part before", "R-79",
             write_two, snapshot_falls, "order of snapshots"),
    BAD("variable-module", "a variable of no module", "R-85", variable_module, HEAPS,
        "module of a variable"),
    DOUBTFUL("variable-undefined", "a variable of a module that is not defined", "R-7", NULL,
             variable_undefined, "undefined identifier of a variable"),
    BAD("frames-snapshot-zero", "frames of snapshot 0", "R-86", frames_snapshot, HEAPS,
        "number of a snapshot"),
    BAD("frames-count", "4097 addresses of frames", "R-86 R-60", frames_count, HEAPS,
        "value out of range"),
    DOUBTFUL("frames-stack", "frames of a stack that is not defined", "R-7", NULL, frames_stack,
             "undefined identifier of frames"),
    BAD("classes-snapshot-zero", "classes of snapshot 0", "R-87", classes_snapshot, HEAPS,
        "number of a snapshot"),
    BAD("classes-reserved", "the reserved field of classes", "R-87", classes_reserved, HEAPS,
        "reserved field is not zero"),
    DOUBTFUL("class-name", "a name of a class that is not defined", "R-7", NULL, class_name,
             "undefined name of a class"),
    BAD("signal-position", "a fatal signal at the invalid position", "R-66", signal_position, HEAPS,
        "invalid position"),
    BAD("signal-zero", "a fatal signal of number 0", "R-88", signal_zero, HEAPS,
        "number of a signal"),
    BAD("signal-number", "a fatal signal of number 2^31", "R-88", signal_number, HEAPS,
        "value out of range"),
    BAD("signal-registers", "65 registers", "R-88 R-60", signal_registers, HEAPS,
        "value out of range"),
    DOUBTFUL("signal-stack", "a fatal signal in a stack that is not defined", "R-7", NULL,
             signal_stack, "undefined identifier of a fatal signal"),
    {.name = NULL}};
