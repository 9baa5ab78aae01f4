/* SPDX-License-Identifier: MIT */
#include <ttdtrace/advanced.h>

#include "base/fail.h"
#include "base/memory.h"
#include "codec/events/netting.h"
#include "read/read_internal.h"

struct ttd_netter {
    struct ttd_allocator allocator;
    struct ttd_source source;
    uint64_t time_unit;
    struct ttd_netting netting;
};

enum ttd_status ttd_netter_open(const struct ttd_reader *reader, struct ttd_netter **netter)
{
    if (!reader || !netter)
        return TTD_ERROR_ARGUMENT;
    struct ttd_netter *result = ttd_allocate_zeroed(&reader->allocator, sizeof *result);
    if (!result)
        return TTD_ERROR_NO_MEMORY;
    result->allocator = reader->allocator;
    ttd_source_init(&result->source, &reader->source.input, &result->allocator);
    /* The reader closes its input. */
    result->source.input.close = NULL;
    result->source.size = reader->source.size;
    result->source.trace_id = reader->source.trace_id;
    result->time_unit = reader->trace.time_unit;
    ttd_netting_init(&result->netting, &result->allocator);
    *netter = result;
    return TTD_OK;
}

void ttd_netter_close(struct ttd_netter *netter)
{
    if (!netter)
        return;
    /* A copy: the netter itself is released with it. */
    struct ttd_allocator allocator = netter->allocator;
    ttd_source_free(&netter->source);
    ttd_netting_free(&netter->netting);
    ttd_release(&allocator, netter);
}

/** Whether a header is the one that a chunk was described by. */
static bool netter_is_same(const struct ttd_header *header, const struct ttd_chunk *chunk)
{
    return header->kind == chunk->kind && header->number == chunk->number &&
           header->stored_size == chunk->stored_size && header->raw_size == chunk->raw_size &&
           header->codec == chunk->codec && header->first_record == chunk->first_record &&
           header->record_count == chunk->record_count &&
           ttd_position_compare(header->first_position, chunk->first_position) == 0 &&
           ttd_position_compare(header->last_position, chunk->last_position) == 0;
}

/** Whether the tables of the chunk that was netted have only ids that are defined. */
static bool netter_is_defined(const struct ttd_event_state *events,
                              const struct ttd_defined *defined)
{
    bool is_defined = true;
    for (size_t i = 0; i < events->class_count; i++)
        is_defined &= events->classes[i].heap <= defined->heaps;
    for (size_t i = 1; i <= events->shape_count; i++)
        is_defined &= events->shapes[i].stack <= defined->stacks;
    for (size_t i = 0; i < events->thread_count; i++)
        is_defined &= events->threads[i].id <= defined->threads;
    return is_defined;
}

/** Reads the payload of a chunk, and nets it. */
static enum ttd_status netter_net_payload(struct ttd_netter *netter,
                                          const struct ttd_header *header, struct ttd_error *error)
{
    struct ttd_cursor payload;
    const char *violation = ttd_reader_check_records(header);
    if (violation)
        return ttd_fail(error, TTD_ERROR_CORRUPT, violation, header->offset, header->number);
    enum ttd_status status = ttd_source_payload(&netter->source, header, &payload, error);
    if (status != TTD_OK)
        return status;
    status = ttd_netting_chunk(&netter->netting, header, payload, netter->time_unit);
    if (status == TTD_OK)
        return TTD_OK;
    return ttd_fail(error, status,
                    status == TTD_ERROR_CORRUPT ? netter->netting.decoder.error : "memory",
                    header->offset, header->number);
}

enum ttd_status ttd_netter_net(struct ttd_netter *netter, const struct ttd_chunk *chunk,
                               const struct ttd_defined *defined, struct ttd_netted *netted,
                               struct ttd_error *error)
{
    struct ttd_header header;
    if (chunk->kind != TTD_KIND_EVENTS)
        return ttd_fail(error, TTD_ERROR_ARGUMENT, "kind of a chunk", chunk->offset, chunk->number);
    enum ttd_status status = ttd_source_header(&netter->source, chunk->offset, &header, error);
    if (status == TTD_END)
        return ttd_fail(error, TTD_ERROR_TRUNCATED, "a chunk is gone", chunk->offset,
                        chunk->number);
    if (status != TTD_OK)
        return status;
    if (!netter_is_same(&header, chunk))
        return ttd_fail(error, TTD_ERROR_CORRUPT, "a chunk has changed", chunk->offset,
                        chunk->number);
    status = netter_net_payload(netter, &header, error);
    if (status == TTD_OK && defined && !netter_is_defined(&netter->netting.decoder.state, defined))
        status = ttd_fail(error, TTD_ERROR_CORRUPT, "undefined identifier of an event",
                          header.offset, header.number);
    if (status == TTD_OK)
        *netted = netter->netting.netted;
    return status;
}

void ttd_netter_block(const struct ttd_netter *netter, const struct ttd_net *net,
                      struct ttd_net_block *block)
{
    ttd_netting_block(&netter->netting, net, block);
}

void ttd_netter_sum(struct ttd_netter *netter, const struct ttd_net_sum_options *options)
{
    netter->netting.sums.options = *options;
    netter->netting.sums.is_wanted = true;
}

void ttd_netter_site(const struct ttd_netter *netter, uint32_t number, struct ttd_net_site *site)
{
    ttd_netting_site(&netter->netting, number, site);
}

void ttd_netter_moment(const struct ttd_netter *netter, uint32_t index,
                       struct ttd_net_moment *moment)
{
    ttd_netting_moment(&netter->netting, index, moment);
}

bool ttd_netter_find(const struct ttd_netter *netter, uint64_t address,
                     struct ttd_position *position)
{
    return ttd_netting_find(&netter->netting, address, position);
}
