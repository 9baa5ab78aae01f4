/* SPDX-License-Identifier: MIT */
/* Files that are wrong in their chunks: headers, order, length. */
#include "vectors/edit.h"

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

static void major(struct vector_file *file)
{
    set16(file, TRACE, TTD_HEADER_MAJOR, 2);
}

static void major_inside(struct vector_file *file)
{
    set16(file, EVENTS, TTD_HEADER_MAJOR, 2);
}

static void codec_zstd(struct vector_file *file)
{
    set8(file, EVENTS, TTD_HEADER_CODEC, TTD_CODEC_ZSTD);
}

static void codec_unknown(struct vector_file *file)
{
    set8(file, EVENTS, TTD_HEADER_CODEC, 200);
}

static void critical_kind(struct vector_file *file)
{
    set16(file, STACKS, TTD_HEADER_KIND, TTD_KIND_PRIVATE + 2);
    set8(file, STACKS, TTD_HEADER_FLAGS, TTD_CHUNK_CRITICAL);
}

static void kind_zero(struct vector_file *file)
{
    set16(file, STACKS, TTD_HEADER_KIND, 0);
}

static void flags(struct vector_file *file)
{
    set8(file, STACKS, TTD_HEADER_FLAGS, 0x80);
}

static void reserved(struct vector_file *file)
{
    set32(file, STACKS, TTD_HEADER_RESERVED, 1);
}

static void stored_size_limit(struct vector_file *file)
{
    set32(file, EVENTS, TTD_HEADER_STORED_SIZE, TTD_PAYLOAD_MAX + 1);
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

static void item_count_limit(struct vector_file *file)
{
    set32(file, EVENTS, TTD_HEADER_RECORD_COUNT, TTD_RECORDS_MAX + 1);
}

static void item_count_bytes(struct vector_file *file)
{
    set32(file, EVENTS, TTD_HEADER_RECORD_COUNT,
          ttd_get32(chunk_of(file, EVENTS) + TTD_HEADER_RAW_SIZE) + 1);
}

static void item_overflow(struct vector_file *file)
{
    set64(file, EVENTS, TTD_HEADER_FIRST_RECORD, UINT64_MAX);
}

static void other_trace(struct vector_file *file)
{
    set64(file, STACKS, TTD_HEADER_TRACE_ID, 1);
}

static void trace_id_zero(struct vector_file *file)
{
    set64(file, TRACE, TTD_HEADER_TRACE_ID, 0);
}

static void moved(struct vector_file *file)
{
    set64(file, STACKS, TTD_HEADER_OFFSET, 8);
}

static void position_invalid(struct vector_file *file)
{
    set64(file, EVENTS, TTD_HEADER_LAST_POSITION, TTD_SEQUENCE_INVALID);
}

static void positions_swapped(struct vector_file *file)
{
    set64(file, EVENTS, TTD_HEADER_FIRST_POSITION, 2);
}

static void first_number(struct vector_file *file)
{
    set64(file, TRACE, TTD_HEADER_NUMBER, 1);
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

static void twice(struct vector_file *file)
{
    set64(file, STACKS, TTD_HEADER_NUMBER, HEAPS);
}

static void events_missing(struct vector_file *file)
{
    set64(file, MORE_EVENTS, TTD_HEADER_FIRST_RECORD, 3);
}

static void events_again(struct vector_file *file)
{
    set64(file, MORE_EVENTS, TTD_HEADER_FIRST_RECORD, 1);
}

static void position_back(struct vector_file *file)
{
    set64(file, MORE_EVENTS, TTD_HEADER_FIRST_POSITION, 0);
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
    {"bad-nothing", "an empty file", "R-8", nothing, NULL, TTD_ERROR_NOT_A_TRACE, TRACE, "magic", 0,
     NULL, 0},
    {"bad-magic", "the file's magic is wrong", "R-8", magic, NULL, TTD_ERROR_NOT_A_TRACE, TRACE,
     "magic", TTD_ERROR_CORRUPT, "magic", 0},
    {"bad-magic-inside", "the magic of a later chunk is wrong", "R-8 R-28", magic_inside, NULL,
     TTD_ERROR_CORRUPT, HEAPS, "magic", 0, NULL, 0},
    {"bad-header-hash", "a bit of a header flipped", "R-9", header_hash, NULL, TTD_ERROR_CORRUPT,
     STACKS, "header checksum", 0, NULL, 0},
    {"bad-payload-hash", "a bit of a payload flipped", "R-18 R-73", payload_hash, NULL,
     TTD_ERROR_CORRUPT, EVENTS, "payload checksum", 0, NULL, 0},
    {"bad-padding", "padding that is not zero", "R-18", padding, NULL, TTD_ERROR_CORRUPT, THREADS,
     "padding is not zero", 0, NULL, 0},
    {"bad-kind-zero", "kind 0", "R-11", kind_zero, NULL, TTD_ERROR_CORRUPT, STACKS, "kind 0", 0,
     NULL, 0},
    {"bad-flags", "a reserved flag of a chunk is set", "R-11", flags, NULL, TTD_ERROR_CORRUPT,
     STACKS, "unknown flags of a chunk", 0, NULL, 0},
    {"bad-reserved", "the reserved field of a header is not zero", "R-11", reserved, NULL,
     TTD_ERROR_CORRUPT, STACKS, "reserved field is not zero", 0, NULL, 0},
    {"bad-stored-size-limit", "stored_size above its limit", "R-12 R-60", stored_size_limit, NULL,
     TTD_ERROR_CORRUPT, EVENTS, "payload exceeds its limit", 0, NULL, 0},
    {"bad-raw-size-limit", "raw_size above its limit", "R-12 R-60", raw_size_limit, NULL,
     TTD_ERROR_CORRUPT, EVENTS, "payload exceeds its limit", 0, NULL, 0},
    {"bad-raw-size-differs", "sizes of an uncompressed payload that differ", "R-12",
     raw_size_differs, NULL, TTD_ERROR_CORRUPT, EVENTS, "stored size of a raw payload", 0, NULL, 0},
    {"bad-raw-size-ratio", "more raw bytes than an LZ4 block of that size can stand for", "R-12",
     raw_size_ratio, NULL, TTD_ERROR_CORRUPT, EVENTS, "raw size of a compressed payload", 0, NULL,
     0},
    {"bad-item-count-limit", "more items than a chunk can have", "R-12", item_count_limit, NULL,
     TTD_ERROR_CORRUPT, EVENTS, "number of items", 0, NULL, 0},
    {"bad-item-count-bytes", "more items than bytes", "R-12", item_count_bytes, NULL,
     TTD_ERROR_CORRUPT, EVENTS, "number of items", 0, NULL, 0},
    {"bad-item-overflow", "item numbers beyond 2^64", "R-11", item_overflow, NULL,
     TTD_ERROR_CORRUPT, EVENTS, "number of the first item", 0, NULL, 0},
    {"bad-other-trace", "a chunk of another trace", "R-13", other_trace, NULL, TTD_ERROR_CORRUPT,
     STACKS, "chunk of another trace", 0, NULL, 0},
    {"bad-trace-id-zero", "trace_id 0", "R-11", trace_id_zero, NULL, TTD_ERROR_CORRUPT, TRACE,
     "trace_id 0", 0, NULL, 0},
    {"bad-moved", "a chunk that says to be elsewhere", "R-14", moved, NULL, TTD_ERROR_CORRUPT,
     STACKS, "offset of a chunk", 0, NULL, 0},
    {"bad-position-invalid", "an invalid position in a header", "R-11", position_invalid, NULL,
     TTD_ERROR_CORRUPT, EVENTS, "positions of a chunk", 0, NULL, 0},
    {"bad-positions-swapped", "a first position after the last", "R-11", positions_swapped, NULL,
     TTD_ERROR_CORRUPT, EVENTS, "positions of a chunk", 0, NULL, 0},
    {"bad-first-number", "the first chunk is not number 0", "R-24", first_number, NULL,
     TTD_ERROR_CORRUPT, TRACE, "first chunk", TTD_ERROR_CORRUPT, "chunk missing", 0},
    {"bad-first-kind", "the first chunk is not of kind trace", "R-24", first_kind, NULL,
     TTD_ERROR_CORRUPT, TRACE, "first chunk", 0, NULL, 0},
    {"bad-chunk-missing", "a chunk was cut out", "R-16", missing, NULL, TTD_ERROR_CORRUPT, STACKS,
     "chunk missing", 0, NULL, 0},
    {"bad-chunk-twice", "a chunk number a second time", "R-16", twice, NULL, TTD_ERROR_CORRUPT,
     STACKS, "chunk number goes back", 0, NULL, 0},
    {"bad-events-missing", "event numbers with a gap", "R-17", events_missing, NULL,
     TTD_ERROR_CORRUPT, MORE_EVENTS, "events missing", 0, NULL, 0},
    {"bad-events-again", "an event number a second time", "R-17", events_again, NULL,
     TTD_ERROR_CORRUPT, MORE_EVENTS, "event number goes back", 0, NULL, 0},
    {"bad-position-back", "events before those of the chunk before", "R-5 R-17", position_back,
     NULL, TTD_ERROR_CORRUPT, MORE_EVENTS, "position goes back", 0, NULL, 0},
    {"bad-after-end", "a chunk after the End chunk", "R-27", after_end, NULL, TTD_ERROR_CORRUPT,
     END + 1, "data after the End chunk", 0, NULL, 0},
    {"bad-rubbish-after-end", "bytes after the End chunk", "R-27", rubbish_after_end, NULL,
     TTD_ERROR_CORRUPT, END + 1, "magic", 0, NULL, 0},
    {"bad-cut-in-magic", "cut within the file's magic", "R-8", cut_in_magic, NULL,
     TTD_ERROR_NOT_A_TRACE, TRACE, "magic", 0, NULL, 0},
    {"bad-cut-in-first", "cut within the first chunk", "R-15", cut_in_first, NULL,
     TTD_ERROR_TRUNCATED, TRACE, "incomplete chunk", 0, NULL, 0},
    {"bad-cut-in-header", "cut within a header", "R-15", cut_in_header, NULL, TTD_ERROR_TRUNCATED,
     MORE_EVENTS, "incomplete header", 0, NULL, 0},
    {"bad-cut-in-payload", "cut within a payload", "R-15", cut_in_payload, NULL,
     TTD_ERROR_TRUNCATED, MORE_EVENTS, "incomplete chunk", 0, NULL, 0},
    {"unsupported-major", "another major version", "R-10", major, NULL, TTD_ERROR_UNSUPPORTED,
     TRACE, "major version", 0, NULL, 0},
    {"unsupported-major-inside", "another major version in a later chunk", "R-10", major_inside,
     NULL, TTD_ERROR_UNSUPPORTED, EVENTS, "major version", 0, NULL, 0},
    {"unsupported-codec-zstd", "zstd, which this library does not have", "R-20", codec_zstd, NULL,
     TTD_ERROR_UNSUPPORTED, EVENTS, "codec", 0, NULL, 0},
    {"unsupported-codec-unknown", "a codec that nobody knows", "R-20", codec_unknown, NULL,
     TTD_ERROR_UNSUPPORTED, EVENTS, "codec", 0, NULL, 0},
    {"unsupported-critical-kind", "a critical chunk of a kind that nobody knows", "R-25",
     critical_kind, NULL, TTD_ERROR_UNSUPPORTED, STACKS, "critical chunk of an unknown kind", 0,
     NULL, 0},
    {.name = NULL, 0},
};
