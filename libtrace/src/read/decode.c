/* SPDX-License-Identifier: MIT */
/* From payloads to batches, kind by kind. */
#include "read/internal.h"

#include "base/memory.h"
#include "base/status.h"
#include "codec/rows.h"

/** Bytes of a block, and of a run of a memory map, at least. */
#define BLOCK_SIZE_MIN TTD_BLOCK_COLUMN_COUNT
#define RUN_SIZE_MIN   4

/** Symbol frames of a batch from which on it is not filled further. */
#define FRAMES_ENOUGH 1024

static ttd_status corrupt(const ttd_reader *reader, const char *what, ttd_error *error)
{
    return ttd_fail(error, TTD_ERROR_CORRUPT, what, reader->header.offset, reader->header.number);
}

static ttd_status no_memory(const ttd_reader *reader, ttd_error *error)
{
    return ttd_fail(error, TTD_ERROR_NO_MEMORY, "memory", reader->header.offset,
                    reader->header.number);
}

/** What is wrong with the items of a chunk of a known kind; NULL if nothing. */
static const char *check_items(const ttd_header *header)
{
    switch (header->kind) {
    case TTD_KIND_LIVE_BLOCKS:
    case TTD_KIND_MEMORY_MAP:
        return NULL;
    case TTD_KIND_TRACE:
    case TTD_KIND_END:
        return header->item_count == 1 ? NULL : "number of items";
    case TTD_KIND_STRINGS:
    case TTD_KIND_STACKS:
    case TTD_KIND_HEAPS:
        if (header->first_item == 0 ||
            header->first_item + header->item_count > (uint64_t)UINT32_MAX + 1)
            return "identifiers of a chunk";
        break;
    default:
        break;
    }
    return header->item_count != 0 ? NULL : "number of items";
}

/** Whether the chunk at hand is not to be decoded. */
static bool gives_stored(const ttd_reader *reader)
{
    return reader->header.kind == TTD_KIND_STACKS && reader->options.stored_stacks;
}

ttd_status ttd_reader_begin(ttd_reader *reader, const ttd_header *header, ttd_error *error)
{
    reader->header = *header;
    reader->next_item = header->first_item;
    reader->symbol_offset = 0;
    const char *wrong = check_items(header);
    if (wrong)
        return corrupt(reader, wrong, error);
    if (gives_stored(reader)) {
        reader->left = header->item_count;
        return ttd_source_stored(&reader->source, header, error);
    }
    ttd_status status = ttd_source_payload(&reader->source, header, &reader->payload, error);
    if (status != TTD_OK)
        return status;
    if (header->kind == TTD_KIND_EVENTS) {
        status = ttd_events_decoder_begin(&reader->events, reader->payload, reader->trace.time_unit,
                                          header->first_item, header->item_count,
                                          header->first_position, header->last_position);
        if (status != TTD_OK)
            return ttd_fail(error, status, reader->events.error ? reader->events.error : "memory",
                            header->offset, header->number);
    }
    if (header->kind == TTD_KIND_STACKS) {
        ttd_stacks_decoder_begin(&reader->stacks, &reader->payload, (ttd_id)header->first_item);
        if (reader->payload.error)
            return corrupt(reader, reader->payload.error, error);
    }
    reader->left = header->item_count;
    if (header->item_count == 0)
        reader->left = 1; /* one list or map without entries */
    return TTD_OK;
}

static ttd_status decode_events(ttd_reader *reader, ttd_batch *batch, ttd_error *error)
{
    ttd_status status = ttd_events_decoder_next(&reader->events, &batch->count);
    if (status == TTD_ERROR_NO_MEMORY)
        return no_memory(reader, error);
    if (status != TTD_OK)
        return corrupt(reader, reader->events.error, error);
    const ttd_event_buffer *events = reader->events.batch;
    batch->u.events = events->events;
    batch->addresses = events->addresses;
    batch->address_count = events->address_count;
    batch->first_ordinal = events->first_ordinal;
    return TTD_OK;
}

static ttd_status decode_stacks(ttd_reader *reader, ttd_batch *batch, size_t count,
                                ttd_error *error)
{
    const char *what = NULL;
    ttd_stack_link links[TTD_ROW_BATCH];
    ttd_id first = reader->stacks.next_id;
    if (!ttd_stacks_decoder_next(&reader->stacks, links, count, &what))
        return no_memory(reader, error);
    if (!what && count == reader->left)
        what = ttd_stacks_decoder_finish(&reader->stacks);
    if (what)
        return corrupt(reader, what, error);
    for (size_t i = 0; i < count; i++)
        reader->rows.stacks[i] =
            ttd_stacks_decoder_stack(&reader->stacks, first + (ttd_id)i, links[i]);
    batch->u.stacks = reader->rows.stacks;
    batch->count = count;
    return TTD_OK;
}

/** Decodes up to `*count` symbols; fewer when they have many frames. */
static ttd_status decode_symbols(ttd_reader *reader, size_t *count, ttd_error *error)
{
    ttd_cursor *in = &reader->payload;
    size_t frames = 0;
    size_t n = 0;
    for (; n < *count && frames < FRAMES_ENOUGH; n++) {
        ttd_symbol *symbol = &reader->rows.symbols[n];
        ttd_decode_symbol(in, symbol, &reader->symbol_offset);
        void *array = reader->frames;
        if (ttd_grow_array(&reader->allocator, &array, &reader->frames_capacity,
                           frames + symbol->frame_count, sizeof *reader->frames))
            return no_memory(reader, error);
        reader->frames = array;
        for (uint32_t i = 0; i < symbol->frame_count; i++)
            ttd_decode_symbol_frame(in, &reader->frames[frames++]);
    }
    /* Only now the array stays where it is. */
    frames = 0;
    for (size_t i = 0; i < n; i++) {
        ttd_symbol *symbol = &reader->rows.symbols[i];
        symbol->frames = symbol->frame_count ? reader->frames + frames : NULL;
        frames += symbol->frame_count;
    }
    *count = n;
    return TTD_OK;
}

/** Reads `count` records of one of the other kinds. */
static void decode_rows(ttd_reader *reader, size_t count)
{
    ttd_cursor *in = &reader->payload;
    ttd_id id = (ttd_id)reader->next_item;
    for (size_t i = 0; i < count; i++) {
        switch (reader->header.kind) {
        case TTD_KIND_STRINGS:
            reader->rows.strings[i] = (ttd_string_definition){id++, ttd_decode_string(in)};
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
        default:
            ttd_decode_metadata(in, &reader->rows.metadata[i]);
            break;
        }
    }
}

/** Points the batch at the records of its kind. */
static void point(ttd_reader *reader, ttd_batch *batch)
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
static ttd_status decode_single(ttd_reader *reader, ttd_error *error)
{
    ttd_cursor *in = &reader->payload;
    const ttd_header *header = &reader->header;
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
            return no_memory(reader, error);
        reader->blocks = array;
        reader->rows.live_blocks = (ttd_live_blocks){.count = header->item_count};
        ttd_decode_live_blocks(in, &reader->rows.live_blocks, reader->blocks);
        break;
    case TTD_KIND_PAGES:
        reader->rows.pages =
            (ttd_pages){.first_page = header->first_item, .count = header->item_count};
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
            return no_memory(reader, error);
        reader->runs = array;
        reader->rows.memory_map = (ttd_memory_map){.count = header->item_count};
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

ttd_status ttd_reader_decode(ttd_reader *reader, ttd_batch *batch, ttd_error *error)
{
    unsigned kind = reader->header.kind;
    batch->kind = (ttd_kind)kind;
    batch->chunk = ttd_chunk_of(&reader->header);
    batch->stored = NULL;
    size_t count = reader->left < TTD_ROW_BATCH ? reader->left : TTD_ROW_BATCH;
    ttd_status status = TTD_OK;
    if (gives_stored(reader)) {
        batch->stored = reader->source.stored.data;
        batch->u.stacks = NULL;
        batch->count = count = reader->left;
    } else if (kind == TTD_KIND_EVENTS) {
        status = decode_events(reader, batch, error);
        count = status == TTD_OK ? batch->count : 0;
    } else if (kind == TTD_KIND_STACKS) {
        status = decode_stacks(reader, batch, count, error);
    } else {
        if (is_single(kind)) {
            count = reader->left;
            status = decode_single(reader, error);
        } else if (kind == TTD_KIND_SYMBOLS) {
            status = decode_symbols(reader, &count, error);
        } else {
            decode_rows(reader, count);
        }
        point(reader, batch);
        batch->count = is_single(kind) ? 1 : count;
        if (status == TTD_OK && count == reader->left)
            ttd_cursor_finish(&reader->payload);
        if (status == TTD_OK && reader->payload.error)
            status = corrupt(reader, reader->payload.error, error);
    }
    if (status != TTD_OK)
        return status;
    reader->left -= (uint32_t)count;
    reader->next_item += count;
    return TTD_OK;
}
