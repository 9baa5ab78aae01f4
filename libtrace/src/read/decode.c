/* SPDX-License-Identifier: MIT */
/* From payloads to batches: events and stacks; the other kinds are in decode_records.c. */
#include "codec/chunk/payload.h"
#include "read/internal.h"

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
