/* SPDX-License-Identifier: MIT */
/* Seeking leads to where a search from the start leads to: with an index, without, with a wrong
 * one; in files of few and of thousands of chunks. */
#include "api/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "support/chunk_edit.h"

/** Effect positions of all events, in order. */
struct positions {
    struct ttd_position *data;
    size_t count;
};

static bool next_events(struct ttd_reader *reader, struct ttd_batch *batch)
{
    enum ttd_status status;
    do
        status = ttd_reader_next(reader, batch, NULL);
    while (status == TTD_OK && batch->kind != TTD_KIND_EVENTS);
    cr_assert(status == TTD_OK || status == TTD_END);
    return status == TTD_OK;
}

static struct positions read_positions(struct ttd_reader *reader, size_t count)
{
    struct positions all = {calloc(count + 1, sizeof *all.data), 0};
    struct ttd_batch batch;
    while (next_events(reader, &batch))
        for (size_t i = 0; i < batch.count && all.count < count; i++)
            all.data[all.count++] = ttd_event_position(&batch.u.events[i]);
    cr_assert_eq(all.count, count);
    return all;
}

/** Number of the first event not before the position. */
static size_t search(const struct positions *all, struct ttd_position position)
{
    size_t low = 0;
    size_t high = all->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ttd_position_compare(all->data[middle], position) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void check_position(struct ttd_reader *reader, const struct positions *all,
                           struct ttd_position position)
{
    size_t expected = search(all, position);
    struct ttd_batch batch;
    cr_assert_eq(ttd_reader_seek(reader, position, NULL), TTD_OK);
    bool first = true;
    while (next_events(reader, &batch)) {
        if (first) {
            cr_assert_leq(batch.u.events[0].number, expected, "gone too far");
            cr_assert_eq(batch.first_ordinal, 0);
        }
        first = false;
        uint64_t chunk_end = batch.chunk.first_record + batch.chunk.record_count;
        cr_assert_gt(chunk_end, expected, "not in the chunk of the event");
        for (size_t i = 0; i < batch.count; i++) {
            uint64_t number = batch.u.events[i].number;
            if (ttd_position_compare(ttd_event_position(&batch.u.events[i]), position) < 0)
                continue;
            cr_assert_eq(number, expected);
            return;
        }
    }
    cr_assert_eq(expected, all->count);
}

static void check_number(struct ttd_reader *reader, const struct positions *all, uint64_t number)
{
    struct ttd_batch batch;
    cr_assert_eq(ttd_reader_seek_event(reader, number, NULL), TTD_OK);
    bool found = next_events(reader, &batch);
    cr_assert_eq(found, number < all->count);
    if (!found)
        return;
    cr_assert_leq(batch.chunk.first_record, number);
    cr_assert_gt(batch.chunk.first_record + batch.chunk.record_count, number);
    cr_assert_eq(batch.u.events[0].number, batch.chunk.first_record);
}

/** Seeks to every `step`th event, and to positions just before and after. */
static void check_all(const struct ttd_memory_output *memory, size_t events, size_t step,
                      bool tolerant)
{
    struct ttd_reader *reader = fixture_reader(memory, tolerant);
    struct positions all = read_positions(reader, events);
    for (size_t i = 0; i < events; i += step) {
        struct ttd_position position = all.data[i];
        check_position(reader, &all, position);
        check_number(reader, &all, i);
        position.steps++;
        check_position(reader, &all, position);
        position = all.data[i];
        position.steps -= position.steps != 0;
        check_position(reader, &all, position);
    }
    check_position(reader, &all, ttd_position_min());
    check_position(reader, &all, ttd_position_max());
    check_number(reader, &all, events);
    check_number(reader, &all, UINT64_MAX);
    ttd_reader_close(reader);
    free(all.data);
}

/** A trace of a model, with an index or, not having been closed, without. */
static size_t write_trace(struct ttd_memory_output *memory, enum model_style style, uint64_t seed,
                          size_t steps, uint32_t per_chunk, bool closed)
{
    struct model m;
    struct ttd_writer_options options = fixture_options(TTD_CODEC_RAW, 0, per_chunk);
    struct ttd_trace trace = model_begin(&m, entropy_of_seed(seed), style);
    struct ttd_writer *writer = fixture_writer(memory, &trace, &options);
    for (size_t i = 0; i < steps; i++)
        cr_assert_eq(model_step(&m, writer), TTD_OK);
    if (closed)
        fixture_close(writer);
    else
        cr_assert_eq(ttd_writer_close(writer, NULL, NULL), TTD_OK);
    size_t events = (size_t)m.events;
    model_free(&m);
    return events;
}

Test(seek, every_position)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        for (int closed = 0; closed < 2; closed++) {
            struct ttd_memory_output memory;
            size_t events = write_trace(&memory, seed % 2 ? MODEL_ANYTHING : MODEL_REALISTIC, seed,
                                        250, 1 + (uint32_t)seed * 3, closed);
            check_all(&memory, events, 1, seed % 3 == 0);
            ttd_memory_output_free(&memory);
        }
    }
}

/* How far a reader is, from chunk to chunk up to the end. */
Test(seek, offset)
{
    struct ttd_memory_output memory;
    write_trace(&memory, MODEL_REALISTIC, 3, 400, 10, true);
    struct ttd_reader *reader = fixture_reader(&memory, false);
    struct ttd_batch batch;
    uint64_t last = 0;
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
        uint64_t offset = ttd_reader_offset(reader);
        cr_assert_geq(offset, last);
        cr_assert_geq(offset, batch.chunk.offset + batch.chunk.stored_size);
        last = offset;
    }
    cr_assert_eq(last, memory.size);
    cr_assert_eq(ttd_reader_size(reader), memory.size);
    ttd_reader_close(reader);
    ttd_memory_output_free(&memory);
}

/* Many index chunks, so that links between them are followed. */
Test(seek, many_indexes)
{
    struct ttd_memory_output memory;
    size_t events = write_trace(&memory, MODEL_REALISTIC, 4, 16000, 1, true);
    fixture_check_intact(memory.data, memory.size);
    check_all(&memory, events, 97, false);
    ttd_memory_output_free(&memory);
}

/* Nothing but definitions for thousands of chunks before, between and after the events. */
Test(seek, indexes_without_events)
{
    struct ttd_memory_output memory;
    struct ttd_trace trace = fixture_trace();
    struct ttd_writer *writer = fixture_writer(&memory, &trace, NULL);
    uint64_t step = 0;
    for (int part = 0; part < 3; part++) {
        for (int i = 0; i < 2500; i++) {
            ttd_id id;
            cr_assert_eq(ttd_writer_string(writer, "x", 1, &id), TTD_OK);
            cr_assert_eq(ttd_writer_flush(writer), TTD_OK);
        }
        for (int i = 0; i < 5 && part < 2; i++, step += 2) {
            struct ttd_event event = {
                .action = TTD_ACTION_LOCK, .time_start = {1, step}, .time_end = {1, step + 1}};
            cr_assert_eq(ttd_writer_event(writer, &event), TTD_OK);
            cr_assert_eq(ttd_writer_flush(writer), TTD_OK);
        }
    }
    fixture_close(writer);
    fixture_check_intact(memory.data, memory.size);
    check_all(&memory, 10, 1, false);
    ttd_memory_output_free(&memory);
}

/* A file without events, and one with nothing at all. */
Test(seek, no_events)
{
    struct ttd_memory_output memory;
    struct ttd_trace trace = fixture_trace();
    fixture_close(fixture_writer(&memory, &trace, NULL));
    check_all(&memory, 0, 1, false);
    ttd_memory_output_free(&memory);
}

/** Makes the hash of the index entry right in which byte `at` of the index chunk lies. */
static bool seal_entry(uint8_t *index, size_t size, size_t at)
{
    size_t first = TTD_HEADER_SIZE + TTD_INDEX_LINKS + TTD_LINK_SIZE;
    if (at < first)
        return false;
    size_t entry = at - (at - first) % TTD_HEADER_SIZE;
    if (entry + TTD_HEADER_SIZE > size)
        return false;
    chunk_edit_seal_header(index + entry);
    return true;
}

/* An index whose every byte in turn is wrong: as it is, with the right hash of the chunk, and with
 * that of the entry as well. The chunks win. */
Test(seek, wrong_index)
{
    struct ttd_memory_output memory;
    size_t events = write_trace(&memory, MODEL_REALISTIC, 10, 120, 12, true);
    cr_assert_gt(events, 50);
    size_t index = chunk_edit_find_kind(memory.data, memory.size, TTD_KIND_INDEX);
    size_t end = chunk_edit_find_kind(memory.data, memory.size, TTD_KIND_END);
    uint8_t *copy = malloc(end - index);
    memcpy(copy, memory.data + index, end - index);
    for (size_t i = TTD_HEADER_SIZE; i < end - index; i++) {
        for (int sealed = 0; sealed < 3; sealed++) {
            memory.data[index + i] ^= (uint8_t)(1 + i % 255);
            bool wanted = sealed < 2 || seal_entry(memory.data + index, end - index, i);
            if (sealed)
                chunk_edit_seal(memory.data + index, end - index);
            if (wanted)
                check_all(&memory, events, 17, false);
            memcpy(memory.data + index, copy, end - index);
        }
    }
    free(copy);
    ttd_memory_output_free(&memory);
}
