/* SPDX-License-Identifier: MIT */
/* From payloads to batches. */
#include <string.h>

#include "base/memory.h"
#include "codec/chunk/header.h"
#include "codec/heap_state/heap_states.h"
#include "codec/records.h"
#include "codec/snapshots/references.h"
#include "codec/snapshots/snapshots.h"
#include "read/read_internal.h"

/* A function for each kind, decode_<member> of its row in TTD_KINDS: decodes up to `*count` records
 * of the chunk at hand, and sets it to how many they are. It fails without memory; the payload's
 * problem is in reader->payload. */

/** A batch gets no more records once their arrays have this many items. */
#define ITEMS_ENOUGH 1024

/** Bytes of an entry at least, where the columns decide. */
#define BLOCK_BYTES_MIN     TTD_BLOCK_COLUMN_COUNT
#define RUN_BYTES_MIN       4
#define REFERENCE_BYTES_MIN TTD_REFERENCE_COLUMN_COUNT

/** Defines the function of a kind that is one record after the other; `statement` decodes the
 * record `i` from `cursor`. */
#define DECODE_EACH(member, statement)                                                             \
    static enum ttd_status decode_##member(struct ttd_reader *reader, size_t *count,               \
                                           struct ttd_error *error)                                \
    {                                                                                              \
        struct ttd_cursor *cursor = &reader->payload;                                              \
        (void)error;                                                                               \
        for (size_t i = 0; i < *count; i++)                                                        \
            statement;                                                                             \
        return TTD_OK;                                                                             \
    }

/** Id of the record `i` of the next batch, in chunks whose ids are not in the payload. */
static ttd_id decode_id(const struct ttd_reader *reader, size_t i)
{
    return (ttd_id)(reader->next_record + i);
}

DECODE_EACH(strings, (reader->records.strings[i] = (struct ttd_string_definition){
                          decode_id(reader, i), ttd_decode_string(cursor)}))
DECODE_EACH(modules, ttd_decode_module(cursor, &reader->records.modules[i]))
DECODE_EACH(threads, ttd_decode_thread(cursor, &reader->records.threads[i]))
DECODE_EACH(heaps, (reader->records.heaps[i].id = decode_id(reader, i),
                    ttd_decode_heap(cursor, &reader->records.heaps[i])))
DECODE_EACH(heap_parents, ttd_decode_heap_parent(cursor, &reader->records.heap_parents[i]))
DECODE_EACH(metadata, ttd_decode_metadata(cursor, &reader->records.metadata[i]))
DECODE_EACH(user_events, ttd_decode_user_event(cursor, &reader->records.user_events[i]))
DECODE_EACH(losses, ttd_decode_loss(cursor, &reader->records.losses[i]))
DECODE_EACH(states, ttd_decode_state(cursor, &reader->records.states[i]))
DECODE_EACH(sums, ttd_decode_sum(cursor, &reader->records.sums[i]))
DECODE_EACH(snapshots, ttd_decode_snapshot(cursor, &reader->records.snapshots[i]))
DECODE_EACH(variables,
            ttd_decode_variable(cursor, &reader->records.variables[i], &reader->variable_offset))
DECODE_EACH(end, ttd_decode_end(cursor, &reader->records.end[i]))

static enum ttd_status decode_trace(struct ttd_reader *reader, size_t *count,
                                    struct ttd_error *error)
{
    struct ttd_trace *trace = reader->records.trace;
    (void)count;
    (void)error;
    ttd_decode_trace(&reader->payload, trace);
    trace->trace_id = reader->header.trace_id;
    if (!reader->payload.error && ttd_check_trace(trace))
        ttd_cursor_fail(&reader->payload, ttd_check_trace(trace));
    return TTD_OK;
}

static enum ttd_status decode_pages(struct ttd_reader *reader, size_t *count,
                                    struct ttd_error *error)
{
    (void)count;
    (void)error;
    reader->records.pages[0] = (struct ttd_pages){.first_page = reader->header.first_record,
                                                  .count = reader->header.record_count};
    ttd_decode_pages(&reader->payload, reader->records.pages);
    return TTD_OK;
}

/** Makes room in reader->items for `count` items of `size` bytes, and one more, so that the array
 * is never NULL. Keeps the items that are there. */
static enum ttd_status decode_make_room(struct ttd_reader *reader, size_t count, size_t size,
                                        struct ttd_error *error)
{
    if (!ttd_grow_array(&reader->allocator, &reader->items, &reader->items_capacity,
                        (count + 1) * size, 1))
        return TTD_OK;
    return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
}

/** Makes room for the entries of the chunk at hand. An entry has at least `bytes` bytes in the
 * payload, and `size` in memory, which is so in proportion to the bytes that are there. */
static enum ttd_status decode_begin_entries(struct ttd_reader *reader, size_t bytes, size_t size,
                                            const char *violation, struct ttd_error *error)
{
    size_t count = reader->header.record_count;
    if (count <= ttd_cursor_left(&reader->payload) / bytes)
        return decode_make_room(reader, count, size, error);
    ttd_cursor_fail(&reader->payload, violation);
    return TTD_OK;
}

/** Defines decode_<function> of a kind whose chunk is a record, in `member`, with entries: `bytes`
 * is the least that one of type `entry` has in the payload. */
#define DECODE_ENTRIES(function, member, entry, bytes, violation)                                  \
    static enum ttd_status decode_##function(struct ttd_reader *reader, size_t *count,             \
                                             struct ttd_error *error)                              \
    {                                                                                              \
        (void)count;                                                                               \
        enum ttd_status status =                                                                   \
            decode_begin_entries(reader, bytes, sizeof(entry), violation, error);                  \
        if (status != TTD_OK || reader->payload.error)                                             \
            return status;                                                                         \
        memset(reader->records.member, 0, sizeof reader->records.member);                          \
        reader->records.member->count = reader->header.record_count;                               \
        ttd_decode_##function(&reader->payload, reader->records.member, reader->items);            \
        return TTD_OK;                                                                             \
    }

DECODE_ENTRIES(live_blocks, live_blocks, struct ttd_block, BLOCK_BYTES_MIN, "number of blocks")
DECODE_ENTRIES(memory_map, memory_map, struct ttd_memory_run, RUN_BYTES_MIN, "number of runs")
DECODE_ENTRIES(regions, regions, struct ttd_region, TTD_REGION_BYTES_MIN, "number of records")
DECODE_ENTRIES(references, references, struct ttd_reference, REFERENCE_BYTES_MIN,
               "number of records")
DECODE_ENTRIES(packed_references, references, struct ttd_reference, TTD_PACKED_REFERENCE_BYTES_MIN,
               "number of records")
DECODE_ENTRIES(classes, classes, struct ttd_class, TTD_CLASS_BYTES_MIN, "number of records")
DECODE_ENTRIES(block_headers, block_headers, uint64_t, TTD_BLOCK_HEADER_BYTES_MIN,
               "number of records")

/** Fewer records when they have many frames. */
static enum ttd_status decode_symbols(struct ttd_reader *reader, size_t *count,
                                      struct ttd_error *error)
{
    struct ttd_cursor *cursor = &reader->payload;
    size_t frames = 0;
    size_t n = 0;
    for (; n < *count && frames < ITEMS_ENOUGH; n++) {
        struct ttd_symbol *symbol = &reader->records.symbols[n];
        ttd_decode_symbol(cursor, symbol, &reader->symbol_offset);
        void *array = reader->frames;
        if (ttd_grow_array(&reader->allocator, &array, &reader->frames_capacity,
                           frames + symbol->frame_count, sizeof *reader->frames))
            return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
        reader->frames = array;
        for (uint32_t i = 0; i < symbol->frame_count; i++)
            ttd_decode_symbol_frame(cursor, &reader->frames[frames++]);
    }
    /* Only now the array stays where it is. */
    frames = 0;
    for (size_t i = 0; i < n; i++) {
        struct ttd_symbol *symbol = &reader->records.symbols[i];
        symbol->frames = symbol->frame_count ? reader->frames + frames : NULL;
        frames += symbol->frame_count;
    }
    *count = n;
    return TTD_OK;
}

/** Fewer records when they have large arrays. */
static enum ttd_status decode_frames(struct ttd_reader *reader, size_t *count,
                                     struct ttd_error *error)
{
    struct ttd_cursor *cursor = &reader->payload;
    struct ttd_frames *records = reader->records.frames;
    size_t items = 0;
    size_t n = 0;
    for (; n < *count && items < ITEMS_ENOUGH; n++) {
        ttd_decode_frames(cursor, &records[n]);
        enum ttd_status status =
            decode_make_room(reader, items + records[n].count, sizeof(uint64_t), error);
        if (status != TTD_OK)
            return status;
        ttd_decode_frame_addresses(cursor, (uint64_t *)reader->items + items, records[n].count);
        items += records[n].count;
    }
    /* Growing has moved the array until now. */
    size_t first = 0;
    for (size_t i = 0; i < n; i++) {
        records[i].addresses = records[i].count ? (uint64_t *)reader->items + first : NULL;
        first += records[i].count;
    }
    *count = n;
    return TTD_OK;
}

/** Fewer records when they have large arrays, as of frames. */
static enum ttd_status decode_fatal_signals(struct ttd_reader *reader, size_t *count,
                                            struct ttd_error *error)
{
    struct ttd_cursor *cursor = &reader->payload;
    struct ttd_fatal_signal *records = reader->records.fatal_signals;
    size_t items = 0;
    size_t n = 0;
    for (; n < *count && items < ITEMS_ENOUGH; n++) {
        ttd_decode_fatal_signal(cursor, &records[n]);
        enum ttd_status status =
            decode_make_room(reader, items + records[n].count, sizeof(struct ttd_register), error);
        if (status != TTD_OK)
            return status;
        ttd_decode_registers(cursor, (struct ttd_register *)reader->items + items,
                             records[n].count);
        items += records[n].count;
    }
    size_t first = 0;
    for (size_t i = 0; i < n; i++) {
        records[i].registers =
            records[i].count ? (struct ttd_register *)reader->items + first : NULL;
        first += records[i].count;
    }
    *count = n;
    return TTD_OK;
}

/** Validates the header of a chunk that has one record of a fixed size. Returns a description of
 * the first violation, or NULL. */
static const char *decode_check_fixed(const struct ttd_header *header)
{
    if (header->record_count != 1)
        return "number of records";
    if (header->first_record != 0)
        return "number of the first record";
    return header->codec == TTD_CODEC_RAW ? NULL : "codec of a trace or an End chunk";
}

const char *ttd_reader_check_records(const struct ttd_header *header)
{
    unsigned properties = ttd_kind_rows[header->kind].properties;
    if (header->kind == TTD_KIND_TRACE && header->number != 0)
        return "second trace chunk";
    if (properties & TTD_KIND_IS_RAW)
        return decode_check_fixed(header);
    if ((properties & TTD_KIND_HAS_IDS) &&
        (header->first_record == 0 ||
         header->first_record + header->record_count > (uint64_t)UINT32_MAX + 1))
        return "identifiers of a chunk";
    return header->record_count != 0 || (properties & TTD_KIND_MAY_BE_EMPTY) ? NULL
                                                                             : "number of records";
}

/** Whether the chunk at hand is not to be decoded. */
static bool decode_gives_stored(const struct ttd_reader *reader)
{
    return reader->header.kind == TTD_KIND_STACKS && reader->options.lazy_stacks &&
           !reader->decodes_stacks;
}

enum ttd_status ttd_reader_begin(struct ttd_reader *reader, const struct ttd_header *header,
                                 struct ttd_error *error)
{
    reader->header = *header;
    reader->next_record = header->first_record;
    reader->symbol_offset = 0;
    reader->variable_offset = 0;
    reader->is_first_batch = true;
    const char *violation = ttd_reader_check_records(header);
    if (violation)
        return ttd_reader_fail(reader, TTD_ERROR_CORRUPT, violation, error);
    if (decode_gives_stored(reader)) {
        reader->records_left = header->record_count;
        enum ttd_status stored = ttd_source_stored(&reader->source, header, error);
        if (stored == TTD_OK && !ttd_payload_is_known(header->codec))
            stored = ttd_reader_fail(reader, TTD_ERROR_UNSUPPORTED, "codec", error);
        return stored;
    }
    enum ttd_status status = ttd_source_payload(&reader->source, header, &reader->payload, error);
    if (status != TTD_OK)
        return status;
    if (header->kind == TTD_KIND_EVENTS) {
        status = ttd_events_decoder_begin(&reader->events, header, reader->payload,
                                          reader->trace.time_unit);
        if (status != TTD_OK)
            return ttd_fail(error, status, reader->events.error ? reader->events.error : "memory",
                            header->offset, header->number);
    }
    if (header->kind == TTD_KIND_STACKS) {
        ttd_stacks_decoder_begin(&reader->stacks, &reader->payload, (ttd_id)header->first_record);
        if (reader->payload.error)
            return ttd_reader_fail(reader, TTD_ERROR_CORRUPT, reader->payload.error, error);
    }
    reader->records_left = header->record_count;
    if (header->record_count == 0)
        reader->records_left = 1; /* one list or map without entries */
    return TTD_OK;
}

static enum ttd_status decode_events(struct ttd_reader *reader, size_t *count,
                                     struct ttd_error *error)
{
    enum ttd_status status = ttd_events_decoder_next(&reader->events, count);
    if (status == TTD_ERROR_NO_MEMORY)
        return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
    return status == TTD_OK
               ? TTD_OK
               : ttd_reader_fail(reader, TTD_ERROR_CORRUPT, reader->events.error, error);
}

static enum ttd_status decode_stacks(struct ttd_reader *reader, size_t *count,
                                     struct ttd_error *error)
{
    const char *what = NULL;
    struct ttd_stack_link links[TTD_RECORD_BATCH];
    ttd_id first = reader->stacks.next_id;
    if (!ttd_stacks_decoder_next(&reader->stacks, links, *count, &what))
        return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
    if (!what && *count == reader->records_left)
        what = ttd_stacks_decoder_finish(&reader->stacks);
    if (what)
        return ttd_reader_fail(reader, TTD_ERROR_CORRUPT, what, error);
    for (size_t i = 0; i < *count; i++)
        reader->records.stacks[i] =
            ttd_stacks_decoder_stack(&reader->stacks, first + (ttd_id)i, links[i]);
    return TTD_OK;
}

typedef enum ttd_status decode_function(struct ttd_reader *reader, size_t *count,
                                        struct ttd_error *error);

#define DECODE_RECORDS(name, number, text, minor, properties, records, record, member, ids)        \
    [number] = decode_##member,
#define DECODE_NONE(...)

/** The function of each kind, by number. */
static decode_function *const decoders[TTD_KIND_LAST + 1] = {
    TTD_KINDS(DECODE_RECORDS, DECODE_NONE)
        /* The one other encoding of records that have a kind of their own. */
        [TTD_KIND_PACKED_REFERENCES] = decode_packed_references};

/** Fills in the batch of `count` records that were decoded. */
static void decode_fill(struct ttd_reader *reader, struct ttd_batch *batch, size_t count)
{
    batch->count = ttd_kind_rows[reader->header.kind].is_single ? 1 : count;
    if (reader->header.kind != TTD_KIND_EVENTS) {
        /* The records are a union, and the pointers to them, too: C represents all pointers to
         * structs alike, so this sets the pointer of each kind. */
        batch->u.trace = reader->records.trace;
        return;
    }
    const struct ttd_event_buffer *events = reader->events.batch;
    batch->u.events = events->events;
    batch->addresses = events->addresses;
    batch->address_count = events->address_count;
    batch->first_ordinal = events->first_ordinal;
}

/** Decodes the next records into the batch, up to `*count` of them; a chunk that is one record as a
 * whole. Events and stacks have payloads of their own. */
static enum ttd_status decode_next(struct ttd_reader *reader, struct ttd_batch *batch,
                                   size_t *count, struct ttd_error *error)
{
    unsigned kind = reader->header.kind;
    if (ttd_kind_rows[kind].is_single)
        *count = reader->records_left;
    enum ttd_status status = decoders[kind](reader, count, error);
    if (status != TTD_OK)
        return status;
    decode_fill(reader, batch, *count);
    if (kind == TTD_KIND_EVENTS || kind == TTD_KIND_STACKS)
        return TTD_OK;
    if (*count == reader->records_left)
        ttd_cursor_finish(&reader->payload);
    return reader->payload.error
               ? ttd_reader_fail(reader, TTD_ERROR_CORRUPT, reader->payload.error, error)
               : TTD_OK;
}

enum ttd_status ttd_reader_decode(struct ttd_reader *reader, struct ttd_batch *batch,
                                  struct ttd_error *error)
{
    batch->kind = ttd_kind_of_records(reader->header.kind);
    batch->chunk = ttd_chunk_of(&reader->header);
    batch->stored = NULL;
    batch->decompressed = NULL;
    size_t count =
        reader->records_left < TTD_RECORD_BATCH ? reader->records_left : TTD_RECORD_BATCH;
    if (decode_gives_stored(reader)) {
        batch->stored = reader->source.stored.data;
        if (reader->is_checked)
            batch->decompressed = ttd_source_raw(&reader->source, &reader->header);
        batch->u.stacks = NULL;
        batch->count = count = reader->records_left;
    } else {
        enum ttd_status status = decode_next(reader, batch, &count, error);
        if (status != TTD_OK)
            return status;
    }
    reader->records_left -= (uint32_t)count;
    reader->next_record += count;
    return TTD_OK;
}
