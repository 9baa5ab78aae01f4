/* SPDX-License-Identifier: MIT */
#include <ttdtrace/writer.h>

#include "base/memory.h"
#include "base/status.h"
#include "codec/chunk/fixed.h"
#include "write/internal.h"

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
    /* Only recover, which has an emitter of its own, makes traces without a unit. */
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
    for (size_t i = 0; i < TTD_RECORD_KINDS; i++)
        ttd_buffer_init(&writer->records[i].payload, allocator);
    /* Ids begin at 1: 0 is TTD_NONE. */
    writer->records[TTD_KIND_STRINGS].next_record = 1;
    writer->records[TTD_KIND_STACKS].next_record = 1;
    writer->records[TTD_KIND_HEAPS].next_record = 1;
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

static int close_output(const struct ttd_output *output)
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
        close_output(output);
        return ttd_fail(error, TTD_ERROR_ARGUMENT, violation, TTD_NOWHERE, TTD_NOWHERE);
    }
    struct ttd_allocator table = ttd_allocator_or_default(allocator);
    struct ttd_writer *result = ttd_allocate_zeroed(&table, sizeof *result);
    if (!result) {
        close_output(output);
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
        close_output(output);
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
    int reason = close_output(&writer->output);
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
