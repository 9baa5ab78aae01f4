/* SPDX-License-Identifier: MIT */
/* Files whose checksums are right and whose payloads are wrong. */
#include "vectors/edit.h"

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

static void set8(struct vector_file *file, size_t number, size_t at, uint8_t value)
{
    payload_of(file, number)[at] = value;
    seal(file, number);
}

static void set32(struct vector_file *file, size_t number, size_t at, uint32_t value)
{
    ttd_put32(payload_of(file, number) + at, value);
    seal(file, number);
}

static void set64(struct vector_file *file, size_t number, size_t at, uint64_t value)
{
    ttd_put64(payload_of(file, number) + at, value);
    seal(file, number);
}

static void trace_pointer_size(struct vector_file *file)
{
    set32(file, TRACE, TTD_TRACE_POINTER_SIZE, 5);
}

static void trace_time_unit(struct vector_file *file)
{
    set64(file, TRACE, TTD_TRACE_TIME_UNIT, 0);
}

static void trace_flags(struct vector_file *file)
{
    set32(file, TRACE, TTD_TRACE_FLAGS, 0x10);
}

static void trace_reserved(struct vector_file *file)
{
    set32(file, TRACE, TTD_TRACE_RESERVED, 1);
}

/* The strings chunk: size 6 and "malloc", one byte of padding. */

static void string_too_short(struct vector_file *file)
{
    set8(file, STRINGS, 0, 7);
}

static void string_trailing(struct vector_file *file)
{
    set8(file, STRINGS, 0, 5);
}

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

static void thread_action(struct vector_file *file)
{
    set8(file, THREADS, 0, 3);
}

static void thread_id_zero(struct vector_file *file)
{
    set8(file, THREADS, 1, 0);
}

static void thread_id_gap(struct vector_file *file)
{
    set8(file, THREADS, 1, 2);
}

static void heap_name_undefined(struct vector_file *file)
{
    set8(file, HEAPS, 1, 9);
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

static void end_events_max(struct vector_file *file)
{
    set64(file, END, TTD_END_PAYLOAD_EVENTS, UINT64_MAX);
}

static void events_column_length(struct vector_file *file)
{
    set32(file, EVENTS, TTD_EVENTS_LENGTHS, 0xFFFFFFFF);
}

static void events_shape_count(struct vector_file *file)
{
    set32(file, EVENTS, TTD_EVENTS_SHAPE_COUNT, 0x10000000);
}

static void events_class_count(struct vector_file *file)
{
    set32(file, EVENTS, TTD_EVENTS_CLASS_COUNT, 0x10000000);
}

static void events_action(struct vector_file *file)
{
    set8(file, EVENTS, TTD_EVENTS_COLUMNS, 9);
}

static void stacks_column_length(struct vector_file *file)
{
    set32(file, STACKS, TTD_STACKS_LENGTHS, 0x7FFFFFFF);
}

static void index_link_count(struct vector_file *file)
{
    set32(file, INDEX, TTD_INDEX_LINK_COUNT, 65);
}

static void index_entry(struct vector_file *file)
{
    set8(file, INDEX, TTD_INDEX_LINKS + TTD_LINK_SIZE + TTD_HEADER_FIRST_RECORD, 77);
}

static void index_link(struct vector_file *file)
{
    set64(file, INDEX, TTD_INDEX_LINKS + TTD_LINK_OFFSET, 8);
}

static void index_position(struct vector_file *file)
{
    set64(file, INDEX, TTD_INDEX_LINKS + TTD_LINK_POSITION, TTD_SEQUENCE_INVALID);
}

static void end_events(struct vector_file *file)
{
    set64(file, END, TTD_END_PAYLOAD_EVENTS, 5);
}

static void end_chunks(struct vector_file *file)
{
    set64(file, END, TTD_END_PAYLOAD_CHUNKS, 10);
}

static void end_index(struct vector_file *file)
{
    set64(file, END, TTD_END_PAYLOAD_INDEX_OFFSET, 8);
}

static void end_lost(struct vector_file *file)
{
    set64(file, END, TTD_END_PAYLOAD_LOST_EVENTS, 1);
}

static void end_reason(struct vector_file *file)
{
    set32(file, END, TTD_END_PAYLOAD_REASON, 0x80000000);
}

#define CORRUPT TTD_ERROR_CORRUPT

const struct vector vectors_bad_payload[] = {
    {"bad-trace-pointer-size", "a pointer of 5 bytes", "R-54", trace_pointer_size, NULL, CORRUPT,
     TRACE, "pointer_size", 0, NULL, 0},
    {"bad-trace-time-unit", "time_unit 0", "R-54", trace_time_unit, NULL, CORRUPT, TRACE,
     "time_unit 0", 0, NULL, 0},
    {"bad-trace-flags", "a reserved flag of the trace is set", "R-54", trace_flags, NULL, CORRUPT,
     TRACE, "unknown flags of the trace", 0, NULL, 0},
    {"bad-trace-reserved", "the trace's reserved field is not zero", "R-54", trace_reserved, NULL,
     CORRUPT, TRACE, "reserved field is not zero", 0, NULL, 0},
    {"bad-string-too-short", "a string that ends after its chunk", "R-22", string_too_short, NULL,
     CORRUPT, STRINGS, "payload too short", 0, NULL, 0},
    {"bad-string-trailing", "bytes after the last item", "R-22", string_trailing, NULL, CORRUPT,
     STRINGS, "bytes left over in the payload", 0, NULL, 0},
    {"bad-varint-overlong", "a varint that has a shorter form", "R-2", varint_overlong, NULL,
     CORRUPT, STRINGS, "overlong varint", 0, NULL, 0},
    {"bad-varint-long", "a varint of 11 bytes", "R-1", varint_long, NULL, CORRUPT, STRINGS,
     "varint exceeds 64 bits", 0, NULL, 0},
    {"bad-varint-large", "a varint whose tenth byte is 2", "R-1", varint_large, NULL, CORRUPT,
     STRINGS, "varint exceeds 64 bits", 0, NULL, 0},
    {"bad-varint-endless", "a varint that ends after its payload", "R-22", varint_endless, NULL,
     CORRUPT, STRINGS, "payload too short", 0, NULL, 0},
    {"bad-thread-action", "a thread record that is neither begin nor end", "R-37", thread_action,
     NULL, CORRUPT, THREADS, "action of a thread", 0, NULL, 0},
    {"bad-thread-id-zero", "a definition of id 0", "R-37", thread_id_zero, NULL, CORRUPT, THREADS,
     "id of a thread", 0, NULL, 0},
    {"bad-thread-id-gap", "ids that are not dense; only verify looks for that", "R-7",
     thread_id_gap, NULL, TTD_OK, VECTOR_NOWHERE, NULL, CORRUPT, "order of threads", 0},
    {"bad-heap-name-undefined", "a string used and never defined; only verify looks for that",
     "R-6 R-7", heap_name_undefined, NULL, TTD_OK, VECTOR_NOWHERE, NULL, CORRUPT,
     "undefined name of a heap", 0},
    {"bad-lz4", "bytes that are no LZ4 block", "R-19", lz4_rubbish, NULL, CORRUPT, EVENTS,
     "compressed payload", 0, NULL, 0},
    {"bad-lz4-offset", "an LZ4 block with a match of offset 0", "R-19", lz4_offset, NULL, CORRUPT,
     EVENTS, "compressed payload", 0, NULL, 0},
    {"bad-lz4-end", "an LZ4 block whose last match is too near its end", "R-19", lz4_end, NULL,
     CORRUPT, EVENTS, "compressed payload", 0, NULL, 0},
    {"bad-end-events-max", "2^64 - 1 events", "R-57", end_events_max, NULL, CORRUPT, END,
     "events of the end", 0, NULL, 0},
    {"bad-events-column-length", "a column longer than its payload", "R-38", events_column_length,
     NULL, CORRUPT, EVENTS, "payload too short", 0, NULL, 0},
    {"bad-events-class-count", "more classes than there are bytes", "R-40 R-60", events_class_count,
     NULL, CORRUPT, EVENTS, "number of classes", 0, NULL, 0},
    {"bad-events-shape-count", "more shapes than there are bytes", "R-40 R-60", events_shape_count,
     NULL, CORRUPT, EVENTS, "number of shapes", 0, NULL, 0},
    {"bad-events-action", "an action that does not exist", "R-39", events_action, NULL, CORRUPT,
     EVENTS, "action of an event", 0, NULL, 0},
    {"bad-stacks-column-length", "a column longer than its payload", "R-35", stacks_column_length,
     NULL, CORRUPT, STACKS, "payload too short", 0, NULL, 0},
    {"bad-index-link-count", "more links than an index can have; an index is no part of reading",
     "R-55", index_link_count, NULL, TTD_OK, VECTOR_NOWHERE, NULL, CORRUPT, "size of an index", 0},
    {"bad-index-entry", "an entry that differs from its chunk; the chunk wins", "R-56", index_entry,
     NULL, TTD_OK, VECTOR_NOWHERE, NULL, CORRUPT, "entries of an index", 0},
    {"bad-index-link", "a link to where no index is", "R-55", index_link, NULL, TTD_OK,
     VECTOR_NOWHERE, NULL, CORRUPT, "links of an index", 0},
    {"bad-index-position", "a link with the invalid position", "R-55 R-66", index_position, NULL,
     TTD_OK, VECTOR_NOWHERE, NULL, CORRUPT, "links of an index", 0},
    {"bad-end-events", "more events in the End chunk than in the file", "R-57", end_events, NULL,
     CORRUPT, END, "number of events in the End chunk", 0, NULL, 0},
    {"bad-end-chunks", "a wrong number of chunks in the End chunk", "R-57", end_chunks, NULL,
     CORRUPT, END, "number of chunks in the End chunk", 0, NULL, 0},
    {"bad-end-index", "a wrong index_offset in the End chunk", "R-56", end_index, NULL, TTD_OK,
     VECTOR_NOWHERE, NULL, CORRUPT, "index_offset in the End chunk", 0},
    {"bad-end-lost", "a wrong number of lost events in the End chunk", "R-57", end_lost, NULL,
     TTD_OK, VECTOR_NOWHERE, NULL, CORRUPT, "number of lost events in the End chunk", 0},
    {"bad-end-reason", "a reason beyond its range", "R-57", end_reason, NULL, CORRUPT, END,
     "reason of the end", 0, NULL, 0},
    {.name = NULL, 0},
};
