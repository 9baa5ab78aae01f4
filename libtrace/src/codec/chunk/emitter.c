/* SPDX-License-Identifier: MIT */
#include "codec/chunk/emitter.h"

#include <string.h>

#include <ttdtrace/reader.h>

#include "base/fail.h"
#include "base/memory.h"
#include "codec/chunk/header.h"

enum { SMALL_CHUNK = 4096 };

void ttd_emitter_init(struct ttd_emitter *emitter, const struct ttd_allocator *allocator,
                      uint64_t trace_id, enum ttd_codec codec, int level,
                      struct ttd_emitter_sink sink)
{
    *emitter = (struct ttd_emitter){.allocator = allocator,
                                    .emit = sink.emit,
                                    .context = sink.context,
                                    .codec = codec,
                                    .level = level,
                                    .trace_id = trace_id};
    ttd_buffer_init(&emitter->stored, allocator);
    ttd_buffer_init(&emitter->scratch, allocator);
    ttd_buffer_init(&emitter->entries, allocator);
}

void ttd_emitter_free(struct ttd_emitter *emitter)
{
    if (!emitter->allocator)
        return;
    ttd_buffer_free(&emitter->stored);
    ttd_buffer_free(&emitter->scratch);
    ttd_buffer_free(&emitter->entries);
    ttd_release(emitter->allocator, emitter->written);
}

static enum ttd_status emitter_fail(struct ttd_emitter *emitter, enum ttd_status status,
                                    const char *what)
{
    return ttd_fail(&emitter->error, status, what, emitter->offset, emitter->number);
}

static enum ttd_status emitter_send(struct ttd_emitter *emitter, const void *data, size_t size)
{
    /* An output need not handle empty writes. */
    int reason = size ? emitter->emit(emitter->context, data, size) : 0;
    if (reason == 0)
        return TTD_OK;
    ttd_fail_system(&emitter->error, reason, "write", emitter->offset);
    emitter->error.chunk = emitter->number;
    return TTD_ERROR_IO;
}

/** Remembers the header for the next index. */
static bool emitter_remember(struct ttd_emitter *emitter, const struct ttd_header *header,
                             const uint8_t *bytes)
{
    /* The next index reaches this one by a link. */
    if (header->kind == TTD_KIND_INDEX)
        return true;
    if (header->kind == TTD_KIND_EVENTS && !emitter->pending_set) {
        emitter->pending = (struct ttd_index_link){0, header->first_record, header->first_position};
        emitter->pending_set = true;
    }
    if (!ttd_buffer_reserve(&emitter->entries, TTD_HEADER_SIZE))
        return false;
    ttd_buffer_put(&emitter->entries, bytes, TTD_HEADER_SIZE);
    return true;
}

static enum ttd_status emitter_put_index(struct ttd_emitter *emitter);

/** Sends a header, a payload, and zeros up to `size`: in one piece if that is small, as most chunks
 * of short programs are. */
static enum ttd_status emitter_send_parts(struct ttd_emitter *emitter, const uint8_t *header,
                                          const uint8_t *stored, size_t stored_size, uint64_t size)
{
    static const uint8_t zeros[TTD_ALIGNMENT];
    uint8_t chunk[SMALL_CHUNK];
    if (size <= sizeof chunk) {
        memcpy(chunk, header, TTD_HEADER_SIZE);
        if (stored_size)
            memcpy(chunk + TTD_HEADER_SIZE, stored, stored_size);
        memset(chunk + TTD_HEADER_SIZE + stored_size, 0,
               (size_t)size - TTD_HEADER_SIZE - stored_size);
        return emitter_send(emitter, chunk, (size_t)size);
    }
    enum ttd_status status = emitter_send(emitter, header, TTD_HEADER_SIZE);
    if (status == TTD_OK)
        status = emitter_send(emitter, stored, stored_size);
    if (status == TTD_OK)
        status = emitter_send(emitter, zeros, (size_t)(size - TTD_HEADER_SIZE - stored_size));
    return status;
}

/** Completes the header and sends the chunk. */
static enum ttd_status send_chunk(struct ttd_emitter *emitter, struct ttd_header *header,
                                  const uint8_t *stored)
{
    header->major = TTD_FORMAT_MAJOR;
    header->trace_id = emitter->trace_id;
    header->number = emitter->number;
    header->offset = emitter->offset;
    uint8_t bytes[TTD_HEADER_SIZE];
    ttd_header_encode(header, bytes);
    if (!emitter_remember(emitter, header, bytes))
        return emitter_fail(emitter, TTD_ERROR_NO_MEMORY, "memory");
    uint64_t size = ttd_chunk_size(header);
    enum ttd_status status = emitter_send_parts(emitter, bytes, stored, header->stored_size, size);
    if (status != TTD_OK)
        return status;
    /* Only now: after a failure nothing follows, and the error has the offset of the missing chunk.
     */
    emitter->number++;
    emitter->offset += size;
    if (header->kind == TTD_KIND_EVENTS) {
        emitter->events = header->first_record + header->record_count;
        emitter->position = header->last_position;
    }
    /* An index is itself a chunk, so it must not ask for another one. */
    if (emitter->entries.size == (size_t)TTD_INDEX_ENTRIES_MAX * TTD_HEADER_SIZE &&
        header->kind != TTD_KIND_INDEX)
        return emitter_put_index(emitter);
    return TTD_OK;
}

enum ttd_status ttd_emitter_put(struct ttd_emitter *emitter, const struct ttd_emission *emission,
                                const uint8_t *raw, size_t raw_size)
{
    if (raw_size > TTD_PAYLOAD_MAX)
        return emitter_fail(emitter, TTD_ERROR_LIMIT, "payload exceeds its limit");
    const struct ttd_kind_row *row = &ttd_kind_rows[emission->kind];
    enum ttd_codec codec = row->properties & TTD_KIND_IS_RAW ? TTD_CODEC_RAW : emitter->codec;
    enum ttd_status status = ttd_payload_compress(raw, raw_size, emitter->level, &codec,
                                                  &emitter->stored, &emitter->scratch);
    if (status != TTD_OK)
        return emitter_fail(emitter, status, "memory");
    const uint8_t *stored = codec == TTD_CODEC_RAW ? raw : emitter->stored.data;
    size_t stored_size = codec == TTD_CODEC_RAW ? raw_size : emitter->stored.size;
    struct ttd_header header = {.kind = emission->kind,
                                .codec = (uint8_t)codec,
                                .flags =
                                    row->properties & TTD_KIND_IS_CRITICAL ? TTD_CHUNK_CRITICAL : 0,
                                .minor = row->minor,
                                .stored_size = (uint32_t)stored_size,
                                .raw_size = (uint32_t)raw_size,
                                .first_record = emission->first_record,
                                .record_count = emission->record_count,
                                .first_position = emission->first_position,
                                .last_position = emission->last_position,
                                .payload_hash = ttd_hash(stored, stored_size)};
    return send_chunk(emitter, &header, stored);
}

enum ttd_status ttd_emitter_copy(struct ttd_emitter *emitter, const struct ttd_header *header,
                                 const uint8_t *stored)
{
    /* The payload stays as it is; place and number are new. */
    struct ttd_header copy = *header;
    return send_chunk(emitter, &copy, stored);
}

/** Links to the index chunk about to be written, and to those 1, 2, 4, … before it. */
static void emitter_make_links(struct ttd_emitter *emitter, struct ttd_index_links *links)
{
    if (!emitter->pending_set)
        emitter->pending = (struct ttd_index_link){0, emitter->events, emitter->position};
    emitter->pending.offset = emitter->offset;
    links->links[0] = emitter->pending;
    links->count = 1;
    /* With links twice as far each time, a search reads a number of indexes logarithmic in theirs.
     */
    for (size_t distance = 1; distance <= emitter->written_count; distance *= 2)
        links->links[links->count++] = emitter->written[emitter->written_count - distance];
}

static enum ttd_status emitter_put_index(struct ttd_emitter *emitter)
{
    struct ttd_index_links links;
    emitter_make_links(emitter, &links);
    void *written = emitter->written;
    if (ttd_grow_array(emitter->allocator, &written, &emitter->written_capacity,
                       emitter->written_count + 1, sizeof *emitter->written))
        return emitter_fail(emitter, TTD_ERROR_NO_MEMORY, "memory");
    /* Room is made before the chunk is written: afterwards nothing may fail, or the file would have
     * an index that the next ones do not link to. */
    emitter->written = written;
    struct ttd_buffer payload;
    ttd_buffer_init(&payload, emitter->allocator);
    ttd_encode_index_links(&payload, &links);
    ttd_buffer_put(&payload, emitter->entries.data, emitter->entries.size);
    uint32_t count = (uint32_t)(emitter->entries.size / TTD_HEADER_SIZE);
    struct ttd_emission emission = {TTD_KIND_INDEX, emitter->index_entries, count,
                                    emitter->pending.position, emitter->position};
    enum ttd_status status = payload.failed
                                 ? emitter_fail(emitter, TTD_ERROR_NO_MEMORY, "memory")
                                 : ttd_emitter_put(emitter, &emission, payload.data, payload.size);
    ttd_buffer_free(&payload);
    if (status != TTD_OK)
        return status;
    emitter->written[emitter->written_count++] = links.links[0];
    emitter->index_offset = links.links[0].offset;
    emitter->index_entries += count;
    emitter->pending_set = false;
    ttd_buffer_clear(&emitter->entries);
    return TTD_OK;
}

enum ttd_status ttd_emitter_end(struct ttd_emitter *emitter, const struct ttd_end *end,
                                uint64_t lost_events)
{
    enum ttd_status status = TTD_OK;
    if (emitter->entries.size != 0)
        status = emitter_put_index(emitter);
    if (status != TTD_OK)
        return status;
    struct ttd_end complete = *end;
    complete.events = emitter->events;
    complete.lost_events = lost_events;
    /* The End chunk counts itself. */
    complete.chunks = emitter->number + 1;
    complete.index_offset = emitter->index_offset;
    struct ttd_buffer payload;
    ttd_buffer_init(&payload, emitter->allocator);
    ttd_encode_end(&payload, &complete);
    struct ttd_emission emission = {TTD_KIND_END, 0, 1, emitter->position, emitter->position};
    status = payload.failed ? emitter_fail(emitter, TTD_ERROR_NO_MEMORY, "memory")
                            : ttd_emitter_put(emitter, &emission, payload.data, payload.size);
    ttd_buffer_free(&payload);
    return status;
}
