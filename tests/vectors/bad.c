/* SPDX-License-Identifier: MIT */
/* Files that are wrong in their chunks: headers, order, length. */
#include "vectors/rows.h"

#include <string.h>

#include "support/chunk_edit.h"

static size_t offset_of(const struct vector_file *file, size_t number)
{
    return chunk_edit_find(file->data, file->size, number);
}

static uint8_t *chunk_of(struct vector_file *file, size_t number)
{
    return file->data + offset_of(file, number);
}

/* Sets a field of a header and makes its hash right. */

static void set8(struct vector_file *file, size_t number, size_t field, uint8_t value)
{
    uint8_t *chunk = chunk_of(file, number);
    chunk[field] = value;
    chunk_edit_seal_header(chunk);
}

static void set16(struct vector_file *file, size_t number, size_t field, uint16_t value)
{
    uint8_t *chunk = chunk_of(file, number);
    ttd_put16(chunk + field, value);
    chunk_edit_seal_header(chunk);
}

static void set32(struct vector_file *file, size_t number, size_t field, uint32_t value)
{
    uint8_t *chunk = chunk_of(file, number);
    ttd_put32(chunk + field, value);
    chunk_edit_seal_header(chunk);
}

static void set64(struct vector_file *file, size_t number, size_t field, uint64_t value)
{
    uint8_t *chunk = chunk_of(file, number);
    ttd_put64(chunk + field, value);
    chunk_edit_seal_header(chunk);
}

static void nothing(struct vector_file *file)
{
    vector_resize(file, 0);
}

static void magic(struct vector_file *file)
{
    file->data[0] ^= 0x80;
}

static void magic_inside(struct vector_file *file)
{
    chunk_of(file, HEAPS)[TTD_HEADER_MAGIC] = 0;
}

static void header_hash(struct vector_file *file)
{
    chunk_of(file, STACKS)[TTD_HEADER_FIRST_RECORD] ^= 1;
}

static void payload_hash(struct vector_file *file)
{
    chunk_of(file, EVENTS)[TTD_HEADER_SIZE + 70] ^= 1;
}

static void padding(struct vector_file *file)
{
    chunk_of(file, HEAPS)[-1] = 1;
}

static void critical_kind(struct vector_file *file)
{
    set16(file, STACKS, TTD_HEADER_KIND, TTD_KIND_PRIVATE + 2);
    set8(file, STACKS, TTD_HEADER_FLAGS, TTD_CHUNK_CRITICAL);
}

static void critical_payload(struct vector_file *file)
{
    critical_kind(file);
    chunk_of(file, STACKS)[TTD_HEADER_SIZE] ^= 1;
}

static void raw_size_limit(struct vector_file *file)
{
    set8(file, EVENTS, TTD_HEADER_CODEC, TTD_CODEC_LZ4);
    set32(file, EVENTS, TTD_HEADER_RAW_SIZE, TTD_PAYLOAD_MAX + 1);
}

static void raw_size_differs(struct vector_file *file)
{
    set32(file, EVENTS, TTD_HEADER_RAW_SIZE,
          ttd_get32(chunk_of(file, EVENTS) + TTD_HEADER_RAW_SIZE) + 1);
}

static void raw_size_ratio(struct vector_file *file)
{
    set8(file, EVENTS, TTD_HEADER_CODEC, TTD_CODEC_LZ4);
    set32(file, EVENTS, TTD_HEADER_RAW_SIZE, 1u << 20);
}

static void item_count_bytes(struct vector_file *file)
{
    set32(file, EVENTS, TTD_HEADER_RECORD_COUNT,
          ttd_get32(chunk_of(file, EVENTS) + TTD_HEADER_RAW_SIZE) + 1);
}

static void record_count_unknown(struct vector_file *file)
{
    set16(file, STACKS, TTD_HEADER_KIND, TTD_KIND_PRIVATE + 2);
    set32(file, STACKS, TTD_HEADER_RECORD_COUNT, TTD_RECORDS_MAX);
}

static void first_kind(struct vector_file *file)
{
    set16(file, TRACE, TTD_HEADER_KIND, TTD_KIND_END);
    set8(file, TRACE, TTD_HEADER_FLAGS, 0);
}

static void missing(struct vector_file *file)
{
    size_t from = offset_of(file, STACKS);
    size_t to = offset_of(file, EVENTS);
    memmove(file->data + from, file->data + to, file->size - to);
    vector_resize(file, file->size - (to - from));
    for (size_t i = STACKS; i < END; i++)
        set64(file, i, TTD_HEADER_OFFSET, offset_of(file, i));
}

static void after_end(struct vector_file *file)
{
    size_t end = offset_of(file, END);
    size_t size = file->size;
    vector_resize(file, size + (size - end));
    memcpy(file->data + size, file->data + end, size - end);
    set64(file, END + 1, TTD_HEADER_NUMBER, END + 1);
    set64(file, END + 1, TTD_HEADER_OFFSET, size);
}

static void rubbish_after_end(struct vector_file *file)
{
    size_t size = file->size;
    vector_resize(file, size + 8);
    memcpy(file->data + size, "rubbish", 7);
}

static void cut_in_magic(struct vector_file *file)
{
    vector_resize(file, 7);
}

static void cut_in_first(struct vector_file *file)
{
    vector_resize(file, TTD_HEADER_SIZE + 1);
}

static void cut_in_header(struct vector_file *file)
{
    vector_resize(file, offset_of(file, MORE_EVENTS) + 40);
}

static void cut_in_payload(struct vector_file *file)
{
    vector_resize(file, offset_of(file, INDEX) - 8);
}

const struct vector vectors_bad[] = {
    REFUSED("bad-nothing", "an empty file", "R-8", TTD_ERROR_NOT_A_TRACE, TRACE, "magic",
            .damage = nothing),
    REFUSED("bad-magic", "the file's magic is wrong", "R-8", TTD_ERROR_NOT_A_TRACE, TRACE, "magic",
            .damage = magic, .verify_status = TTD_ERROR_CORRUPT, .verify_what = "magic"),
    BAD("magic-inside", "the magic of a later chunk is wrong", "R-8 R-28", HEAPS, "magic",
        .damage = magic_inside),
    BAD("header-hash", "a bit of a header flipped", "R-9", STACKS, "header checksum",
        .damage = header_hash),
    BAD("payload-hash", "a bit of a payload flipped", "R-18 R-73", EVENTS, "payload checksum",
        .damage = payload_hash),
    BAD("padding", "padding that is not zero", "R-18", THREADS, "padding is not zero",
        .damage = padding),
    BAD("kind-zero", "kind 0", "R-11", STACKS, "kind 0", HEADER(STACKS, TTD_HEADER_KIND, 2, 0)),
    BAD("flags", "a reserved flag of a chunk is set", "R-11", STACKS, "unknown flags of a chunk",
        HEADER(STACKS, TTD_HEADER_FLAGS, 1, 0x80)),
    BAD("reserved", "the reserved field of a header is not zero", "R-11", STACKS,
        "reserved field is not zero", HEADER(STACKS, TTD_HEADER_RESERVED, 4, 1)),
    BAD("stored-size-limit", "stored_size above its limit", "R-12 R-60", EVENTS,
        "payload exceeds its limit",
        HEADER(EVENTS, TTD_HEADER_STORED_SIZE, 4, TTD_PAYLOAD_MAX + 1)),
    BAD("raw-size-limit", "raw_size above its limit", "R-12 R-60", EVENTS,
        "payload exceeds its limit", .damage = raw_size_limit),
    BAD("raw-size-differs", "sizes of an uncompressed payload that differ", "R-12", EVENTS,
        "stored size of a raw payload", .damage = raw_size_differs),
    BAD("raw-size-ratio", "more raw bytes than an LZ4 block of that size can stand for", "R-12",
        EVENTS, "raw size of a compressed payload", .damage = raw_size_ratio),
    BAD("record-count-limit", "more records than a chunk can have", "R-12", EVENTS,
        "number of records", HEADER(EVENTS, TTD_HEADER_RECORD_COUNT, 4, TTD_RECORDS_MAX + 1)),
    BAD("record-count-bytes", "more records than bytes", "R-12", EVENTS, "number of records",
        .damage = item_count_bytes),
    BAD("record-count-unknown", "more records than bytes in a chunk of a kind that nobody knows",
        "R-12", STACKS, "number of records", .damage = record_count_unknown),
    BAD("record-overflow", "record numbers beyond 2^64", "R-11", EVENTS,
        "number of the first record", HEADER(EVENTS, TTD_HEADER_FIRST_RECORD, 8, UINT64_MAX)),
    BAD("other-trace", "a chunk of another trace", "R-13", STACKS, "chunk of another trace",
        HEADER(STACKS, TTD_HEADER_TRACE_ID, 8, 1)),
    BAD("trace-id-zero", "trace_id 0", "R-11", TRACE, "trace_id 0",
        HEADER(TRACE, TTD_HEADER_TRACE_ID, 8, 0)),
    BAD("moved", "a chunk that says to be elsewhere", "R-14", STACKS, "offset of a chunk",
        HEADER(STACKS, TTD_HEADER_OFFSET, 8, 8)),
    BAD("position-invalid", "an invalid position in a header", "R-11", EVENTS,
        "positions of a chunk", HEADER(EVENTS, TTD_HEADER_LAST_POSITION, 8, TTD_SEQUENCE_INVALID)),
    BAD("positions-swapped", "a first position after the last", "R-11", EVENTS,
        "positions of a chunk", HEADER(EVENTS, TTD_HEADER_FIRST_POSITION, 8, 2)),
    BAD("first-number", "the first chunk is not number 0", "R-24", TRACE, "first chunk",
        HEADER(TRACE, TTD_HEADER_NUMBER, 8, 1), .verify_status = TTD_ERROR_CORRUPT,
        .verify_what = "chunk missing"),
    BAD("first-kind", "the first chunk is not of kind trace", "R-24", TRACE, "first chunk",
        .damage = first_kind),
    BAD("chunk-missing", "a chunk was cut out", "R-16", STACKS, "chunk missing", .damage = missing),
    BAD("chunk-twice", "a chunk number a second time", "R-16", STACKS, "chunk number goes back",
        HEADER(STACKS, TTD_HEADER_NUMBER, 8, HEAPS)),
    BAD("events-missing", "event numbers with a gap", "R-17", MORE_EVENTS, "events missing",
        HEADER(MORE_EVENTS, TTD_HEADER_FIRST_RECORD, 8, 3)),
    BAD("events-again", "an event number a second time", "R-17", MORE_EVENTS,
        "event number goes back", HEADER(MORE_EVENTS, TTD_HEADER_FIRST_RECORD, 8, 1)),
    BAD("position-back", "events before those of the chunk before", "R-5 R-17", MORE_EVENTS,
        "position goes back", HEADER(MORE_EVENTS, TTD_HEADER_FIRST_POSITION, 8, 0)),
    BAD("after-end", "a chunk after the End chunk", "R-27", END + 1, "data after the End chunk",
        .damage = after_end),
    BAD("rubbish-after-end", "bytes after the End chunk", "R-27", END + 1, "magic",
        .damage = rubbish_after_end),
    REFUSED("bad-cut-in-magic", "cut within the file's magic", "R-8", TTD_ERROR_NOT_A_TRACE, TRACE,
            "magic", .damage = cut_in_magic),
    REFUSED("bad-cut-in-first", "cut within the first chunk", "R-15", TTD_ERROR_TRUNCATED, TRACE,
            "incomplete chunk", .damage = cut_in_first),
    REFUSED("bad-cut-in-header", "cut within a header", "R-15", TTD_ERROR_TRUNCATED, MORE_EVENTS,
            "incomplete header", .damage = cut_in_header),
    REFUSED("bad-cut-in-payload", "cut within a payload", "R-15", TTD_ERROR_TRUNCATED, MORE_EVENTS,
            "incomplete chunk", .damage = cut_in_payload),
    REFUSED("unsupported-major", "another major version", "R-10", TTD_ERROR_UNSUPPORTED, TRACE,
            "major version", HEADER(TRACE, TTD_HEADER_MAJOR, 2, 2)),
    REFUSED("unsupported-major-inside", "another major version in a later chunk", "R-10",
            TTD_ERROR_UNSUPPORTED, EVENTS, "major version", HEADER(EVENTS, TTD_HEADER_MAJOR, 2, 2)),
    REFUSED("unsupported-codec-zstd", "zstd, which this library does not have", "R-20",
            TTD_ERROR_UNSUPPORTED, EVENTS, "codec",
            HEADER(EVENTS, TTD_HEADER_CODEC, 1, TTD_CODEC_ZSTD)),
    REFUSED("unsupported-codec-unknown", "a codec that nobody knows", "R-20", TTD_ERROR_UNSUPPORTED,
            EVENTS, "codec", HEADER(EVENTS, TTD_HEADER_CODEC, 1, 200)),
    REFUSED("unsupported-critical-kind", "a critical chunk of a kind that nobody knows", "R-25",
            TTD_ERROR_UNSUPPORTED, STACKS, "critical chunk of an unknown kind",
            .damage = critical_kind),
    REFUSED("unsupported-critical-payload", "such a chunk whose payload is bad as well", "R-25",
            TTD_ERROR_UNSUPPORTED, STACKS, "critical chunk of an unknown kind",
            .damage = critical_payload),
    {.name = NULL, 0},
};
