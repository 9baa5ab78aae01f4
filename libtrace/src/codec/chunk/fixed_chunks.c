/* SPDX-License-Identifier: MIT */

#include <string.h>

#include "codec/chunk/fixed_chunks.h"
#include "codec/columns.h"
#include "layout.h"

void ttd_encode_index_links(struct ttd_buffer *buffer, const struct ttd_index_links *links)
{
    ttd_buffer_put32(buffer, (uint32_t)links->count);
    ttd_buffer_put32(buffer, 0);
    for (size_t i = 0; i < links->count; i++) {
        const struct ttd_index_link *link = &links->links[i];
        ttd_buffer_put64(buffer, link->offset);
        ttd_buffer_put64(buffer, link->first_event);
        ttd_buffer_put64(buffer, link->position.sequence);
        ttd_buffer_put64(buffer, link->position.steps);
    }
}

void ttd_decode_index_links(struct ttd_cursor *cursor, struct ttd_index_links *links,
                            uint32_t entries)
{
    links->count = ttd_cursor_get32(cursor);
    ttd_cursor_reserved32(cursor);
    if (links->count == 0 || links->count > TTD_INDEX_LINKS_MAX || entries == 0 ||
        entries > TTD_INDEX_ENTRIES_MAX) {
        /* No link is read then: there may be no room for so many. */
        links->count = 0;
        ttd_cursor_fail(cursor, "size of an index");
    }
    for (size_t i = 0; i < links->count; i++) {
        struct ttd_index_link *link = &links->links[i];
        link->offset = ttd_cursor_get64(cursor);
        link->first_event = ttd_cursor_get64(cursor);
        link->position.sequence = ttd_cursor_get64(cursor);
        link->position.steps = ttd_cursor_get64(cursor);
        if (!ttd_position_is_valid(link->position))
            ttd_cursor_fail(cursor, "links of an index");
        /* Each link leads farther back than the one before, so that a search ends. */
        if (i > 0 && (link->offset >= links->links[i - 1].offset ||
                      ttd_position_compare(link->position, links->links[i - 1].position) > 0 ||
                      link->first_event > links->links[i - 1].first_event))
            ttd_cursor_fail(cursor, "links of an index");
    }
    if (ttd_cursor_left(cursor) != (size_t)entries * TTD_HEADER_SIZE)
        ttd_cursor_fail(cursor, "size of an index");
}

void ttd_encode_trace(struct ttd_buffer *buffer, const struct ttd_trace *trace)
{
    /* All zero first: the bytes between the fields are reserved. */
    uint8_t bytes[TTD_TRACE_SIZE] = {0};
    memcpy(bytes + TTD_TRACE_GROUP, trace->group.bytes, sizeof trace->group.bytes);
    ttd_put64(bytes + TTD_TRACE_PARENT_TRACE_ID, trace->parent_trace_id);
    ttd_put64(bytes + TTD_TRACE_PARENT_POSITION, trace->parent_position.sequence);
    ttd_put64(bytes + TTD_TRACE_PARENT_POSITION + 8, trace->parent_position.steps);
    ttd_put64(bytes + TTD_TRACE_START_TIME, (uint64_t)trace->start_time);
    ttd_put64(bytes + TTD_TRACE_TIME_UNIT, trace->time_unit);
    ttd_put64(bytes + TTD_TRACE_PROCESS_ID, trace->process_id);
    ttd_put64(bytes + TTD_TRACE_PARENT_PROCESS, trace->parent_process_id);
    ttd_put32(bytes + TTD_TRACE_FLAGS, trace->flags);
    ttd_put32(bytes + TTD_TRACE_ARCHITECTURE, trace->architecture);
    ttd_put32(bytes + TTD_TRACE_POINTER_SIZE, trace->pointer_size);
    ttd_put64(bytes + TTD_TRACE_SOURCE_TRACE_ID, trace->source_trace_id);
    ttd_put64(bytes + TTD_TRACE_SOURCE_SIZE, trace->source_size);
    ttd_put64(bytes + TTD_TRACE_SOURCE_HASH, trace->source_hash);
    ttd_buffer_put(buffer, bytes, sizeof bytes);
}

const char *ttd_check_trace(const struct ttd_trace *trace)
{
    if (trace->trace_id == 0)
        return "trace_id 0";
    /* Recover does not know the unit if the first chunk is lost. */
    if (trace->time_unit == 0 && !(trace->flags & TTD_TRACE_RECOVERED))
        return "time_unit 0";
    if (!ttd_position_is_canonical(trace->parent_position))
        return "parent_position";
    if (trace->pointer_size != 4 && trace->pointer_size != 8)
        return "pointer_size";
    if (trace->flags & ~TTD_TRACE_FLAGS_MASK)
        return "unknown flags of the trace";
    return NULL;
}

void ttd_decode_trace(struct ttd_cursor *cursor, struct ttd_trace *trace)
{
    memset(trace, 0, sizeof *trace);
    const uint8_t *group = ttd_cursor_bytes(cursor, sizeof trace->group.bytes);
    if (group)
        memcpy(trace->group.bytes, group, sizeof trace->group.bytes);
    trace->parent_trace_id = ttd_cursor_get64(cursor);
    trace->parent_position.sequence = ttd_cursor_get64(cursor);
    trace->parent_position.steps = ttd_cursor_get64(cursor);
    trace->start_time = (int64_t)ttd_cursor_get64(cursor);
    trace->time_unit = ttd_cursor_get64(cursor);
    trace->process_id = ttd_cursor_get64(cursor);
    trace->parent_process_id = ttd_cursor_get64(cursor);
    trace->flags = ttd_cursor_get32(cursor);
    trace->architecture = ttd_cursor_get32(cursor);
    trace->pointer_size = ttd_cursor_get32(cursor);
    ttd_cursor_reserved32(cursor);
    trace->source_trace_id = ttd_cursor_get64(cursor);
    trace->source_size = ttd_cursor_get64(cursor);
    trace->source_hash = ttd_cursor_get64(cursor);
}

void ttd_encode_end(struct ttd_buffer *buffer, const struct ttd_end *end)
{
    uint8_t bytes[TTD_END_PAYLOAD_SIZE];
    ttd_put32(bytes + TTD_END_PAYLOAD_REASON, end->reason);
    ttd_put32(bytes + TTD_END_PAYLOAD_CODE, end->code);
    ttd_put64(bytes + TTD_END_PAYLOAD_WALL_TIME, end->wall_time);
    ttd_put64(bytes + TTD_END_PAYLOAD_EVENTS, end->events);
    ttd_put64(bytes + TTD_END_PAYLOAD_LOST_EVENTS, end->lost_events);
    ttd_put64(bytes + TTD_END_PAYLOAD_CHUNKS, end->chunks);
    ttd_put64(bytes + TTD_END_PAYLOAD_INDEX_OFFSET, end->index_offset);
    ttd_buffer_put(buffer, bytes, sizeof bytes);
}

void ttd_decode_end(struct ttd_cursor *cursor, struct ttd_end *end)
{
    uint32_t reason = ttd_cursor_get32(cursor);
    /* An enum may be an int: larger values would become negative. */
    if (reason > INT32_MAX)
        ttd_cursor_fail(cursor, "reason of the end");
    end->reason = (enum ttd_end_reason)reason;
    end->code = ttd_cursor_get32(cursor);
    end->wall_time = ttd_cursor_get64(cursor);
    end->events = ttd_cursor_get64(cursor);
    if (end->events == UINT64_MAX)
        ttd_cursor_fail(cursor, "events of the end");
    end->lost_events = ttd_cursor_get64(cursor);
    end->chunks = ttd_cursor_get64(cursor);
    end->index_offset = ttd_cursor_get64(cursor);
}
