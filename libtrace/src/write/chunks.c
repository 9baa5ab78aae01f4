/* SPDX-License-Identifier: MIT */
#include "write/internal.h"

#include "base/status.h"

/** Buffered bytes of one kind from which on they are written out. */
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

static bool is_name(uint16_t kind)
{
    return kind == TTD_KIND_STRINGS || kind == TTD_KIND_SYMBOLS || kind == TTD_KIND_VARIABLES;
}

/** Hands a payload to the emitter. */
static enum ttd_status chunks_put(struct ttd_writer *writer, const struct ttd_emission *emission,
                                  const struct ttd_buffer *payload)
{
    if (payload->failed)
        return ttd_writer_break(writer, TTD_ERROR_NO_MEMORY, "memory");
    if (writer->adds_names && !is_name(emission->kind))
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
    enum ttd_status status = chunks_put(writer, &emission, &writer->payload);
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

static size_t buffered(const struct ttd_writer *writer, enum ttd_kind kind)
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
    if (writer->records[kind].count < TTD_RECORDS_MAX && buffered(writer, kind) < FLUSH_SIZE)
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

static enum ttd_status flush_kind(struct ttd_writer *writer, enum ttd_kind kind)
{
    struct ttd_record_buffer *records = &writer->records[kind];
    if (records->count == 0)
        return TTD_OK;
    /* Stacks are collected in columns of their own, which become a payload only now. */
    if (kind == TTD_KIND_STACKS) {
        ttd_stacks_encoder_finish(&writer->stacks, &records->payload);
        ttd_stacks_encoder_clear(&writer->stacks);
    }
    struct ttd_emission emission = {(uint16_t)kind, records->next_record - records->count,
                                    records->count,
                                    records->has_position ? records->first : writer->position,
                                    records->has_position ? records->last : writer->position};
    enum ttd_status status = chunks_put(writer, &emission, &records->payload);
    ttd_buffer_clear(&records->payload);
    records->count = 0;
    records->has_position = false;
    return status;
}

enum ttd_status ttd_writer_flush_records(struct ttd_writer *writer)
{
    /* Definitions come before the records that refer to them. */
    static const enum ttd_kind order[] = {
        TTD_KIND_STRINGS,      TTD_KIND_MODULES, TTD_KIND_THREADS,   TTD_KIND_HEAPS,
        TTD_KIND_HEAP_PARENTS, TTD_KIND_STACKS,  TTD_KIND_SYMBOLS,   TTD_KIND_METADATA,
        TTD_KIND_USER_EVENTS,  TTD_KIND_LOSSES,  TTD_KIND_STATES,    TTD_KIND_SUMS,
        TTD_KIND_VARIABLES,    TTD_KIND_FRAMES,  TTD_KIND_SNAPSHOTS, TTD_KIND_FATAL_SIGNALS};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        enum ttd_status status = flush_kind(writer, order[i]);
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
    /* Events refer to definitions, which a reader must have seen before. */
    enum ttd_status status = ttd_writer_flush_records(writer);
    if (status != TTD_OK)
        return status;
    struct ttd_emission emission = {TTD_KIND_EVENTS, writer->event_count - events->count,
                                    events->count, events->first, events->state.effect};
    ttd_events_encoder_finish(events, &writer->payload);
    status = chunks_put(writer, &emission, &writer->payload);
    ttd_buffer_clear(&writer->payload);
    ttd_events_encoder_clear(events);
    return status;
}
