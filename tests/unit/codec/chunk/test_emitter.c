/* SPDX-License-Identifier: MIT */
/* A sequence of chunks: their headers, indexes, End, and failures on the way. */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/memory.h"
#include "codec/chunk/emitter.h"
#include "codec/chunk/header.h"
#include "support/chaos.h"

#define TRACE_ID 77

static struct chaos_memory memory;
static struct ttd_allocator allocator;
static struct ttd_emitter emitter;
static struct ttd_buffer file;
static int output_error;

static int append(void *context, const void *data, size_t size)
{
    (void)context;
    if (output_error)
        return output_error;
    ttd_buffer_put(&file, data, size);
    return 0;
}

static void begin(void)
{
    chaos_memory_init(&memory, CHAOS_NEVER);
    allocator = chaos_allocator(&memory);
    output_error = 0;
    ttd_buffer_init(&file, &allocator);
    ttd_emitter_init(&emitter, &allocator, TRACE_ID, TTD_CODEC_LZ4, 0,
                     (struct ttd_emitter_sink){append, NULL});
}

static void finish(void)
{
    ttd_emitter_free(&emitter);
    ttd_buffer_free(&file);
    cr_assert_eq(memory.blocks, 0, "nothing is left allocated");
}

TestSuite(emitter, .init = begin, .fini = finish);

static enum ttd_status put(uint16_t kind, const void *raw, size_t size)
{
    const struct ttd_emission emission = {.kind = kind,
                                          .first_record = emitter.events,
                                          .record_count = size ? 1 : 0,
                                          .first_position = {emitter.number, 0},
                                          .last_position = {emitter.number, 1}};
    return ttd_emitter_put(&emitter, &emission, raw, size);
}

/* The header at that offset; it must be right. */
static struct ttd_header header_at(uint64_t offset)
{
    struct ttd_header header;
    const char *what = NULL;
    cr_assert_leq(offset + TTD_HEADER_SIZE, file.size);
    cr_assert_eq(ttd_header_decode(file.data + offset, &header, &what), TTD_OK, "%s", what);
    return header;
}

Test(emitter, fills_in_what_it_knows_of_a_chunk)
{
    cr_assert_eq(put(TTD_KIND_EVENTS, "abc", 3), TTD_OK);

    struct ttd_header header = header_at(0);
    cr_assert_eq(header.kind, TTD_KIND_EVENTS);
    cr_assert_eq(header.flags, TTD_CHUNK_CRITICAL);
    cr_assert_eq(header.codec, TTD_CODEC_RAW, "three bytes do not become fewer");
    cr_assert_eq(header.raw_size, 3);
    cr_assert_eq(header.trace_id, TRACE_ID);
    cr_assert_eq(header.record_count, 1);
    cr_assert_eq(header.payload_hash, ttd_hash("abc", 3));
}

Test(emitter, numbers_chunks_and_pads_them)
{
    put(TTD_KIND_STRINGS, "abc", 3);
    put(TTD_KIND_STRINGS, "defghijk", 8);

    cr_assert_eq(file.size, emitter.offset);
    cr_assert_eq(file.size, 2 * TTD_HEADER_SIZE + 8 + 8);
    cr_assert_eq(memcmp(file.data + TTD_HEADER_SIZE, "abc\0\0\0\0\0", 8), 0);
    struct ttd_header second = header_at(TTD_HEADER_SIZE + 8);
    cr_assert_eq(second.number, 1);
    cr_assert_eq(second.offset, TTD_HEADER_SIZE + 8);
}

Test(emitter, compresses_all_but_the_first_and_the_last_chunk)
{
    static const uint8_t zeros[1000];
    put(TTD_KIND_TRACE, zeros, sizeof zeros);
    uint64_t second = emitter.offset;
    put(TTD_KIND_STRINGS, zeros, sizeof zeros);

    cr_assert_eq(header_at(0).codec, TTD_CODEC_RAW);
    cr_assert_eq(header_at(second).codec, TTD_CODEC_LZ4);
    cr_assert_lt(header_at(second).stored_size, 100);
}

Test(emitter, copies_a_chunk_to_another_place)
{
    put(TTD_KIND_STRINGS, "abc", 3);
    struct ttd_header header = header_at(0);
    uint64_t offset = emitter.offset;

    cr_assert_eq(ttd_emitter_copy(&emitter, &header, (const uint8_t *)"abc"), TTD_OK);

    struct ttd_header copy = header_at(offset);
    cr_assert_eq(copy.number, 1);
    cr_assert_eq(copy.offset, offset);
    cr_assert_eq(copy.payload_hash, header.payload_hash);
}

Test(emitter, refuses_a_payload_beyond_the_limit)
{
    cr_assert_eq(put(TTD_KIND_STRINGS, "", (size_t)TTD_PAYLOAD_MAX + 1), TTD_ERROR_LIMIT);
    cr_assert_eq(emitter.error.status, TTD_ERROR_LIMIT);
    cr_assert_eq(file.size, 0);
}

Test(emitter, says_where_writing_failed)
{
    put(TTD_KIND_STRINGS, "abc", 3);
    output_error = ENOSPC;

    cr_assert_eq(put(TTD_KIND_STRINGS, "def", 3), TTD_ERROR_IO);

    cr_assert_eq(emitter.error.status, TTD_ERROR_IO);
    cr_assert_eq(emitter.error.system_error, ENOSPC);
    cr_assert_eq(emitter.error.offset, TTD_HEADER_SIZE + 8);
    cr_assert_eq(emitter.error.chunk, 1);
}

Test(emitter, says_where_memory_runs_out)
{
    memory.counter.fail_at = memory.counter.calls;
    cr_assert_eq(put(TTD_KIND_STRINGS, "abc", 3), TTD_ERROR_NO_MEMORY);
    cr_assert_eq(emitter.error.status, TTD_ERROR_NO_MEMORY);
}

/* The End that is at that offset. */
static struct ttd_end end_at(uint64_t offset)
{
    struct ttd_end end;
    struct ttd_cursor cursor =
        ttd_cursor_of(file.data + offset + TTD_HEADER_SIZE, TTD_END_PAYLOAD_SIZE);
    cr_assert_eq(header_at(offset).kind, TTD_KIND_END);
    ttd_decode_end(&cursor, &end);
    cr_assert_null(cursor.error);
    return end;
}

Test(emitter, ends_with_an_index_and_totals)
{
    const struct ttd_end given = {.reason = TTD_END_REASON_EXITED, .code = 3};
    put(TTD_KIND_STRINGS, "abc", 3);
    put(TTD_KIND_EVENTS, "def", 3);
    uint64_t index = emitter.offset;

    cr_assert_eq(ttd_emitter_end(&emitter, &given, 9), TTD_OK);

    cr_assert_eq(header_at(index).kind, TTD_KIND_INDEX);
    cr_assert_eq(header_at(index).record_count, 2);
    struct ttd_end end = end_at(file.size - TTD_END_CHUNK_SIZE);
    cr_assert_eq(end.reason, TTD_END_REASON_EXITED);
    cr_assert_eq(end.code, 3);
    cr_assert_eq(end.events, 1);
    cr_assert_eq(end.lost_events, 9);
    cr_assert_eq(end.chunks, 4);
    cr_assert_eq(end.index_offset, index);
}

/* An index is due after this many chunks; links lead to those 1, 2, 4, … indexes before. */
Test(emitter, links_each_index_to_earlier_ones)
{
    const struct ttd_end given = {.reason = TTD_END_REASON_EXITED};
    emitter.codec = TTD_CODEC_RAW;
    for (size_t i = 0; i < 4 * (size_t)TTD_INDEX_ENTRIES_MAX; i++)
        cr_assert_eq(put(TTD_KIND_STRINGS, "abc", 3), TTD_OK);
    cr_assert_eq(emitter.written_count, 4);
    cr_assert_eq(ttd_emitter_end(&emitter, &given, 0), TTD_OK);
    cr_assert_eq(emitter.written_count, 4, "there is nothing more to be indexed");

    struct ttd_header header = header_at(emitter.index_offset);
    struct ttd_index_links links;
    struct ttd_cursor cursor =
        ttd_cursor_of(file.data + emitter.index_offset + TTD_HEADER_SIZE, header.stored_size);
    ttd_decode_index_links(&cursor, &links, header.record_count);

    cr_assert_null(cursor.error);
    cr_assert_eq(header.record_count, TTD_INDEX_ENTRIES_MAX);
    cr_assert_eq(links.count, 3, "itself, 1 and 2 before");
    cr_assert_eq(links.links[0].offset, emitter.index_offset);
    cr_assert_eq(links.links[1].offset, emitter.written[2].offset);
    cr_assert_eq(links.links[2].offset, emitter.written[1].offset);
}
