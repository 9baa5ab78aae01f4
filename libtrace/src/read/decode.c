/* SPDX-License-Identifier: MIT */
/* From payloads to batches. */
#include "base/memory.h"
#include "codec/chunk/fixed_chunks.h"
#include "codec/chunk/header.h"
#include "codec/heap_state/heap_states.h"
#include "codec/records.h"
#include "codec/snapshots/references.h"
#include "codec/snapshots/snapshots.h"
#include "read/read_internal.h"

/* From payloads to batches: all kinds but events and stacks, one record after the other. */

/** Bytes of a block, and of a run of a memory map, at least. */
#define BLOCK_SIZE_MIN TTD_BLOCK_COLUMN_COUNT
#define RUN_SIZE_MIN   4

/** Number of symbol frames that makes a batch full. */
#define FRAMES_ENOUGH 1024

/** Decodes up to `*count` symbols; fewer when they have many frames. */
static enum ttd_status decode_symbols(struct ttd_reader *reader, size_t *count,
                                      struct ttd_error *error)
{
    struct ttd_cursor *cursor = &reader->payload;
    size_t frames = 0;
    size_t n = 0;
    for (; n < *count && frames < FRAMES_ENOUGH; n++) {
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

/** Reads `count` records of a kind that has several in a chunk, all of the same shape. */
static void decode_plain(struct ttd_reader *reader, size_t count)
{
    struct ttd_cursor *cursor = &reader->payload;
    ttd_id id = (ttd_id)reader->next_record;
    for (size_t i = 0; i < count; i++) {
        switch (reader->header.kind) {
        case TTD_KIND_STRINGS:
            reader->records.strings[i] =
                (struct ttd_string_definition){id++, ttd_decode_string(cursor)};
            break;
        case TTD_KIND_MODULES:
            ttd_decode_module(cursor, &reader->records.modules[i]);
            break;
        case TTD_KIND_THREADS:
            ttd_decode_thread(cursor, &reader->records.threads[i]);
            break;
        case TTD_KIND_HEAPS:
            reader->records.heaps[i].id = id++;
            ttd_decode_heap(cursor, &reader->records.heaps[i]);
            break;
        case TTD_KIND_HEAP_PARENTS:
            ttd_decode_heap_parent(cursor, &reader->records.heap_parents[i]);
            break;
        case TTD_KIND_USER_EVENTS:
            ttd_decode_user_event(cursor, &reader->records.user_events[i]);
            break;
        case TTD_KIND_LOSSES:
            ttd_decode_loss(cursor, &reader->records.losses[i]);
            break;
        case TTD_KIND_STATES:
            ttd_decode_state(cursor, &reader->records.states[i]);
            break;
        case TTD_KIND_SUMS:
            ttd_decode_sum(cursor, &reader->records.sums[i]);
            break;
        case TTD_KIND_SNAPSHOTS:
            ttd_decode_snapshot(cursor, &reader->records.snapshots[i]);
            break;
        case TTD_KIND_VARIABLES:
            ttd_decode_variable(cursor, &reader->records.variables[i], &reader->variable_offset);
            break;
        default:
            ttd_decode_metadata(cursor, &reader->records.metadata[i]);
            break;
        }
    }
}

/** Kinds whose chunk is a single record. */
static enum ttd_status decode_single(struct ttd_reader *reader, struct ttd_error *error)
{
    struct ttd_cursor *cursor = &reader->payload;
    const struct ttd_header *header = &reader->header;
    void *array;
    switch (header->kind) {
    case TTD_KIND_TRACE:
        ttd_decode_trace(cursor, &reader->records.trace);
        reader->records.trace.trace_id = header->trace_id;
        if (!cursor->error && ttd_check_trace(&reader->records.trace))
            ttd_cursor_fail(cursor, ttd_check_trace(&reader->records.trace));
        break;
    case TTD_KIND_LIVE_BLOCKS:
        if (header->record_count > ttd_cursor_left(cursor) / BLOCK_SIZE_MIN) {
            ttd_cursor_fail(cursor, "number of blocks");
            break;
        }
        array = reader->blocks;
        if (ttd_grow_array(&reader->allocator, &array, &reader->blocks_capacity,
                           header->record_count, sizeof *reader->blocks))
            return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
        reader->blocks = array;
        reader->records.live_blocks = (struct ttd_live_blocks){.count = header->record_count};
        ttd_decode_live_blocks(cursor, &reader->records.live_blocks, reader->blocks);
        break;
    case TTD_KIND_PAGES:
        reader->records.pages =
            (struct ttd_pages){.first_page = header->first_record, .count = header->record_count};
        ttd_decode_pages(cursor, &reader->records.pages);
        break;
    case TTD_KIND_MEMORY_MAP:
        if (header->record_count > ttd_cursor_left(cursor) / RUN_SIZE_MIN) {
            ttd_cursor_fail(cursor, "number of runs");
            break;
        }
        array = reader->runs;
        if (ttd_grow_array(&reader->allocator, &array, &reader->runs_capacity, header->record_count,
                           sizeof *reader->runs))
            return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
        reader->runs = array;
        reader->records.memory_map = (struct ttd_memory_map){.count = header->record_count};
        ttd_decode_memory_map(cursor, &reader->records.memory_map, reader->runs);
        break;
    case TTD_KIND_END:
        ttd_decode_end(cursor, &reader->records.end);
        break;
    default:
        return ttd_reader_decode_part(reader, error);
    }
    return TTD_OK;
}

static bool is_single(unsigned kind)
{
    return kind == TTD_KIND_TRACE || kind == TTD_KIND_LIVE_BLOCKS || kind == TTD_KIND_PAGES ||
           kind == TTD_KIND_MEMORY_MAP || kind == TTD_KIND_END || kind == TTD_KIND_REGIONS ||
           kind == TTD_KIND_REFERENCES || kind == TTD_KIND_PACKED_REFERENCES ||
           kind == TTD_KIND_CLASSES || kind == TTD_KIND_BLOCK_HEADERS;
}

enum ttd_status ttd_reader_decode_records(struct ttd_reader *reader, struct ttd_batch *batch,
                                          size_t *count, struct ttd_error *error)
{
    bool single = is_single(reader->header.kind);
    enum ttd_status status = TTD_OK;
    if (single) {
        *count = reader->records_left;
        status = decode_single(reader, error);
    } else if (reader->header.kind == TTD_KIND_SYMBOLS) {
        status = decode_symbols(reader, count, error);
    } else if (reader->header.kind == TTD_KIND_FRAMES) {
        status = ttd_reader_decode_frames(reader, count, error);
    } else if (reader->header.kind == TTD_KIND_FATAL_SIGNALS) {
        status = ttd_reader_decode_signals(reader, count, error);
    } else {
        decode_plain(reader, *count);
    }
    /* The records are a union, and the pointers to them, too: C represents all pointers to structs
     * alike, so this sets the pointer of each kind. */
    batch->u.trace = &reader->records.trace;
    batch->count = single ? 1 : *count;
    if (status == TTD_OK && *count == reader->records_left)
        ttd_cursor_finish(&reader->payload);
    if (status == TTD_OK && reader->payload.error)
        status = ttd_reader_fail(reader, TTD_ERROR_CORRUPT, reader->payload.error, error);
    return status;
}

/* From payloads to batches: parts of snapshots that are arrays, or have some. */

/** A batch gets no more records once their arrays have this many items. */
#define ITEMS_ENOUGH 1024

/** Makes room in reader->items for `count` items of `size` bytes, and one more, so that the array
 * is never NULL. Keeps the items that are there. */
static enum ttd_status snapshots_make_room(struct ttd_reader *reader, size_t count, size_t size,
                                           struct ttd_error *error)
{
    if (!ttd_grow_array(&reader->allocator, &reader->items, &reader->items_capacity,
                        (count + 1) * size, 1))
        return TTD_OK;
    return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
}

/** The sizes of the records of a part of a snapshot. */
struct part_sizes {
    size_t bytes_min; /* in the payload */
    size_t item;      /* in memory */
};

static struct part_sizes part_sizes(unsigned kind)
{
    switch (kind) {
    case TTD_KIND_REGIONS:
        return (struct part_sizes){TTD_REGION_BYTES_MIN, sizeof(struct ttd_region)};
    case TTD_KIND_REFERENCES:
        return (struct part_sizes){TTD_REFERENCE_COLUMN_COUNT, sizeof(struct ttd_reference)};
    case TTD_KIND_PACKED_REFERENCES:
        return (struct part_sizes){TTD_PACKED_REFERENCE_BYTES_MIN, sizeof(struct ttd_reference)};
    case TTD_KIND_BLOCK_HEADERS:
        return (struct part_sizes){TTD_BLOCK_HEADER_BYTES_MIN, sizeof(uint64_t)};
    default:
        return (struct part_sizes){TTD_CLASS_BYTES_MIN, sizeof(struct ttd_class)};
    }
}

enum ttd_status ttd_reader_decode_part(struct ttd_reader *reader, struct ttd_error *error)
{
    struct ttd_cursor *cursor = &reader->payload;
    size_t count = reader->header.record_count;
    struct part_sizes sizes = part_sizes(reader->header.kind);
    /* Before there is room for them: memory is in proportion to the bytes that are there. */
    if (count > ttd_cursor_left(cursor) / sizes.bytes_min) {
        ttd_cursor_fail(cursor, "number of records");
        return TTD_OK;
    }
    enum ttd_status status = snapshots_make_room(reader, count, sizes.item, error);
    if (status != TTD_OK)
        return status;
    switch (reader->header.kind) {
    case TTD_KIND_REGIONS:
        reader->records.regions = (struct ttd_regions){.count = count};
        ttd_decode_regions(cursor, &reader->records.regions, reader->items);
        break;
    case TTD_KIND_REFERENCES:
        reader->records.references = (struct ttd_references){.count = count};
        ttd_decode_references(cursor, &reader->records.references, reader->items);
        break;
    case TTD_KIND_PACKED_REFERENCES:
        reader->records.references = (struct ttd_references){.count = count};
        ttd_decode_packed_references(cursor, &reader->records.references, reader->items);
        break;
    case TTD_KIND_BLOCK_HEADERS:
        reader->records.block_headers = (struct ttd_block_headers){.count = count};
        ttd_decode_block_headers(cursor, &reader->records.block_headers, reader->items);
        break;
    default:
        reader->records.classes = (struct ttd_classes){.count = count};
        ttd_decode_classes(cursor, &reader->records.classes, reader->items);
        break;
    }
    return TTD_OK;
}

enum ttd_status ttd_reader_decode_frames(struct ttd_reader *reader, size_t *count,
                                         struct ttd_error *error)
{
    struct ttd_cursor *cursor = &reader->payload;
    struct ttd_frames *records = reader->records.frames;
    size_t items = 0;
    size_t n = 0;
    for (; n < *count && items < ITEMS_ENOUGH; n++) {
        ttd_decode_frames(cursor, &records[n]);
        enum ttd_status status =
            snapshots_make_room(reader, items + records[n].count, sizeof(uint64_t), error);
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

enum ttd_status ttd_reader_decode_signals(struct ttd_reader *reader, size_t *count,
                                          struct ttd_error *error)
{
    struct ttd_cursor *cursor = &reader->payload;
    struct ttd_fatal_signal *records = reader->records.fatal_signals;
    size_t items = 0;
    size_t n = 0;
    for (; n < *count && items < ITEMS_ENOUGH; n++) {
        ttd_decode_fatal_signal(cursor, &records[n]);
        enum ttd_status status = snapshots_make_room(reader, items + records[n].count,
                                                     sizeof(struct ttd_register), error);
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
static const char *check_fixed(const struct ttd_header *header)
{
    if (header->record_count != 1)
        return "number of records";
    if (header->first_record != 0)
        return "number of the first record";
    return header->codec == TTD_CODEC_RAW ? NULL : "codec of a trace or an End chunk";
}

/** Validates the numbers of records of a chunk of a known kind. Returns a description of the first
 * violation, or NULL. */
static const char *check_records(const struct ttd_header *header)
{
    switch (header->kind) {
    case TTD_KIND_LIVE_BLOCKS:
    case TTD_KIND_MEMORY_MAP:
        return NULL;
    case TTD_KIND_TRACE:
        return header->number == 0 ? check_fixed(header) : "second trace chunk";
    case TTD_KIND_END:
        return check_fixed(header);
    case TTD_KIND_STRINGS:
    case TTD_KIND_STACKS:
    case TTD_KIND_HEAPS:
        if (header->first_record == 0 ||
            header->first_record + header->record_count > (uint64_t)UINT32_MAX + 1)
            return "identifiers of a chunk";
        break;
    default:
        break;
    }
    return header->record_count != 0 ? NULL : "number of records";
}

/** Whether the chunk at hand is not to be decoded. */
static bool gives_stored(const struct ttd_reader *reader)
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
    const char *violation = check_records(header);
    if (violation)
        return ttd_reader_fail(reader, TTD_ERROR_CORRUPT, violation, error);
    if (gives_stored(reader)) {
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

static enum ttd_status decode_events(struct ttd_reader *reader, struct ttd_batch *batch,
                                     struct ttd_error *error)
{
    enum ttd_status status = ttd_events_decoder_next(&reader->events, &batch->count);
    if (status == TTD_ERROR_NO_MEMORY)
        return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
    if (status != TTD_OK)
        return ttd_reader_fail(reader, TTD_ERROR_CORRUPT, reader->events.error, error);
    const struct ttd_event_buffer *events = reader->events.batch;
    batch->u.events = events->events;
    batch->addresses = events->addresses;
    batch->address_count = events->address_count;
    batch->first_ordinal = events->first_ordinal;
    return TTD_OK;
}

static enum ttd_status decode_stacks(struct ttd_reader *reader, struct ttd_batch *batch,
                                     size_t count, struct ttd_error *error)
{
    const char *what = NULL;
    struct ttd_stack_link links[TTD_RECORD_BATCH];
    ttd_id first = reader->stacks.next_id;
    if (!ttd_stacks_decoder_next(&reader->stacks, links, count, &what))
        return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
    if (!what && count == reader->records_left)
        what = ttd_stacks_decoder_finish(&reader->stacks);
    if (what)
        return ttd_reader_fail(reader, TTD_ERROR_CORRUPT, what, error);
    for (size_t i = 0; i < count; i++)
        reader->records.stacks[i] =
            ttd_stacks_decoder_stack(&reader->stacks, first + (ttd_id)i, links[i]);
    batch->u.stacks = reader->records.stacks;
    batch->count = count;
    return TTD_OK;
}

enum ttd_status ttd_reader_decode(struct ttd_reader *reader, struct ttd_batch *batch,
                                  struct ttd_error *error)
{
    unsigned kind = reader->header.kind;
    batch->kind = ttd_kind_of_records(kind);
    batch->chunk = ttd_chunk_of(&reader->header);
    batch->stored = NULL;
    batch->decompressed = NULL;
    size_t count =
        reader->records_left < TTD_RECORD_BATCH ? reader->records_left : TTD_RECORD_BATCH;
    enum ttd_status status = TTD_OK;
    if (gives_stored(reader)) {
        batch->stored = reader->source.stored.data;
        if (reader->is_checked)
            batch->decompressed = ttd_source_raw(&reader->source, &reader->header);
        batch->u.stacks = NULL;
        batch->count = count = reader->records_left;
    } else if (kind == TTD_KIND_EVENTS) {
        status = decode_events(reader, batch, error);
        count = status == TTD_OK ? batch->count : 0;
    } else if (kind == TTD_KIND_STACKS) {
        status = decode_stacks(reader, batch, count, error);
    } else {
        status = ttd_reader_decode_records(reader, batch, &count, error);
    }
    if (status != TTD_OK)
        return status;
    reader->records_left -= (uint32_t)count;
    reader->next_record += count;
    return TTD_OK;
}
