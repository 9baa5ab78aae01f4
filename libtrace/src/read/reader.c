/* SPDX-License-Identifier: MIT */
#include <ttdtrace/reader.h>

#include <ttdtrace/advanced.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "codec/chunk/header.h"
#include "read/read_internal.h"

struct ttd_reader_options ttd_reader_options_default(void)
{
    return (struct ttd_reader_options){.size = sizeof(struct ttd_reader_options),
                                       .kinds = TTD_KINDS_ALL,
                                       .event_batches = 1,
                                       .search_max = TTD_SEARCH_MAX};
}

static const char *reader_check_options(const struct ttd_input *input,
                                        const struct ttd_reader_options *options,
                                        const struct ttd_allocator *allocator)
{
    if (!input->read_at || !input->size)
        return "input";
    if (options && options->size != sizeof *options)
        return "size of the options";
    if (options && (options->event_batches == 0 || options->event_batches > TTD_EVENT_BATCHES_MAX))
        return "event_batches";
    return ttd_allocator_is_valid(allocator) ? NULL : "allocator";
}

void ttd_reader_close(struct ttd_reader *reader)
{
    if (!reader)
        return;
    /* A copy: the reader itself is released with it. */
    struct ttd_allocator allocator = reader->allocator;
    ttd_check_free(reader);
    ttd_directory_free(&reader->source.directory, &allocator);
    ttd_source_free(&reader->source);
    ttd_events_decoder_free(&reader->events);
    ttd_stacks_decoder_free(&reader->stacks);
    ttd_release(&allocator, reader->frames);
    ttd_release(&allocator, reader->items);
    ttd_release(&allocator, reader);
}

/** Reads the first chunk. */
static enum ttd_status read_first(struct ttd_reader *reader, struct ttd_error *error)
{
    uint8_t magic[TTD_MAGIC_SIZE];
    enum ttd_status status = ttd_source_read(&reader->source, 0, magic, sizeof magic, error);
    /* A file shorter than a magic is no trace; one with it may be a trace that was cut short. */
    if (status == TTD_ERROR_TRUNCATED || (status == TTD_OK && !ttd_is_magic(magic, sizeof magic)))
        return ttd_fail(error, TTD_ERROR_NOT_A_TRACE, "magic", 0, TTD_NOWHERE);
    if (status != TTD_OK)
        return status;
    struct ttd_header header;
    status = ttd_source_header(&reader->source, 0, &header, error);
    if (status != TTD_OK)
        return status;
    if (header.number != 0 || header.kind != TTD_KIND_TRACE)
        return ttd_fail(error, TTD_ERROR_CORRUPT, "first chunk", 0, header.number);
    struct ttd_batch batch;
    status = ttd_reader_begin(reader, &header, error);
    if (status == TTD_OK)
        status = ttd_reader_decode(reader, &batch, error);
    if (status != TTD_OK)
        return status;
    reader->trace = *batch.u.trace;
    reader->source.trace_id = header.trace_id;
    return TTD_OK;
}

/** Reads the trace_id of a good header; the file may have its chunk in part only. */
static enum ttd_status read_trace_id(struct ttd_source *source, uint64_t offset, uint64_t *trace_id,
                                     struct ttd_error *error)
{
    uint8_t bytes[TTD_HEADER_SIZE];
    struct ttd_header header;
    const char *what;
    enum ttd_status status = ttd_source_read(source, offset, bytes, sizeof bytes, error);
    if (status != TTD_OK)
        return status;
    status = ttd_header_decode(bytes, &header, &what);
    if (status != TTD_OK)
        return ttd_fail(error, status, what, offset, TTD_NOWHERE);
    *trace_id = header.trace_id;
    return TTD_OK;
}

/** Goes on without the first chunk if there is any other; else fails for the `reason` that the
 * first one is no good. */
static enum ttd_status reader_open_damaged(struct ttd_reader *reader,
                                           const struct ttd_error *reason, struct ttd_error *error)
{
    uint64_t first_offset;
    struct ttd_error failure;
    /* A first chunk that is cut short has a good header. */
    uint64_t search_offset = reason->status == TTD_ERROR_TRUNCATED ? TTD_ALIGNMENT : 0;
    enum ttd_status status =
        ttd_source_resync(&reader->source, search_offset, 0, &first_offset, &failure);
    uint64_t trace_id = 0;
    if (status == TTD_OK)
        status = read_trace_id(&reader->source, first_offset, &trace_id, &failure);
    else if (status == TTD_END || status == TTD_ERROR_LIMIT)
        failure = *reason;
    if (status != TTD_OK) {
        *error = failure;
        return failure.status;
    }
    reader->source.trace_id = trace_id;
    /* Only the id is known: every header repeats it. */
    reader->trace = (struct ttd_trace){.trace_id = trace_id};
    return TTD_OK;
}

static enum ttd_status reader_open_checked(struct ttd_reader *reader, struct ttd_error *error)
{
    enum ttd_status status = ttd_source_refresh(&reader->source, error);
    if (status != TTD_OK)
        return status;
    struct ttd_error reason = {.what = ""};
    status = read_first(reader, &reason);
    if (reader->options.tolerant && (status == TTD_ERROR_NOT_A_TRACE ||
                                     status == TTD_ERROR_CORRUPT || status == TTD_ERROR_TRUNCATED))
        status = reader_open_damaged(reader, &reason, &reason);
    if (status == TTD_OK)
        return ttd_reader_rewind(reader, reader->options.kinds);
    if (error)
        *error = reason;
    return status;
}

enum ttd_status ttd_reader_open(const struct ttd_input *input,
                                const struct ttd_reader_options *options,
                                const struct ttd_allocator *allocator, struct ttd_reader **reader,
                                struct ttd_error *error)
{
    if (!input)
        return ttd_fail(error, TTD_ERROR_ARGUMENT, "input", TTD_NOWHERE, TTD_NOWHERE);
    const char *violation = reader ? reader_check_options(input, options, allocator) : "reader";
    struct ttd_allocator table = ttd_allocator_or_default(violation ? NULL : allocator);
    struct ttd_reader *result = violation ? NULL : ttd_allocate_zeroed(&table, sizeof *result);
    if (!result) {
        if (input->close)
            input->close(input->context);
        return ttd_fail(error, violation ? TTD_ERROR_ARGUMENT : TTD_ERROR_NO_MEMORY,
                        violation ? violation : "memory", TTD_NOWHERE, TTD_NOWHERE);
    }
    result->allocator = table;
    result->options = options ? *options : ttd_reader_options_default();
    ttd_source_init(&result->source, input, &result->allocator);
    result->source.search_max = result->options.search_max;
    ttd_events_decoder_init(&result->events, &result->allocator, result->options.event_batches);
    ttd_stacks_decoder_init(&result->stacks, &result->allocator);
    enum ttd_status status = reader_open_checked(result, error);
    if (status != TTD_OK) {
        ttd_reader_close(result);
        return status;
    }
    *reader = result;
    return TTD_OK;
}

uint32_t ttd_reader_event_batches(const struct ttd_reader *reader)
{
    return reader->options.event_batches;
}

enum ttd_status ttd_reader_keep_batches(struct ttd_reader *reader, uint32_t count)
{
    if (!count || count > reader->options.event_batches)
        return TTD_ERROR_ARGUMENT;
    reader->events.buffers_kept = count;
    return TTD_OK;
}

const struct ttd_trace *ttd_reader_trace(const struct ttd_reader *reader)
{
    return &reader->trace;
}

uint64_t ttd_reader_offset(const struct ttd_reader *reader)
{
    return reader->offset;
}

uint64_t ttd_reader_size(const struct ttd_reader *reader)
{
    return reader->source.size;
}

enum ttd_status ttd_reader_rewind(struct ttd_reader *reader, uint32_t kinds)
{
    reader->options.kinds = kinds;
    reader->failed = false;
    reader->offset = 0;
    reader->next_number = 0;
    reader->next_event = 0;
    reader->position = ttd_position_min();
    reader->has_ended = false;
    reader->end_judged = false;
    reader->scanning = false;
    reader->first_is_told = false;
    reader->gap.pending = false;
    reader->rest_is_lost = false;
    reader->records_left = 0;
    reader->checks = false;
    reader->leaves_events = false;
    reader->source.searched = 0;
    return TTD_OK;
}

enum ttd_status ttd_reader_rewind_checked(struct ttd_reader *reader, uint32_t kinds)
{
    enum ttd_status status = ttd_reader_rewind(reader, kinds);
    if (status == TTD_OK)
        ttd_check_begin(reader);
    return status;
}

enum ttd_status ttd_reader_rewind_unread(struct ttd_reader *reader, uint32_t kinds)
{
    enum ttd_status status = ttd_reader_rewind_checked(reader, kinds);
    reader->leaves_events = true;
    return status;
}

struct ttd_defined ttd_reader_defined(const struct ttd_reader *reader)
{
    const struct ttd_id_check *ids = &reader->check.ids;
    if (ids->unknown)
        return (struct ttd_defined){UINT32_MAX, UINT32_MAX, UINT32_MAX};
    return (struct ttd_defined){ids->stacks, ids->threads, ids->heaps};
}

bool ttd_reader_rest(const struct ttd_reader *reader, struct ttd_loss *loss)
{
    if (reader->has_ended || reader->rest_is_lost)
        return false;
    *loss = (struct ttd_loss){.reason = TTD_LOSS_DAMAGE,
                              .count = TTD_UNKNOWN,
                              .last_good = reader->position,
                              .first_good = ttd_position_invalid()};
    return true;
}

bool ttd_reader_is_intact(const struct ttd_reader *reader)
{
    return reader->is_intact;
}

/** Reads the End chunk; `bytes` has room for it, and holds its header first. */
static enum ttd_status reader_read_end(struct ttd_reader *reader, uint8_t bytes[TTD_END_CHUNK_SIZE],
                                       struct ttd_end *end)
{
    struct ttd_error error;
    enum ttd_status status = ttd_source_refresh(&reader->source, &error);
    if (status != TTD_OK)
        return status;
    uint64_t size = reader->source.size;
    if (size < TTD_END_CHUNK_SIZE)
        return TTD_END;
    /* It has a fixed size, so that it is found without reading the file. */
    uint64_t offset = size - TTD_END_CHUNK_SIZE;
    status = ttd_source_read(&reader->source, offset, bytes, TTD_END_CHUNK_SIZE, &error);
    if (status != TTD_OK)
        return status == TTD_ERROR_TRUNCATED ? TTD_END : status;
    struct ttd_header header;
    const char *what;
    status = ttd_header_decode(bytes, &header, &what);
    if (status == TTD_ERROR_NOT_A_TRACE)
        return TTD_END;
    if (status != TTD_OK || header.trace_id != reader->source.trace_id || header.offset != offset)
        return TTD_ERROR_CORRUPT;
    if (header.kind != TTD_KIND_END)
        return TTD_END;
    /* A header may be right and its chunk not an End: all that is fixed is compared. */
    if (header.codec != TTD_CODEC_RAW || header.stored_size != TTD_END_PAYLOAD_SIZE ||
        header.record_count != 1 || header.first_record != 0 ||
        ttd_hash(bytes + TTD_HEADER_SIZE, TTD_END_PAYLOAD_SIZE) != header.payload_hash)
        return TTD_ERROR_CORRUPT;
    struct ttd_cursor cursor = ttd_cursor_of(bytes + TTD_HEADER_SIZE, TTD_END_PAYLOAD_SIZE);
    ttd_decode_end(&cursor, end);
    return cursor.error ? TTD_ERROR_CORRUPT : TTD_OK;
}

enum ttd_status ttd_reader_end(struct ttd_reader *reader, struct ttd_end *end)
{
    uint8_t bytes[TTD_END_CHUNK_SIZE];
    struct ttd_end result;
    enum ttd_status status = reader_read_end(reader, bytes, &result);
    if (status == TTD_OK)
        *end = result;
    return status;
}

enum ttd_status ttd_reader_tie(struct ttd_reader *reader, struct ttd_trace *derived)
{
    uint8_t bytes[TTD_END_CHUNK_SIZE];
    struct ttd_end end;
    enum ttd_status status = reader_read_end(reader, bytes, &end);
    if (status != TTD_OK && status != TTD_END)
        return status;
    derived->source_trace_id = reader->source.trace_id;
    derived->source_size = reader->source.size;
    derived->source_hash = status == TTD_OK ? ttd_get64(bytes + TTD_HEADER_HASH) : 0;
    return TTD_OK;
}
