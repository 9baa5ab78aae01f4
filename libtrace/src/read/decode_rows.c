/* SPDX-License-Identifier: MIT */
/* From payloads to batches: all kinds but events and stacks, one record after the other. */
#include "base/memory.h"
#include "codec/rows.h"
#include "codec/states.h"
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
    struct ttd_cursor *in = &reader->payload;
    size_t frames = 0;
    size_t n = 0;
    for (; n < *count && frames < FRAMES_ENOUGH; n++) {
        struct ttd_symbol *symbol = &reader->rows.symbols[n];
        ttd_decode_symbol(in, symbol, &reader->symbol_offset);
        void *array = reader->frames;
        if (ttd_grow_array(&reader->allocator, &array, &reader->frames_capacity,
                           frames + symbol->frame_count, sizeof *reader->frames))
            return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
        reader->frames = array;
        for (uint32_t i = 0; i < symbol->frame_count; i++)
            ttd_decode_symbol_frame(in, &reader->frames[frames++]);
    }
    /* Only now the array stays where it is. */
    frames = 0;
    for (size_t i = 0; i < n; i++) {
        struct ttd_symbol *symbol = &reader->rows.symbols[i];
        symbol->frames = symbol->frame_count ? reader->frames + frames : NULL;
        frames += symbol->frame_count;
    }
    *count = n;
    return TTD_OK;
}

/** Reads `count` records of a kind that has several in a chunk, all of the same shape. */
static void decode_plain(struct ttd_reader *reader, size_t count)
{
    struct ttd_cursor *in = &reader->payload;
    ttd_id id = (ttd_id)reader->next_item;
    for (size_t i = 0; i < count; i++) {
        switch (reader->header.kind) {
        case TTD_KIND_STRINGS:
            reader->rows.strings[i] = (struct ttd_string_definition){id++, ttd_decode_string(in)};
            break;
        case TTD_KIND_MODULES:
            ttd_decode_module(in, &reader->rows.modules[i]);
            break;
        case TTD_KIND_THREADS:
            ttd_decode_thread(in, &reader->rows.threads[i]);
            break;
        case TTD_KIND_HEAPS:
            reader->rows.heaps[i].id = id++;
            ttd_decode_heap(in, &reader->rows.heaps[i]);
            break;
        case TTD_KIND_USER_EVENTS:
            ttd_decode_user_event(in, &reader->rows.user_events[i]);
            break;
        case TTD_KIND_LOSSES:
            ttd_decode_loss(in, &reader->rows.losses[i]);
            break;
        case TTD_KIND_STATES:
            ttd_decode_state(in, &reader->rows.states[i]);
            break;
        case TTD_KIND_SUMS:
            ttd_decode_sum(in, &reader->rows.sums[i]);
            break;
        default:
            ttd_decode_metadata(in, &reader->rows.metadata[i]);
            break;
        }
    }
}

/** Points the batch at the records of its kind. */
static void point(struct ttd_reader *reader, struct ttd_batch *batch)
{
    switch (reader->header.kind) {
    case TTD_KIND_TRACE:
        batch->u.trace = &reader->rows.trace;
        break;
    case TTD_KIND_STRINGS:
        batch->u.strings = reader->rows.strings;
        break;
    case TTD_KIND_MODULES:
        batch->u.modules = reader->rows.modules;
        break;
    case TTD_KIND_SYMBOLS:
        batch->u.symbols = reader->rows.symbols;
        break;
    case TTD_KIND_THREADS:
        batch->u.threads = reader->rows.threads;
        break;
    case TTD_KIND_HEAPS:
        batch->u.heaps = reader->rows.heaps;
        break;
    case TTD_KIND_USER_EVENTS:
        batch->u.user_events = reader->rows.user_events;
        break;
    case TTD_KIND_LOSSES:
        batch->u.losses = reader->rows.losses;
        break;
    case TTD_KIND_METADATA:
        batch->u.metadata = reader->rows.metadata;
        break;
    case TTD_KIND_STATES:
        batch->u.states = reader->rows.states;
        break;
    case TTD_KIND_SUMS:
        batch->u.sums = reader->rows.sums;
        break;
    case TTD_KIND_LIVE_BLOCKS:
        batch->u.live_blocks = &reader->rows.live_blocks;
        break;
    case TTD_KIND_PAGES:
        batch->u.pages = &reader->rows.pages;
        break;
    case TTD_KIND_MEMORY_MAP:
        batch->u.memory_map = &reader->rows.memory_map;
        break;
    default:
        batch->u.end = &reader->rows.end;
        break;
    }
}

/** Kinds whose chunk is a single record. */
static enum ttd_status decode_single(struct ttd_reader *reader, struct ttd_error *error)
{
    struct ttd_cursor *in = &reader->payload;
    const struct ttd_header *header = &reader->header;
    void *array;
    switch (header->kind) {
    case TTD_KIND_TRACE:
        ttd_decode_trace(in, &reader->rows.trace);
        reader->rows.trace.trace_id = header->trace_id;
        if (!in->error && ttd_check_trace(&reader->rows.trace))
            ttd_cursor_fail(in, ttd_check_trace(&reader->rows.trace));
        break;
    case TTD_KIND_LIVE_BLOCKS:
        if (header->item_count > ttd_cursor_left(in) / BLOCK_SIZE_MIN) {
            ttd_cursor_fail(in, "number of blocks");
            break;
        }
        array = reader->blocks;
        if (ttd_grow_array(&reader->allocator, &array, &reader->blocks_capacity, header->item_count,
                           sizeof *reader->blocks))
            return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
        reader->blocks = array;
        reader->rows.live_blocks = (struct ttd_live_blocks){.count = header->item_count};
        ttd_decode_live_blocks(in, &reader->rows.live_blocks, reader->blocks);
        break;
    case TTD_KIND_PAGES:
        reader->rows.pages =
            (struct ttd_pages){.first_page = header->first_item, .count = header->item_count};
        ttd_decode_pages(in, &reader->rows.pages);
        break;
    case TTD_KIND_MEMORY_MAP:
        if (header->item_count > ttd_cursor_left(in) / RUN_SIZE_MIN) {
            ttd_cursor_fail(in, "number of runs");
            break;
        }
        array = reader->runs;
        if (ttd_grow_array(&reader->allocator, &array, &reader->runs_capacity, header->item_count,
                           sizeof *reader->runs))
            return ttd_reader_fail(reader, TTD_ERROR_NO_MEMORY, "memory", error);
        reader->runs = array;
        reader->rows.memory_map = (struct ttd_memory_map){.count = header->item_count};
        ttd_decode_memory_map(in, &reader->rows.memory_map, reader->runs);
        break;
    default:
        ttd_decode_end(in, &reader->rows.end);
        break;
    }
    return TTD_OK;
}

static bool is_single(unsigned kind)
{
    return kind == TTD_KIND_TRACE || kind == TTD_KIND_LIVE_BLOCKS || kind == TTD_KIND_PAGES ||
           kind == TTD_KIND_MEMORY_MAP || kind == TTD_KIND_END;
}

enum ttd_status ttd_reader_decode_rows(struct ttd_reader *reader, struct ttd_batch *batch,
                                       size_t *count, struct ttd_error *error)
{
    bool single = is_single(reader->header.kind);
    enum ttd_status status = TTD_OK;
    if (single) {
        *count = reader->left;
        status = decode_single(reader, error);
    } else if (reader->header.kind == TTD_KIND_SYMBOLS) {
        status = decode_symbols(reader, count, error);
    } else {
        decode_plain(reader, *count);
    }
    point(reader, batch);
    batch->count = single ? 1 : *count;
    if (status == TTD_OK && *count == reader->left)
        ttd_cursor_finish(&reader->payload);
    if (status == TTD_OK && reader->payload.error)
        status = ttd_reader_fail(reader, TTD_ERROR_CORRUPT, reader->payload.error, error);
    return status;
}
