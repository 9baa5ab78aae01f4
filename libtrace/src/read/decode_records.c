/* SPDX-License-Identifier: MIT */
/* From payloads to batches: all kinds but events and stacks, one record after the other. */
#include "base/memory.h"
#include "codec/chunk/fixed.h"
#include "codec/heap_state/memory_map.h"
#include "codec/heap_state/pages.h"
#include "codec/records.h"
#include "codec/snapshots/snapshots.h"
#include "codec/heap_state/states.h"
#include "read/internal.h"

/** Bytes of a block, and of a run of a memory map, at least. */
#define BLOCK_SIZE_MIN TTD_BLOCK_COLUMN_COUNT
#define RUN_SIZE_MIN   4

/** Symbol frames of a batch from which on it is not filled further. */
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
