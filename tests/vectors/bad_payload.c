/* SPDX-License-Identifier: MIT */
/* Files whose checksums are right and whose payloads are wrong. */
#include "vectors/rows.h"

#include <string.h>

#include "support/chunk_edit.h"

static uint8_t *payload_of(struct vector_file *file, size_t number)
{
    return file->data + chunk_edit_find(file->data, file->size, number) + TTD_HEADER_SIZE;
}

static void seal(struct vector_file *file, size_t number)
{
    size_t at = chunk_edit_find(file->data, file->size, number);
    chunk_edit_seal(file->data + at, file->size - at);
}

/* The strings chunk: size 6 and "malloc", one byte of padding. */

static void varint_overlong(struct vector_file *file)
{
    static const uint8_t bytes[] = {0x85, 0x00, 'm', 'a', 'l', 'l', 'o'};
    memcpy(payload_of(file, STRINGS), bytes, sizeof bytes);
    seal(file, STRINGS);
}

/* Ten bytes are enough, and the tenth has one bit. */

static void varint_long(struct vector_file *file)
{
    static const uint8_t bytes[] = {0x86, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                    0x80, 1,    'm',  'a',  'l',  'l',  'o',  'c'};
    vector_set_payload(file, STRINGS, bytes, sizeof bytes);
}

static void varint_large(struct vector_file *file)
{
    static const uint8_t bytes[] = {0x86, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                    0x80, 2,    'm',  'a',  'l',  'l',  'o',  'c'};
    vector_set_payload(file, STRINGS, bytes, sizeof bytes);
}

static void varint_endless(struct vector_file *file)
{
    memset(payload_of(file, STRINGS), 0xFF, 7);
    seal(file, STRINGS);
}

static void lz4_rubbish(struct vector_file *file)
{
    payload_of(file, EVENTS)[TTD_HEADER_CODEC - TTD_HEADER_SIZE] = TTD_CODEC_LZ4;
    memset(payload_of(file, EVENTS), 0xFF, 8);
    seal(file, EVENTS);
}

static void set_block(struct vector_file *file, const uint8_t *bytes, size_t size)
{
    vector_set_payload(file, EVENTS, bytes, size);
    uint8_t *chunk = vector_chunk(file, EVENTS);
    chunk[TTD_HEADER_CODEC] = TTD_CODEC_LZ4;
    chunk_edit_seal_header(chunk);
}

/* One literal, a match of 4 bytes, literals; as many bytes as it stands for. */

static void lz4_offset(struct vector_file *file)
{
    static const uint8_t bytes[] = {0x10, 9, 0, 0, 0xC0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    set_block(file, bytes, sizeof bytes);
}

static void lz4_end(struct vector_file *file)
{
    static const uint8_t bytes[] = {0x10, 9, 1, 0, 0x50, 1, 2, 3, 4, 5};
    set_block(file, bytes, sizeof bytes);
}

const struct vector vectors_bad_payload[] = {
    BAD("trace-pointer-size", "a pointer of 5 bytes", "R-54", TRACE, "pointer_size",
        PAYLOAD(TRACE, TTD_TRACE_POINTER_SIZE, 4, 5)),
    BAD("trace-time-unit", "time_unit 0", "R-54", TRACE, "time_unit 0",
        PAYLOAD(TRACE, TTD_TRACE_TIME_UNIT, 8, 0)),
    BAD("trace-flags", "a reserved flag of the trace is set", "R-54", TRACE,
        "unknown flags of the trace", PAYLOAD(TRACE, TTD_TRACE_FLAGS, 4, 0x10)),
    BAD("trace-reserved", "the trace's reserved field is not zero", "R-54", TRACE,
        "reserved field is not zero", PAYLOAD(TRACE, TTD_TRACE_RESERVED, 4, 1)),
    BAD("string-too-short", "a string that ends after its chunk", "R-22", STRINGS,
        "payload too short", PAYLOAD(STRINGS, 0, 1, 7)),
    BAD("string-trailing", "bytes after the last record", "R-22", STRINGS,
        "bytes left over in the payload", PAYLOAD(STRINGS, 0, 1, 5)),
    BAD("varint-overlong", "a varint that has a shorter form", "R-2", STRINGS, "overlong varint",
        .damage = varint_overlong),
    BAD("varint-long", "a varint of 11 bytes", "R-1", STRINGS, "varint exceeds 64 bits",
        .damage = varint_long),
    BAD("varint-large", "a varint whose tenth byte is 2", "R-1", STRINGS, "varint exceeds 64 bits",
        .damage = varint_large),
    BAD("varint-endless", "a varint that ends after its payload", "R-22", STRINGS,
        "payload too short", .damage = varint_endless),
    BAD("thread-action", "a thread record that is neither begin nor end", "R-37", THREADS,
        "action of a thread", PAYLOAD(THREADS, 0, 1, 3)),
    BAD("thread-id-zero", "a definition of id 0", "R-37", THREADS, "id of a thread",
        PAYLOAD(THREADS, 1, 1, 0)),
    DOUBTFUL("thread-id-gap", "ids that are not dense; only verify looks for that", "R-91",
             "order of threads", PAYLOAD(THREADS, 1, 1, 2)),
    DOUBTFUL("heap-name-undefined", "a string used and never defined; only verify looks for that",
             "R-6 R-7", "undefined name of a heap", PAYLOAD(HEAPS, 1, 1, 9)),
    BAD("lz4", "bytes that are no LZ4 block", "R-19", EVENTS, "compressed payload",
        .damage = lz4_rubbish),
    BAD("lz4-offset", "an LZ4 block with a match of offset 0", "R-19", EVENTS, "compressed payload",
        .damage = lz4_offset),
    BAD("lz4-end", "an LZ4 block whose last match is too near its end", "R-19", EVENTS,
        "compressed payload", .damage = lz4_end),
    BAD("end-events-max", "2^64 - 1 events", "R-57", END, "events of the end",
        PAYLOAD(END, TTD_END_PAYLOAD_EVENTS, 8, UINT64_MAX)),
    BAD("events-column-length", "a column longer than its payload", "R-38", EVENTS,
        "payload too short", PAYLOAD(EVENTS, TTD_EVENTS_LENGTHS, 4, 0xFFFFFFFF)),
    BAD("events-class-count", "more classes than there are bytes", "R-40 R-60", EVENTS,
        "number of classes", PAYLOAD(EVENTS, TTD_EVENTS_CLASS_COUNT, 4, 0x10000000)),
    BAD("events-shape-count", "more shapes than there are bytes", "R-40 R-60", EVENTS,
        "number of shapes", PAYLOAD(EVENTS, TTD_EVENTS_SHAPE_COUNT, 4, 0x10000000)),
    BAD("events-action", "an action that does not exist", "R-39", EVENTS, "action of an event",
        PAYLOAD(EVENTS, TTD_EVENTS_COLUMNS, 1, 9)),
    BAD("stacks-column-length", "a column longer than its payload", "R-35", STACKS,
        "payload too short", PAYLOAD(STACKS, TTD_STACKS_LENGTHS, 4, 0x7FFFFFFF)),
    DOUBTFUL("index-link-count",
             "more links than an index can have; an index is no part of reading", "R-55",
             "size of an index", PAYLOAD(INDEX, TTD_INDEX_LINK_COUNT, 4, 65)),
    DOUBTFUL("index-entry", "an entry that differs from its chunk; the chunk wins", "R-56",
             "entries of an index",
             PAYLOAD(INDEX, TTD_INDEX_LINKS + TTD_LINK_SIZE + TTD_HEADER_FIRST_RECORD, 1, 77)),
    DOUBTFUL("index-link", "a link to where no index is", "R-55", "links of an index",
             PAYLOAD(INDEX, TTD_INDEX_LINKS + TTD_LINK_OFFSET, 8, 8)),
    DOUBTFUL("index-position", "a link with the invalid position", "R-55 R-66", "links of an index",
             PAYLOAD(INDEX, TTD_INDEX_LINKS + TTD_LINK_POSITION, 8, TTD_SEQUENCE_INVALID)),
    BAD("end-events", "more events in the End chunk than in the file", "R-57", END,
        "number of events in the End chunk", PAYLOAD(END, TTD_END_PAYLOAD_EVENTS, 8, 5)),
    BAD("end-chunks", "a wrong number of chunks in the End chunk", "R-57", END,
        "number of chunks in the End chunk", PAYLOAD(END, TTD_END_PAYLOAD_CHUNKS, 8, 10)),
    DOUBTFUL("end-index", "a wrong index_offset in the End chunk", "R-56",
             "index_offset in the End chunk", PAYLOAD(END, TTD_END_PAYLOAD_INDEX_OFFSET, 8, 8)),
    DOUBTFUL("end-lost", "a wrong number of lost events in the End chunk", "R-57",
             "number of lost events in the End chunk",
             PAYLOAD(END, TTD_END_PAYLOAD_LOST_EVENTS, 8, 1)),
    BAD("end-reason", "a reason beyond its range", "R-57", END, "reason of the end",
        PAYLOAD(END, TTD_END_PAYLOAD_REASON, 4, 0x80000000)),
    {.name = NULL, 0},
};
