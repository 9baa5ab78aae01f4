/* SPDX-License-Identifier: MIT */
#include <ttdtrace/writer.h>

#include "base/fail.h"
#include "base/memory.h"
#include "codec/chunk/header.h"
#include "write/write_internal.h"

/** Number of buffered bytes of one kind that makes them be written out. */
#define FLUSH_SIZE (UINT32_C(1) << 20)

enum ttd_status ttd_writer_refuse(struct ttd_writer *writer, const char *what)
{
    return ttd_fail(&writer->error, TTD_ERROR_ARGUMENT, what, TTD_NOWHERE, TTD_NOWHERE);
}

enum ttd_status ttd_writer_limit(struct ttd_writer *writer, const char *what)
{
    return ttd_fail(&writer->error, TTD_ERROR_LIMIT, what, TTD_NOWHERE, TTD_NOWHERE);
}

enum ttd_status ttd_writer_break(struct ttd_writer *writer, enum ttd_status status,
                                 const char *what)
{
    writer->failed = true;
    return ttd_fail(&writer->error, status, what, writer->emitter.offset, writer->emitter.number);
}

/** Hands a payload to the emitter. */
static enum ttd_status writer_chunks_put(struct ttd_writer *writer,
                                         const struct ttd_emission *emission,
                                         const struct ttd_buffer *payload)
{
    if (payload->failed)
        return ttd_writer_break(writer, TTD_ERROR_NO_MEMORY, "memory");
    if (writer->adds_names && !ttd_kind_has(emission->kind, TTD_KIND_IS_NAME))
        return ttd_writer_break(writer, TTD_ERROR_MISUSE, "only names can be added");
    enum ttd_status status =
        ttd_emitter_put(&writer->emitter, emission, payload->data, payload->size);
    if (status != TTD_OK) {
        writer->failed = true;
        writer->error = writer->emitter.error;
    }
    return status;
}

enum ttd_status ttd_writer_put_payload(struct ttd_writer *writer, enum ttd_kind kind,
                                       uint64_t first_record, uint32_t record_count,
                                       struct ttd_position position)
{
    struct ttd_emission emission = {(uint16_t)kind, first_record, record_count, position, position};
    enum ttd_status status = writer_chunks_put(writer, &emission, &writer->payload);
    /* Its memory is kept for the next payload. */
    ttd_buffer_clear(&writer->payload);
    return status;
}

enum ttd_status ttd_writer_put_records(struct ttd_writer *writer, enum ttd_kind kind, size_t count,
                                       struct ttd_position position)
{
    struct ttd_record_buffer *records = &writer->records[kind];
    enum ttd_status status =
        ttd_writer_put_payload(writer, kind, records->next_record, (uint32_t)count, position);
    if (status == TTD_OK)
        records->next_record += count;
    return status;
}

static size_t writer_buffered(const struct ttd_writer *writer, enum ttd_kind kind)
{
    return kind == TTD_KIND_STACKS ? ttd_stacks_encoder_size(&writer->stacks)
                                   : writer->records[kind].payload.size;
}

enum ttd_status ttd_writer_begin_record(struct ttd_writer *writer, enum ttd_kind kind,
                                        const char *violation)
{
    if (violation)
        return ttd_writer_refuse(writer, violation);
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    if (writer->records[kind].count < TTD_RECORDS_MAX && writer_buffered(writer, kind) < FLUSH_SIZE)
        return TTD_OK;
    return ttd_writer_flush_records(writer);
}

enum ttd_status ttd_writer_begin_chunk(struct ttd_writer *writer, const char *violation)
{
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    return violation ? ttd_writer_refuse(writer, violation) : ttd_writer_flush(writer);
}

enum ttd_status ttd_writer_end_record(struct ttd_writer *writer, enum ttd_kind kind)
{
    if (writer->records[kind].payload.failed)
        return ttd_writer_break(writer, TTD_ERROR_NO_MEMORY, "memory");
    writer->records[kind].count++;
    writer->records[kind].next_record++;
    return TTD_OK;
}

void ttd_writer_touch(struct ttd_writer *writer, enum ttd_kind kind, struct ttd_position position)
{
    struct ttd_record_buffer *records = &writer->records[kind];
    /* A loss without an end has no last position. */
    if (!ttd_position_is_valid(position))
        return;
    if (!records->has_position || ttd_position_compare(position, records->first) < 0)
        records->first = position;
    if (!records->has_position || ttd_position_compare(position, records->last) > 0)
        records->last = position;
    records->has_position = true;
}

static enum ttd_status writer_flush_kind(struct ttd_writer *writer, enum ttd_kind kind)
{
    struct ttd_record_buffer *records = &writer->records[kind];
    if (records->count == 0)
        return TTD_OK;
    /* Stacks are collected in columns of their own; these become a payload only now. */
    if (kind == TTD_KIND_STACKS) {
        ttd_stacks_encoder_finish(&writer->stacks, &records->payload);
        ttd_stacks_encoder_clear(&writer->stacks);
    }
    struct ttd_emission emission = {(uint16_t)kind, records->next_record - records->count,
                                    records->count,
                                    records->has_position ? records->first : writer->position,
                                    records->has_position ? records->last : writer->position};
    enum ttd_status status = writer_chunks_put(writer, &emission, &records->payload);
    ttd_buffer_clear(&records->payload);
    records->count = 0;
    records->has_position = false;
    return status;
}

enum ttd_status ttd_writer_flush_records(struct ttd_writer *writer)
{
    /* Definitions come before the records that refer to them. Kinds whose chunks are written at
     * once have no records here. */
#define IN_ORDER(name, ...) TTD_KIND_##name,
    static const enum ttd_kind order[] = {TTD_KINDS(IN_ORDER, IN_ORDER)};
#undef IN_ORDER
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        enum ttd_status status = writer_flush_kind(writer, order[i]);
        if (status != TTD_OK)
            return status;
    }
    return TTD_OK;
}

enum ttd_status ttd_writer_flush_events(struct ttd_writer *writer)
{
    struct ttd_events_encoder *events = &writer->events;
    if (events->count == 0)
        return TTD_OK;
    /* Events refer to definitions that a reader must have seen before. */
    enum ttd_status status = ttd_writer_flush_records(writer);
    if (status != TTD_OK)
        return status;
    struct ttd_emission emission = {TTD_KIND_EVENTS, writer->event_count - events->count,
                                    events->count, events->first, events->state.effect};
    ttd_events_encoder_finish(events, &writer->payload);
    status = writer_chunks_put(writer, &emission, &writer->payload);
    ttd_buffer_clear(&writer->payload);
    ttd_events_encoder_clear(events);
    return status;
}

#define LEVEL_MAX 12

struct ttd_writer_options ttd_writer_options_default(void)
{
    return (struct ttd_writer_options){sizeof(struct ttd_writer_options), TTD_CODEC_LZ4, 0,
                                       TTD_RECORDS_MAX};
}

/** Validates the arguments of an open. Returns a description of the first violation, or NULL. */
static const char *writer_check_open(const struct ttd_trace *trace,
                                     const struct ttd_writer_options *options,
                                     const struct ttd_allocator *allocator)
{
    if (!trace)
        return "trace";
    if (!ttd_allocator_is_valid(allocator))
        return "allocator";
    if (options) {
        if (options->size != sizeof *options)
            return "size of the options";
        if (options->codec != TTD_CODEC_RAW && options->codec != TTD_CODEC_LZ4)
            return "codec";
        if (options->level < 0 || options->level > LEVEL_MAX)
            return "level";
        if (options->events_per_chunk == 0 || options->events_per_chunk > TTD_RECORDS_MAX)
            return "events_per_chunk";
    }
    /* Only recover (it has an emitter of its own) makes traces without a unit. */
    return trace->time_unit ? ttd_check_trace(trace) : "time_unit 0";
}

static int writer_emit(void *context, const void *data, size_t size)
{
    struct ttd_writer *writer = context;
    return writer->output.write(writer->output.context, data, size);
}

void ttd_writer_init_buffers(struct ttd_writer *writer, uint64_t time_unit)
{
    const struct ttd_allocator *allocator = &writer->allocator;
    writer->time_unit = time_unit;
    for (unsigned i = 0; i < TTD_RECORD_KINDS; i++) {
        ttd_buffer_init(&writer->records[i].payload, allocator);
        /* Ids begin at 1: 0 is TTD_NONE. */
        writer->records[i].next_record = ttd_kind_has(i, TTD_KIND_HAS_IDS);
    }
    writer->records[TTD_KIND_PAGES].next_record = TTD_PAGE_FIRST;
    ttd_stacks_encoder_init(&writer->stacks, allocator);
    ttd_events_encoder_init(&writer->events, allocator, time_unit);
    ttd_buffer_init(&writer->payload, allocator);
    for (size_t i = 0; i < TTD_BLOCK_COLUMN_COUNT; i++)
        ttd_buffer_init(&writer->columns[i], allocator);
    ttd_reference_encoder_init(&writer->references, allocator);
}

static void writer_init(struct ttd_writer *writer, const struct ttd_trace *trace)
{
    writer->derived = (trace->flags & TTD_TRACE_DERIVED) != 0;
    ttd_writer_init_buffers(writer, trace->time_unit);
    ttd_emitter_init(&writer->emitter, &writer->allocator, trace->trace_id, writer->options.codec,
                     writer->options.level, (struct ttd_emitter_sink){writer_emit, writer});
}

void ttd_writer_release(struct ttd_writer *writer)
{
    ttd_emitter_free(&writer->emitter);
    for (size_t i = 0; i < TTD_RECORD_KINDS; i++)
        ttd_buffer_free(&writer->records[i].payload);
    ttd_stacks_encoder_free(&writer->stacks);
    ttd_events_encoder_free(&writer->events);
    ttd_buffer_free(&writer->payload);
    for (size_t i = 0; i < TTD_BLOCK_COLUMN_COUNT; i++)
        ttd_buffer_free(&writer->columns[i]);
    ttd_reference_encoder_free(&writer->references);
    struct ttd_allocator allocator = writer->allocator;
    ttd_release(&allocator, writer);
}

static int writer_close_output(const struct ttd_output *output)
{
    return output->close ? output->close(output->context) : 0;
}

enum ttd_status ttd_writer_open(const struct ttd_output *output, const struct ttd_trace *trace,
                                const struct ttd_writer_options *options,
                                const struct ttd_allocator *allocator, struct ttd_writer **writer,
                                struct ttd_error *error)
{
    if (!output || !output->write)
        return ttd_fail(error, TTD_ERROR_ARGUMENT, "output", TTD_NOWHERE, TTD_NOWHERE);
    const char *violation = writer ? writer_check_open(trace, options, allocator) : "writer";
    /* The output is taken over, also on failure. */
    if (violation) {
        writer_close_output(output);
        return ttd_fail(error, TTD_ERROR_ARGUMENT, violation, TTD_NOWHERE, TTD_NOWHERE);
    }
    struct ttd_allocator table = ttd_allocator_or_default(allocator);
    struct ttd_writer *result = ttd_allocate_zeroed(&table, sizeof *result);
    if (!result) {
        writer_close_output(output);
        return ttd_fail(error, TTD_ERROR_NO_MEMORY, "memory", TTD_NOWHERE, TTD_NOWHERE);
    }
    result->allocator = table;
    result->output = *output;
    result->options = options ? *options : ttd_writer_options_default();
    writer_init(result, trace);
    ttd_encode_trace(&result->payload, trace);
    enum ttd_status status =
        ttd_writer_put_payload(result, TTD_KIND_TRACE, 0, 1, ttd_position_min());
    if (status != TTD_OK) {
        if (error)
            *error = result->error;
        writer_close_output(output);
        ttd_writer_release(result);
        return status;
    }
    *writer = result;
    return TTD_OK;
}

enum ttd_status ttd_writer_flush(struct ttd_writer *writer)
{
    if (writer->failed)
        return TTD_ERROR_MISUSE;
    enum ttd_status status = ttd_writer_flush_records(writer);
    return status == TTD_OK ? ttd_writer_flush_events(writer) : status;
}

enum ttd_status ttd_writer_close(struct ttd_writer *writer, const struct ttd_end *end,
                                 struct ttd_error *error)
{
    if (!writer)
        return TTD_OK;
    enum ttd_status status = ttd_writer_flush(writer);
    if (status == TTD_OK && end) {
        status = ttd_emitter_end(&writer->emitter, end, writer->lost_events);
        if (status != TTD_OK)
            writer->error = writer->emitter.error;
    }
    if (status != TTD_OK && error)
        *error = writer->error;
    /* An error that came before is the one to report: closing may fail because of it. */
    int reason = writer_close_output(&writer->output);
    if (reason != 0 && status == TTD_OK)
        status = ttd_fail_system(error, reason, "close", TTD_NOWHERE);
    ttd_writer_release(writer);
    return status;
}

struct ttd_error ttd_writer_error(const struct ttd_writer *writer)
{
    return writer->error;
}

uint64_t ttd_writer_bytes(const struct ttd_writer *writer)
{
    return writer->emitter.offset;
}

enum ttd_status ttd_writer_begin_names(const struct ttd_written *written,
                                       const struct ttd_allocator *allocator,
                                       struct ttd_writer **writer)
{
    struct ttd_writer *result = ttd_allocate_zeroed(allocator, sizeof *result);
    if (!result)
        return TTD_ERROR_NO_MEMORY;
    result->allocator = *allocator;
    result->options = ttd_writer_options_default();
    result->adds_names = true;
    ttd_writer_init_buffers(result, 1);
    result->emitter = *written->emitter;
    result->position = result->emitter.position;
    result->strings = written->strings;
    result->modules = written->modules;
    result->records[TTD_KIND_STRINGS].next_record = (uint64_t)written->strings + 1;
    result->records[TTD_KIND_SYMBOLS].next_record = written->symbols;
    result->records[TTD_KIND_VARIABLES].next_record = written->variables;
    *writer = result;
    return TTD_OK;
}

enum ttd_status ttd_writer_end_names(struct ttd_writer *writer, const struct ttd_written *written)
{
    enum ttd_status status = ttd_writer_flush(writer);
    struct ttd_error error = writer->error;
    /* A writer that has failed before says so; its first failure is the reason. */
    if (status == TTD_ERROR_MISUSE)
        status = error.status;
    *written->emitter = writer->emitter;
    written->emitter->error = error;
    writer->emitter = (struct ttd_emitter){.allocator = NULL};
    ttd_writer_release(writer);
    return status;
}
