/* SPDX-License-Identifier: MIT */
/*
 * Whatever a sidecar index contains, going to positions does not fail, and once the index is found
 * to be wrong it has no influence on the state. The input chooses changes to the index of a fixed
 * trace.
 */
#include "../target.h"

#include <stdlib.h>
#include <string.h>

#include "travel/heap_cursor.h"
#include "travel/index.h"
#include "support/chunk_edit.h"

#define EVENTS    600
#define SLOTS     48
#define EDITS_MAX 64
#define EDIT_SIZE 7
#define STATES    10

/* The state at a position. */
struct state {
    struct ttd_position position;
    uint64_t events;
    uint64_t blocks;
    struct heap_sum bytes;
};

/* A trace, its correct index, and the states that replay without an index gives. */
struct fixture {
    struct ttd_memory_output trace;
    struct ttd_memory_output sidecar;
    struct state states[STATES];
};

/* ---- The trace and its index ---- */

static struct ttd_writer *open_writer(struct ttd_memory_output *memory,
                                      const struct ttd_trace *trace, uint32_t events)
{
    struct ttd_output output;
    struct ttd_writer *writer = NULL;
    struct ttd_writer_options options = ttd_writer_options_default();
    options.codec = TTD_CODEC_RAW; /* so that changes reach the records */
    options.events_per_chunk = events;
    target_require(ttd_output_memory(memory, NULL, &output) == TTD_OK &&
                       ttd_writer_open(&output, trace, &options, NULL, &writer, NULL) == TTD_OK,
                   "open");
    return writer;
}

static void close_writer(struct ttd_writer *writer)
{
    struct ttd_end end = {.reason = TTD_END_REASON_EXITED};
    target_require(ttd_writer_close(writer, &end, NULL) == TTD_OK, "close");
}

/* Makes an event that releases or acquires the block of a slot, or now and then destroys a heap. */
static struct ttd_event make_event(unsigned number, bool *held)
{
    unsigned slot = number * 31 % SLOTS;
    unsigned heap = 1 + slot % 3;
    uint64_t address = 0x10000 + 0x100 * slot;
    struct ttd_event event = {.action = TTD_ACTION_ALLOC,
                              .heap = heap,
                              .thread = 1 + slot % 2,
                              .stack = 1 + number % 5,
                              .result = 1,
                              .time_start = {number, 1},
                              .time_end = {number, 2}};
    if (number % 150 == 149) {
        event.action = TTD_ACTION_DESTROY;
        for (unsigned i = heap - 1; i < SLOTS; i += 3)
            held[i] = false;
    } else if (held[slot]) {
        event.action = TTD_ACTION_FREE;
        event.base_address = address;
        held[slot] = false;
    } else {
        event.address = address;
        event.size = 1 + number % 77;
        held[slot] = true;
    }
    return event;
}

static void write_trace(struct ttd_memory_output *memory)
{
    struct ttd_trace trace = {.trace_id = 1, .time_unit = 1, .pointer_size = 8};
    struct ttd_writer *writer = open_writer(memory, &trace, 16);
    bool held[SLOTS] = {false};
    ttd_id id;
    for (unsigned i = 0; i < 5; i++) {
        struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .os_id = i};
        struct ttd_heap heap = {.handle = i};
        target_require(ttd_writer_thread(writer, &thread, &id) == TTD_OK &&
                           ttd_writer_heap(writer, &heap, &id) == TTD_OK &&
                           ttd_writer_stack(writer, 0, 0, i, &id) == TTD_OK,
                       "definitions");
    }
    for (unsigned i = 1; i <= EVENTS; i++) {
        struct ttd_event event = make_event(i, held);
        target_require(ttd_writer_event(writer, &event) == TTD_OK, "event");
    }
    close_writer(writer);
}

static struct ttd_reader *open_trace(const struct ttd_memory_output *trace)
{
    return target_open(trace->data, trace->size, 1);
}

static enum ttd_status pass(void *context, const struct ttd_batch *batch)
{
    (void)context, (void)batch;
    return TTD_OK;
}

static void write_index(struct fixture *fixture)
{
    struct ttd_reader *reader = open_trace(&fixture->trace);
    struct ttd_trace derived = *ttd_reader_trace(reader);
    derived.flags |= TTD_TRACE_DERIVED;
    target_require(ttd_reader_tie(reader, &derived) == TTD_OK, "tie");
    struct ttd_writer *writer = open_writer(&fixture->sidecar, &derived, 65536);
    struct heap_index_spacing spacing = {.keyframes = 100, .summaries = 60, .summary_blocks = 1};
    struct heap_trace trace = {.reader = reader, .hook.batch = pass};
    struct heap_index_facts facts;
    struct ttd_error error;
    target_require(heap_index_write(&trace, &spacing, writer, &facts, &error) == TTD_OK, "index");
    target_require(facts.keyframes > 2 && facts.summaries > 2, "keyframes and summaries");
    close_writer(writer);
    ttd_reader_close(reader);
}

/* ---- Going to positions ---- */

static struct state state_of(const struct heap_cursor *cursor)
{
    const struct heap_replay *replay = &cursor->replay;
    return (struct state){replay->position, replay->counts.events, replay->live.count,
                          replay->live.bytes};
}

static struct heap_cursor begin(struct ttd_reader *reader, const struct heap_keyframes *keyframes)
{
    struct heap_cursor cursor;
    struct heap_trace trace = {.reader = reader, .keyframes = keyframes};
    target_require(heap_cursor_init(&cursor, &trace, HEAP_CURSOR_KINDS, NULL) == TTD_OK, "cursor");
    return cursor;
}

static void go(struct heap_cursor *cursor, unsigned index)
{
    struct ttd_position target = {index * EVENTS / STATES, 2};
    struct ttd_error error;
    target_require(heap_cursor_seek(cursor, target, &error) == TTD_OK, "a position is found");
}

/* Goes to all positions, forwards and then backwards. */
static void visit(const struct fixture *fixture, struct ttd_reader *reader,
                  const struct heap_keyframes *keyframes, struct heap_tables *sums)
{
    struct heap_cursor cursor = begin(reader, keyframes);
    cursor.sums = sums;
    for (unsigned i = 0; i < 2 * STATES; i++) {
        unsigned index = i < STATES ? i : 2 * STATES - 1 - i;
        go(&cursor, index);
        struct state actual = state_of(&cursor);
        const struct state *expected = &fixture->states[index];
        if (!cursor.keyframes)
            target_require(memcmp(&actual, expected, sizeof actual) == 0,
                           "a state without the index is right");
    }
    heap_cursor_free(&cursor);
}

static void make(struct fixture *fixture)
{
    write_trace(&fixture->trace);
    write_index(fixture);
    struct ttd_reader *reader = open_trace(&fixture->trace);
    struct heap_cursor cursor = begin(reader, NULL);
    for (unsigned i = 0; i < STATES; i++) {
        go(&cursor, i);
        fixture->states[i] = state_of(&cursor);
    }
    heap_cursor_free(&cursor);
    ttd_reader_close(reader);
}

/* ---- Changing ---- */

/* Applies one change: `how` has the chunk, the offset in it, the kind and the value. */
static void edit(uint8_t *bytes, size_t size, const uint8_t *how)
{
    static const uint64_t values[] = {0, 1, INT64_MAX, UINT64_MAX, UINT64_MAX - 1, UINT32_MAX};
    size_t at = chunk_edit_find(bytes, size, how[0]);
    uint64_t whole = at < size ? chunk_edit_size(bytes + at, size - at) : 0;
    size_t offset = TTD_HEADER_SIZE + ttd_get16(how + 1);
    if (whole < offset + 8 || whole > size - at)
        return;
    uint8_t *target = bytes + at + offset;
    if (how[3] % 4 == 0)
        ttd_put64(target, values[how[4] % 6]);
    else if (how[3] % 4 == 1)
        ttd_put16(target, ttd_get16(how + 4));
    else
        *target = how[4];
    chunk_edit_seal(bytes + at, size - at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fixture fixture;
    if (!fixture.trace.data)
        make(&fixture);
    uint8_t *index = target_copy(fixture.sidecar.data, fixture.sidecar.size);
    for (size_t i = 0; i < EDITS_MAX && size - i * EDIT_SIZE >= EDIT_SIZE; i++)
        edit(index, fixture.sidecar.size, data + i * EDIT_SIZE);
    struct ttd_reader *reader = open_trace(&fixture.trace);
    struct ttd_reader *sidecar = target_open(index, fixture.sidecar.size, 0);
    struct heap_keyframes keyframes;
    bool is_open = sidecar && heap_keyframes_open(sidecar, reader, &keyframes) == TTD_OK;
    target_require(is_open || size >= EDIT_SIZE, "an index that was not changed is taken");
    visit(&fixture, reader, is_open ? &keyframes : NULL, NULL);
    if (is_open) {
        struct heap_tables sums;
        heap_tables_init(&sums);
        visit(&fixture, reader, &keyframes, &sums);
        heap_tables_free(&sums);
        heap_keyframes_close(&keyframes);
    }
    ttd_reader_close(reader);
    free(index);
    return 0;
}
