/* SPDX-License-Identifier: MIT */
/* Files with a snapshot, or a part of one, that is not as it must be. */
#include "vectors/rows.h"

#include "support/chunk_edit.h"

/** 2^31 and 2^32 as varints. */
#define TWO_31 0x80, 0x80, 0x80, 0x80, 8
#define TWO_32 0x80, 0x80, 0x80, 0x80, 0x10

/** rotr3(-8) as a varint: the offset of the same word again. */
#define SAME_WORD 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F

/** -2 modulo 2^64 as a varint. */
#define MINUS_2 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1

#define REGIONS(snapshot, first) U32(snapshot), U32(first)

#define REFERENCES(snapshot, reserved, regions, offsets, values)                                   \
    U32(snapshot), U32(reserved), U32(regions), U32(offsets), U32(values)

#define PACKED(snapshot, reserved, runs, offsets, values, low)                                     \
    U32(snapshot), U32(reserved), U32(runs), U32(offsets), U32(values), U32(low)

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
    struct ttd_reference references[] = {{.region = 1, .offset = 8, .value = 0x1010},
                                         {.region = 2, .offset = 0, .value = 0x1010}};
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

/* The first word of all once more, as a reference of the older kind. */
static void references_of_both_kinds(struct vector_file *file)
{
    static const uint8_t payload[] = {REFERENCES(1, 0, 1, 1, 1), 1, 1, 2};
    ttd_put16(vector_chunk(file, MORE_REFERENCES) + TTD_HEADER_KIND, TTD_KIND_REFERENCES);
    vector_set_payload(file, MORE_REFERENCES, payload, sizeof payload);
}

const struct vector vectors_bad_snapshots[] = {
    /* Snapshots: number, position, wall time, duration, contents, reason, flags, missing, thread,
     * regions, references. */
    BAD("snapshot-zero", "a snapshot of number 0", "R-78", HEAPS, "number of a snapshot",
        RECORD(TTD_KIND_SNAPSHOTS, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)),
    BAD("snapshot-position", "a snapshot at the invalid position", "R-66", HEAPS,
        "invalid position",
        RECORD(TTD_KIND_SNAPSHOTS, 0, 1, INVALID, INVALID, 0, 0, 1, 0, 0, 0, 0, 0, 0)),
    BAD("snapshot-empty", "a snapshot of nothing", "R-78", HEAPS, "contents of a snapshot",
        RECORD(TTD_KIND_SNAPSHOTS, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
    BAD("snapshot-contents", "a snapshot of a fourth thing", "R-78", HEAPS,
        "contents of a snapshot",
        RECORD(TTD_KIND_SNAPSHOTS, 0, 1, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0)),
    BAD("snapshot-reason", "a reason of 2^31", "R-78", HEAPS, "reason of a snapshot",
        RECORD(TTD_KIND_SNAPSHOTS, 0, 1, 1, 0, 0, 0, 1, TWO_31, 0, 0, 0, 0, 0)),
    BAD("snapshot-flags", "a reserved flag of a snapshot", "R-78", HEAPS,
        "unknown flags of a snapshot",
        RECORD(TTD_KIND_SNAPSHOTS, 0, 1, 1, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0)),
    DOUBTFUL("snapshot-thread", "a thread of a snapshot that is not defined", "R-7",
             "undefined thread of a snapshot",
             RECORD(TTD_KIND_SNAPSHOTS, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 99, 0, 0)),
    /* Regions: snapshot, first; kind, begin, size, thread, module, name. */
    BAD("regions-snapshot-zero", "regions of snapshot 0", "R-81", HEAPS, "number of a snapshot",
        RECORD(TTD_KIND_REGIONS, 0, REGIONS(0, 1), 1, 2, 1, 0, 0, 0)),
    BAD("regions-first-zero", "a region of number 0", "R-81", HEAPS, "number of a region",
        RECORD(TTD_KIND_REGIONS, 0, REGIONS(1, 0), 1, 2, 1, 0, 0, 0)),
    BAD("regions-beyond", "a region of number 2^32", "R-81", HEAPS, "number of a region",
        RECORDS(2, TTD_KIND_REGIONS, 0, REGIONS(1u, 0xFFFFFFFFu), 1, 2, 1, 0, 0, 0, 1, 2, 1, 0, 0,
                0)),
    BAD("region-kind-zero", "a region of kind 0", "R-81", HEAPS, "kind of a region",
        RECORD(TTD_KIND_REGIONS, 0, REGIONS(1, 1), 0, 2, 1, 0, 0, 0)),
    BAD("region-kind", "a region of an eighth kind", "R-81", HEAPS, "value out of range",
        RECORD(TTD_KIND_REGIONS, 0, REGIONS(1, 1), 8, 2, 1, 0, 0, 0)),
    BAD("region-empty", "a region of no bytes", "R-81", HEAPS, "size of a region",
        RECORD(TTD_KIND_REGIONS, 0, REGIONS(1, 1), 1, 2, 0, 0, 0, 0)),
    /* zigzag(-1): it begins at the last address. */
    BAD("region-beyond", "a region that ends after 2^64", "R-81", HEAPS, "size of a region",
        RECORD(TTD_KIND_REGIONS, 0, REGIONS(1, 1), 1, 1, 2, 0, 0, 0)),
    BAD("region-registers", "registers that do not begin at 0", "R-81", HEAPS, "begin of registers",
        RECORD(TTD_KIND_REGIONS, 0, REGIONS(1, 1), 4, 16, 8, 0, 0, 0)),
    DOUBTFUL("region-thread", "a thread of a region that is not defined", "R-7",
             "undefined identifier of a region",
             RECORD(TTD_KIND_REGIONS, 0, REGIONS(1, 1), 3, 2, 1, 99, 0, 0)),
    DOUBTFUL("region-module", "a module of a region that is not defined", "R-7",
             "undefined identifier of a region",
             RECORD(TTD_KIND_REGIONS, 0, REGIONS(1, 1), 2, 2, 1, 0, 99, 0)),
    DOUBTFUL("region-name", "a name of a region that is not defined", "R-7",
             "undefined identifier of a region",
             RECORD(TTD_KIND_REGIONS, 0, REGIONS(1, 1), 2, 2, 1, 0, 0, 99)),
    DOUBTFUL("regions-order", "a second region without a first one", "R-82", "order of regions",
             RECORD(TTD_KIND_REGIONS, 0, REGIONS(1, 2), 1, 2, 1, 0, 0, 0)),
    /* References: snapshot, reserved, sizes of columns; region, offset, value. */
    BAD("references-snapshot-zero", "references of snapshot 0", "R-83", HEAPS,
        "number of a snapshot", RECORD(TTD_KIND_REFERENCES, 0, REFERENCES(0, 0, 1, 1, 1), 1, 0, 2)),
    BAD("references-reserved", "the reserved field of references", "R-83", HEAPS,
        "reserved field is not zero",
        RECORD(TTD_KIND_REFERENCES, 0, REFERENCES(1, 1, 1, 1, 1), 1, 0, 2)),
    BAD("references-column", "a column of more references than there are", "R-22", HEAPS,
        "bytes left over in the payload",
        RECORD(TTD_KIND_REFERENCES, 0, REFERENCES(1, 0, 1, 1, 2), 1, 0, 2, 2)),
    BAD("references-order", "two references of the same word", "R-83", HEAPS, "order of references",
        RECORDS(2, TTD_KIND_REFERENCES, 0, REFERENCES(1, 0, 2, 10, 2), 1, 0, 1, SAME_WORD, 2, 2)),
    BAD("references-fall", "from region 5 to region 3, by a sum modulo 2^64", "R-83", HEAPS,
        "order of references",
        RECORDS(2, TTD_KIND_REFERENCES, 0, REFERENCES(1, 0, 11, 2, 2), 5, MINUS_2, 1, 0, 2, 2)),
    BAD("reference-region-zero", "a word in region 0", "R-83", HEAPS, "region of a reference",
        RECORD(TTD_KIND_REFERENCES, 0, REFERENCES(1, 0, 1, 1, 1), 0, 0, 2)),
    BAD("reference-region", "a word in region 2^32", "R-83", HEAPS, "region of a reference",
        RECORD(TTD_KIND_REFERENCES, 0, REFERENCES(1, 0, 5, 1, 1), TWO_32, 0, 2)),
    BAD("reference-value", "a word that is 0", "R-83", HEAPS, "value of a reference",
        RECORD(TTD_KIND_REFERENCES, 0, REFERENCES(1, 0, 1, 1, 1), 1, 0, 0)),
    DOUBTFUL("reference-undefined", "a word in a region that is not there", "R-84",
             "undefined region of a reference",
             RECORD(TTD_KIND_REFERENCES, 0, REFERENCES(1, 0, 1, 1, 1), 1, 0, 2)),
    DOUBTFUL("references-continued",
             "references that go back from one chunk to the next; only verify looks there", "R-84",
             "order of references", .write = write_two,
             PAYLOAD(MORE_REFERENCES, TTD_PACKED_REFERENCES_COLUMNS, 1, 1)),
    /* Packed references: snapshot, reserved, sizes of columns; region and count, offset, value, low
     * bits. */
    BAD("packed-snapshot-zero", "packed references of snapshot 0", "R-92", HEAPS,
        "number of a snapshot",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(0, 0, 2, 1, 1, 0), 1, 1, 0, 4)),
    BAD("packed-reserved", "the reserved field of packed references", "R-92", HEAPS,
        "reserved field is not zero",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 1, 2, 1, 1, 0), 1, 1, 0, 4)),
    BAD("packed-column", "a column of more packed references than there are", "R-22", HEAPS,
        "bytes left over in the payload",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 2, 1, 2, 0), 1, 1, 0, 4, 4)),
    BAD("packed-region-zero", "a run of words in region 0", "R-92", HEAPS, "region of a reference",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 2, 1, 1, 0), 0, 1, 0, 4)),
    BAD("packed-region", "a run of words in region 2^32", "R-92", HEAPS, "region of a reference",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 6, 1, 1, 0), TWO_32, 1, 0, 4)),
    BAD("packed-run-empty", "a run of no words", "R-92", HEAPS, "number of references of a region",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 2, 1, 1, 0), 1, 0, 0, 4)),
    BAD("packed-run", "a run of more words than there are", "R-92", HEAPS,
        "number of references of a region",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 2, 1, 1, 0), 1, 2, 0, 4)),
    BAD("packed-run-wide", "a run of 2^64 - 2 words", "R-92", HEAPS,
        "number of references of a region",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 11, 1, 1, 0), 1, MINUS_2, 0, 4)),
    BAD("packed-run-missing", "fewer words in runs than there are", "R-92 R-22", HEAPS,
        "payload too short",
        RECORDS(2, TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 2, 2, 2, 0), 1, 1, 0, 0, 4, 4)),
    BAD("packed-run-left", "a run behind the last word", "R-92 R-22", HEAPS,
        "bytes left over in the payload",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 4, 1, 1, 0), 1, 1, 1, 1, 0, 4)),
    BAD("packed-run-again", "a second run of a region", "R-92", HEAPS, "region of a reference",
        RECORDS(2, TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 4, 2, 2, 0), 1, 1, 0, 1, 0, 0, 4,
                4)),
    BAD("packed-fall", "from region 5 to region 3, by a sum modulo 2^64", "R-92", HEAPS,
        "region of a reference",
        RECORDS(2, TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 13, 2, 2, 0), 5, 1, MINUS_2, 1, 0, 0,
                4, 4)),
    BAD("packed-order", "two packed references of the same word", "R-92", HEAPS,
        "order of references",
        RECORDS(2, TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 2, 10, 2, 0), 1, 2, 1, SAME_WORD, 4,
                4)),
    BAD("packed-value", "a packed word that is 0", "R-92", HEAPS, "value of a reference",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 2, 1, 1, 0), 1, 1, 0, 0)),
    /* zigzag(-1). */
    BAD("packed-value-wide", "a packed word of 2^64 and more", "R-92", HEAPS,
        "value of a reference",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 2, 1, 1, 0), 1, 1, 0, 2)),
    BAD("packed-low-zero", "low bits that are 0", "R-92", HEAPS, "value of a reference",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 2, 1, 1, 1), 1, 1, 0, 5, 0)),
    BAD("packed-low", "a fourth low bit", "R-92", HEAPS, "value of a reference",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 2, 1, 1, 1), 1, 1, 0, 5, 8)),
    BAD("packed-low-missing", "low bits that are not there", "R-92 R-22", HEAPS,
        "value of a reference",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 2, 1, 1, 0), 1, 1, 0, 5)),
    BAD("packed-low-left", "low bits behind those of the last word", "R-92 R-22", HEAPS,
        "bytes left over in the payload",
        RECORD(TTD_KIND_PACKED_REFERENCES, 0, PACKED(1, 0, 2, 1, 1, 1), 1, 1, 0, 4, 1)),
    DOUBTFUL("references-of-both-kinds",
             "references of the older kind that go back to words before packed ones", "R-84 R-92",
             "order of references", .write = write_two, .damage = references_of_both_kinds),
    DOUBTFUL("snapshot-part-late", "regions of a snapshot behind its record: those before count",
             "R-79", "part of a snapshot behind its end", .write = write_two,
             PAYLOAD(SECOND_REGIONS, TTD_REGIONS_SNAPSHOT, 1, 1)),
    DOUBTFUL("snapshot-again", "a number of two snapshots: the first counts", "R-79",
             "number of a snapshot", .write = write_two, PAYLOAD(SECOND_END, 0, 1, 1)),
    DOUBTFUL("snapshot-lacks", "a snapshot of more references than there are", "R-79",
             "number of parts of a snapshot", .write = write_two, PAYLOAD(FIRST_END, 11, 1, 3)),
    DOUBTFUL("snapshot-order", "a snapshot of a number below that of a part before", "R-79",
             "order of snapshots", .write = write_two, PAYLOAD(SECOND_END, 0, 1, 2)),
    /* Variables: module, offset, size, name. */
    BAD("variable-module", "a variable of no module", "R-85", HEAPS, "module of a variable",
        RECORD(TTD_KIND_VARIABLES, 0, 0, 2, 8, 1)),
    DOUBTFUL("variable-undefined", "a variable of a module that is not defined", "R-7",
             "undefined identifier of a variable", RECORD(TTD_KIND_VARIABLES, 0, 99, 2, 8, 1)),
    /* Frames: snapshot, thread, stack, count, addresses. */
    BAD("frames-snapshot-zero", "frames of snapshot 0", "R-86", HEAPS, "number of a snapshot",
        RECORD(TTD_KIND_FRAMES, 0, 0, 1, 0, 1, 2)),
    BAD("frames-count", "4097 addresses of frames", "R-86 R-60", HEAPS, "value out of range",
        RECORD(TTD_KIND_FRAMES, 0, 1, 1, 0, 0x81, 0x20, 2, 2, 2, 2)),
    DOUBTFUL("frames-stack", "frames of a stack that is not defined", "R-7",
             "undefined identifier of frames", RECORD(TTD_KIND_FRAMES, 0, 1, 1, 99, 1, 2)),
    /* Classes: snapshot, reserved; address, name. */
    BAD("classes-snapshot-zero", "classes of snapshot 0", "R-87", HEAPS, "number of a snapshot",
        RECORD(TTD_KIND_CLASSES, 0, U32(0), U32(0), 2, 1)),
    BAD("classes-reserved", "the reserved field of classes", "R-87", HEAPS,
        "reserved field is not zero", RECORD(TTD_KIND_CLASSES, 0, U32(1), U32(1), 2, 1)),
    DOUBTFUL("class-name", "a name of a class that is not defined", "R-7",
             "undefined name of a class", RECORD(TTD_KIND_CLASSES, 0, U32(1), U32(0), 2, 99)),
    /* Block headers: snapshot, flags, begin; header. */
    BAD("headers-snapshot-zero", "headers of blocks of snapshot 0", "R-93", HEAPS,
        "number of a snapshot",
        RECORD(TTD_KIND_BLOCK_HEADERS, 0, U32(0), U32(0), U32(8), U32(0), 0x21)),
    BAD("headers-flags", "an unknown flag of headers of blocks", "R-93", HEAPS,
        "flags of block headers",
        RECORD(TTD_KIND_BLOCK_HEADERS, 0, U32(1), U32(8), U32(8), U32(0), 0x21)),
    BAD("headers-derived", "a header that is derived, and not wrong", "R-93", HEAPS,
        "flags of block headers",
        RECORD(TTD_KIND_BLOCK_HEADERS, 0, U32(1), U32(4), U32(8), U32(0), 0x21)),
    BAD("headers-size-zero", "a header of no size before another one", "R-93", HEAPS,
        "size in a block header",
        RECORDS(2, TTD_KIND_BLOCK_HEADERS, 0, U32(1), U32(0), U32(8), U32(0), 0x0F, 0x21)),
    BAD("headers-wrap", "a header at 2^64", "R-93", HEAPS, "size in a block header",
        RECORDS(2, TTD_KIND_BLOCK_HEADERS, 0, U32(1), U32(0), U32(0xFFFFFFF0), U32(UINT32_MAX),
                0x10, 0x21)),
    /* Fatal signals: position, wall time, thread, stack, signal, code, address, snapshot, count,
     * registers. */
    BAD("signal-position", "a fatal signal at the invalid position", "R-66", HEAPS,
        "invalid position",
        RECORD(TTD_KIND_FATAL_SIGNALS, 0, INVALID, INVALID, 0, 1, 0, 11, 2, 0, 0, 0)),
    BAD("signal-zero", "a fatal signal of number 0", "R-88", HEAPS, "number of a signal",
        RECORD(TTD_KIND_FATAL_SIGNALS, 0, 1, 0, 0, 1, 0, 0, 2, 0, 0, 0)),
    BAD("signal-number", "a fatal signal of number 2^31", "R-88", HEAPS, "value out of range",
        RECORD(TTD_KIND_FATAL_SIGNALS, 0, 1, 0, 0, 1, 0, TWO_31, 2, 0, 0, 0)),
    BAD("signal-registers", "65 registers", "R-88 R-60", HEAPS, "value out of range",
        RECORD(TTD_KIND_FATAL_SIGNALS, 0, 1, 0, 0, 1, 0, 11, 2, 0, 0, 65, 0, 0)),
    DOUBTFUL("signal-stack", "a fatal signal in a stack that is not defined", "R-7",
             "undefined identifier of a fatal signal",
             RECORD(TTD_KIND_FATAL_SIGNALS, 0, 1, 0, 0, 1, 99, 11, 2, 0, 0, 0)),
    {.name = NULL}};
