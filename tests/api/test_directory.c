/* SPDX-License-Identifier: MIT */
/* A reader reads the headers of chunks that it passes over once, in however many passes; what it
 * returns is read in each, so that a file that changes in between is noticed. */
#include "api/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "read/read_internal.h"
#include "support/chunk_edit.h"

/** Memory whose reads are counted, and whose size may change. */
struct counted {
    const uint8_t *data;
    uint64_t size;
    size_t reads;
};

static int read_at(void *context, uint64_t offset, void *buffer, size_t size, size_t *got)
{
    struct counted *counted = context;
    uint64_t left = offset < counted->size ? counted->size - offset : 0;
    *got = left < size ? (size_t)left : size;
    memcpy(buffer, counted->data + (offset < counted->size ? offset : 0), *got);
    counted->reads++;
    return 0;
}

static int size_of(void *context, uint64_t *size)
{
    const struct counted *counted = context;
    *size = counted->size;
    return 0;
}

static struct ttd_reader *open_counted(struct counted *counted, bool tolerant)
{
    struct ttd_input input = {.context = counted, .read_at = read_at, .size = size_of};
    struct ttd_reader_options options = ttd_reader_options_default();
    struct ttd_reader *reader;
    options.tolerant = tolerant;
    cr_assert_eq(ttd_reader_open(&input, &options, NULL, &reader, NULL), TTD_OK);
    return reader;
}

/** Writes `count` chunks, each of a string or, every tenth, of an event. */
static struct counted write_chunks(struct ttd_memory_output *memory, uint64_t count)
{
    struct ttd_trace trace = fixture_trace();
    struct ttd_writer *writer = fixture_writer(memory, &trace, NULL);
    for (uint64_t i = 0; i < count; i++) {
        struct ttd_event event = {
            .action = TTD_ACTION_LOCK, .time_start = {1, 2 * i}, .time_end = {1, 2 * i + 1}};
        ttd_id id;
        if (i % 10 == 9)
            cr_assert_eq(ttd_writer_event(writer, &event), TTD_OK);
        else
            cr_assert_eq(ttd_writer_string(writer, "x", 1, &id), TTD_OK);
        cr_assert_eq(ttd_writer_flush(writer), TTD_OK);
    }
    fixture_close(writer);
    return (struct counted){.data = memory->data, .size = memory->size};
}

/** The records of a pass by their number, and the status that ended it. */
struct pass {
    size_t records;
    size_t losses;
    enum ttd_status status;
};

static struct pass run(struct ttd_reader *reader, uint32_t kinds)
{
    struct pass pass = {.records = 0};
    struct ttd_batch batch;
    cr_assert_eq(ttd_reader_rewind(reader, kinds), TTD_OK);
    while ((pass.status = ttd_reader_next(reader, &batch, NULL)) == TTD_OK) {
        pass.records += batch.synthetic ? 0 : batch.count;
        pass.losses += batch.synthetic;
    }
    return pass;
}

static size_t reads_of(struct counted *counted, struct ttd_reader *reader, uint32_t kinds,
                       size_t records)
{
    counted->reads = 0;
    struct pass pass = run(reader, kinds);
    cr_assert_eq(pass.status, TTD_END);
    cr_assert_eq(pass.losses, 0);
    cr_assert_eq(pass.records, records);
    return counted->reads;
}

/** Checks that a pass of this reader and one of a new one end alike. */
static void check_as_new(struct counted *counted, struct ttd_reader *reader, bool tolerant,
                         uint32_t kinds)
{
    struct ttd_reader *other = open_counted(counted, tolerant);
    struct pass pass = run(reader, kinds), expected = run(other, kinds);
    cr_assert(expected.status != TTD_END || expected.losses);
    cr_assert_eq(pass.status, expected.status);
    cr_assert_eq(pass.records, expected.records);
    cr_assert_eq(pass.losses, expected.losses);
    ttd_reader_close(other);
}

Test(directory, headers_are_read_once)
{
    struct ttd_memory_output memory;
    struct counted counted = write_chunks(&memory, 1000);
    struct ttd_reader *reader = open_counted(&counted, false);
    uint32_t events = TTD_KIND_BIT(TTD_KIND_EVENTS), strings = TTD_KIND_BIT(TTD_KIND_STRINGS);
    size_t first = reads_of(&counted, reader, events, 100);
    cr_assert_geq(first, 1000 + 100);
    /* A header and a payload of each chunk; the first one's header, and the end. */
    cr_assert_leq(reads_of(&counted, reader, events, 100), 2 * 100 + 4);
    cr_assert_leq(reads_of(&counted, reader, strings, 900), 2 * 900 + 4);
    cr_assert_leq(reads_of(&counted, reader, 0, 0), 4);
    cr_assert_geq(reads_of(&counted, reader, TTD_KINDS_ALL, 1002), 2 * 1000);
    /* A check rests on nothing that was read before it. */
    counted.reads = 0;
    cr_assert_eq(ttd_reader_rewind_checked(reader, 0), TTD_OK);
    struct ttd_batch batch;
    cr_assert_eq(ttd_reader_next(reader, &batch, NULL), TTD_END);
    cr_assert_geq(counted.reads, 2 * 1000);
    ttd_reader_close(reader);
    ttd_memory_output_free(&memory);
}

Test(directory, seeks_use_it)
{
    struct ttd_memory_output memory;
    struct counted counted = write_chunks(&memory, 1000);
    /* Without the End chunk, which tells where the index is, a seek hops. */
    counted.size -= TTD_HEADER_SIZE + TTD_END_PAYLOAD_SIZE;
    struct ttd_reader *reader = open_counted(&counted, false);
    run(reader, 0);
    counted.reads = 0;
    cr_assert_eq(ttd_reader_seek_event(reader, 77, NULL), TTD_OK);
    cr_assert_leq(counted.reads, 8);
    struct ttd_batch batch;
    ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_EVENTS));
    cr_assert_eq(ttd_reader_seek_event(reader, 77, NULL), TTD_OK);
    cr_assert_eq(ttd_reader_next(reader, &batch, NULL), TTD_OK);
    cr_assert_eq(batch.u.events[0].number, 77);
    ttd_reader_close(reader);
    ttd_memory_output_free(&memory);
}

/* A pass reads and checks every chunk that it returns. */
Test(directory, changed_chunk)
{
    uint32_t events = TTD_KIND_BIT(TTD_KIND_EVENTS);
    for (int tolerant = 0; tolerant < 2; tolerant++) {
        struct ttd_memory_output memory;
        struct counted counted = write_chunks(&memory, 100);
        size_t chunk = chunk_edit_find_kind(memory.data, memory.size, TTD_KIND_EVENTS);
        for (size_t i = 0; i < TTD_HEADER_SIZE + 4; i++) {
            struct ttd_reader *reader = open_counted(&counted, tolerant);
            cr_assert_eq(run(reader, events).records, 10);
            memory.data[chunk + i] ^= 1;
            check_as_new(&counted, reader, tolerant, events);
            memory.data[chunk + i] ^= 1;
            cr_assert_eq(run(reader, events).records, 10);
            ttd_reader_close(reader);
        }
        ttd_memory_output_free(&memory);
    }
}

/* Where a chunk that is returned is another than it was, or was damaged for a while, those behind
 * it are read again, too. */
Test(directory, rewritten_file)
{
    uint32_t events = TTD_KIND_BIT(TTD_KIND_EVENTS);
    for (int is_other = 0; is_other < 2; is_other++) {
        struct ttd_memory_output memory;
        struct counted counted = write_chunks(&memory, 100);
        struct ttd_reader *reader = open_counted(&counted, false);
        cr_assert_eq(run(reader, 0).status, TTD_END);
        uint8_t *chunk =
            memory.data + chunk_edit_find_kind(memory.data, memory.size, TTD_KIND_EVENTS);
        chunk[chunk_edit_size(chunk, TTD_HEADER_SIZE)] ^= 1;
        cr_assert_eq(run(reader, events).status, TTD_END, "it is passed over");
        chunk[TTD_HEADER_MINOR]++;
        if (is_other) {
            chunk_edit_seal_header(chunk);
        } else {
            cr_assert_eq(run(reader, events).status, TTD_ERROR_CORRUPT);
            chunk[TTD_HEADER_MINOR]--;
        }
        check_as_new(&counted, reader, false, events);
        ttd_reader_close(reader);
        ttd_memory_output_free(&memory);
    }
}

/* A file that is cut short after it was read ends as it does for who opens it then. */
Test(directory, file_that_shrinks)
{
    static const uint32_t kinds[] = {0, TTD_KIND_BIT(TTD_KIND_EVENTS), TTD_KINDS_ALL};
    struct ttd_memory_output memory;
    struct counted counted = write_chunks(&memory, 30);
    for (size_t i = 0; i < 3; i++) {
        for (int tolerant = 0; tolerant < 2; tolerant++) {
            for (size_t size = 512; size < memory.size; size += 24) {
                counted.size = memory.size;
                struct ttd_reader *reader = open_counted(&counted, tolerant);
                run(reader, 0);
                counted.size = size;
                struct ttd_reader *other = open_counted(&counted, tolerant);
                struct pass pass = run(reader, kinds[i]), expected = run(other, kinds[i]);
                cr_assert_eq(pass.status, expected.status, "%d bytes", (int)size);
                cr_assert_eq(pass.records, expected.records);
                cr_assert_eq(pass.losses, expected.losses);
                ttd_reader_close(other);
                ttd_reader_close(reader);
            }
        }
    }
    ttd_memory_output_free(&memory);
}

/* More chunks than the directory has room for are read as before. */
Test(directory, too_many_chunks)
{
    struct ttd_memory_output memory;
    size_t count = TTD_DIRECTORY_MAX + 5000;
    struct counted counted = write_chunks(&memory, count);
    struct ttd_reader *reader = open_counted(&counted, false);
    cr_assert_geq(reads_of(&counted, reader, 0, 0), count);
    size_t reads = reads_of(&counted, reader, 0, 0);
    cr_assert_geq(reads, 5000);
    cr_assert_leq(reads, 5000 + count / TTD_INDEX_ENTRIES_MAX + 8);
    reads_of(&counted, reader, TTD_KIND_BIT(TTD_KIND_EVENTS), count / 10);
    ttd_reader_close(reader);
    ttd_memory_output_free(&memory);
}
