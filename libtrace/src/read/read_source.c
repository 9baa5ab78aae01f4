/* SPDX-License-Identifier: MIT */
#include "read/read_internal.h"

#include <string.h>

#include "base/fail.h"
#include "codec/chunk/header.h"

void ttd_source_init(struct ttd_source *source, const struct ttd_input *input,
                     const struct ttd_allocator *allocator)
{
    *source = (struct ttd_source){.input = *input};
    ttd_buffer_init(&source->stored, allocator);
    ttd_buffer_init(&source->raw, allocator);
}

void ttd_source_free(struct ttd_source *source)
{
    ttd_buffer_free(&source->stored);
    ttd_buffer_free(&source->raw);
    if (source->input.close)
        source->input.close(source->input.context);
}

enum ttd_status ttd_source_refresh(struct ttd_source *source, struct ttd_error *error)
{
    int reason = source->input.size(source->input.context, &source->size);
    return reason ? ttd_fail_system(error, reason, "size", TTD_NOWHERE) : TTD_OK;
}

/** Reads up to `size` bytes, going on after short reads. */
static enum ttd_status read_some(struct ttd_source *source, uint64_t offset, void *data,
                                 size_t size, size_t *got, struct ttd_error *error)
{
    *got = 0;
    while (*got < size) {
        size_t n = 0;
        int reason = source->input.read_at(source->input.context, offset + *got,
                                           (uint8_t *)data + *got, size - *got, &n);
        if (reason != 0)
            return ttd_fail_system(error, reason, "read", offset);
        /* An input that says it gave more than was asked for is not believed. */
        if (n == 0 || n > size - *got)
            break;
        *got += n;
    }
    return TTD_OK;
}

enum ttd_status ttd_source_read(struct ttd_source *source, uint64_t offset, void *data, size_t size,
                                struct ttd_error *error)
{
    size_t got;
    enum ttd_status status = read_some(source, offset, data, size, &got, error);
    if (status == TTD_OK && got != size)
        return ttd_fail(error, TTD_ERROR_TRUNCATED, "end of the file", offset, TTD_NOWHERE);
    return status;
}

/** Makes sure that `size` bytes at `offset` were there when the size was last asked for. */
static enum ttd_status source_ensure(struct ttd_source *source, uint64_t offset, uint64_t size,
                                     struct ttd_error *error)
{
    /* The size is asked for again only where it is too small: the file may be growing. */
    for (int i = 0; i < 2; i++) {
        if (offset <= source->size && size <= source->size - offset)
            return TTD_OK;
        enum ttd_status status = i == 0 ? ttd_source_refresh(source, error) : TTD_OK;
        if (status != TTD_OK)
            return status;
    }
    return ttd_fail(error, TTD_ERROR_TRUNCATED, "incomplete chunk", offset, TTD_NOWHERE);
}

/** Fewer bytes than a header are left: nothing, a piece of a header, or something else. */
static enum ttd_status source_check_remainder(struct ttd_source *source, uint64_t offset,
                                              struct ttd_error *error)
{
    if (offset >= source->size)
        return TTD_END;
    size_t remaining = (size_t)(source->size - offset);
    uint8_t bytes[TTD_MAGIC_SIZE];
    if (remaining > sizeof bytes)
        remaining = sizeof bytes;
    enum ttd_status status = ttd_source_read(source, offset, bytes, remaining, error);
    if (status != TTD_OK)
        return status;
    /* A recorder was killed while it wrote a header, or these bytes never were one. */
    if (!ttd_is_magic(bytes, remaining))
        return ttd_fail(error, TTD_ERROR_CORRUPT, "magic", offset, TTD_NOWHERE);
    return ttd_fail(error, TTD_ERROR_TRUNCATED, "incomplete header", offset, TTD_NOWHERE);
}

enum ttd_status ttd_source_header(struct ttd_source *source, uint64_t offset,
                                  struct ttd_header *header, struct ttd_error *error)
{
    uint8_t bytes[TTD_HEADER_SIZE];
    enum ttd_status status = source_ensure(source, offset, sizeof bytes, error);
    if (status == TTD_ERROR_TRUNCATED)
        return source_check_remainder(source, offset, error);
    if (status == TTD_OK)
        status = ttd_source_read(source, offset, bytes, sizeof bytes, error);
    if (status != TTD_OK)
        return status;
    struct ttd_header result;
    const char *what;
    status = ttd_header_decode(bytes, &result, &what);
    /* A file that was written over a longer one may have chunks of the older trace behind its end.
     */
    if (status == TTD_OK && source->trace_id != 0 && result.trace_id != source->trace_id)
        what = "chunk of another trace";
    /* A chunk that was copied to another place would pass every checksum. */
    else if (status == TTD_OK && result.offset != offset)
        what = "offset of a chunk";
    else if (status == TTD_OK)
        what = NULL;
    if (what) {
        if (status != TTD_ERROR_UNSUPPORTED)
            status = TTD_ERROR_CORRUPT;
        return ttd_fail(error, status, what, offset, TTD_NOWHERE);
    }
    /* Before memory for the payload: it grows in proportion to bytes that are there. */
    status = source_ensure(source, offset, ttd_chunk_size(&result), error);
    if (status == TTD_ERROR_TRUNCATED && error)
        error->chunk = result.number;
    if (status == TTD_OK)
        *header = result;
    return status;
}

/** Validates the stored payload and its padding. Returns the first violation, or NULL. */
static const char *source_check_stored(const struct ttd_header *header, const uint8_t *stored)
{
    size_t size = (size_t)(ttd_chunk_size(header) - TTD_HEADER_SIZE);
    if (ttd_hash(stored, header->stored_size) != header->payload_hash)
        return "payload checksum";
    /* The hash does not cover the padding: a change there would go unnoticed. */
    for (size_t i = header->stored_size; i < size; i++)
        if (stored[i] != 0)
            return "padding is not zero";
    return NULL;
}

enum ttd_status ttd_source_stored(struct ttd_source *source, const struct ttd_header *header,
                                  struct ttd_error *error)
{
    size_t size = (size_t)(ttd_chunk_size(header) - TTD_HEADER_SIZE);
    ttd_buffer_clear(&source->stored);
    /* An earlier chunk may have been too large; this one need not be. */
    source->stored.failed = false;
    if (!ttd_buffer_reserve(&source->stored, size + 1))
        return ttd_fail(error, TTD_ERROR_NO_MEMORY, "memory", header->offset, header->number);
    enum ttd_status status =
        ttd_source_read(source, header->offset + TTD_HEADER_SIZE, source->stored.data, size, error);
    if (status != TTD_OK)
        return status;
    const char *what = source_check_stored(header, source->stored.data);
    return what ? ttd_fail(error, TTD_ERROR_CORRUPT, what, header->offset, header->number) : TTD_OK;
}

enum ttd_status ttd_source_payload(struct ttd_source *source, const struct ttd_header *header,
                                   struct ttd_cursor *payload, struct ttd_error *error)
{
    enum ttd_status status = ttd_source_stored(source, header, error);
    if (status != TTD_OK)
        return status;
    if (!ttd_payload_is_known(header->codec))
        return ttd_fail(error, TTD_ERROR_UNSUPPORTED, "codec", header->offset, header->number);
    ttd_buffer_clear(&source->raw);
    source->raw.failed = false;
    if (header->codec == TTD_CODEC_RAW) {
        *payload = ttd_cursor_of(source->stored.data, header->stored_size);
        return TTD_OK;
    }
    if (!ttd_buffer_reserve(&source->raw, header->raw_size + 1u))
        return ttd_fail(error, TTD_ERROR_NO_MEMORY, "memory", header->offset, header->number);
    const char *what = NULL;
    status = ttd_payload_decompress(header->codec, source->stored.data, header->stored_size,
                                    source->raw.data, header->raw_size, &what);
    if (status != TTD_OK)
        return ttd_fail(error, status, what, header->offset, header->number);
    *payload = ttd_cursor_of(source->raw.data, header->raw_size);
    return TTD_OK;
}

/** Whether a good header that belongs there is at `offset`. */
static bool source_is_header(struct ttd_source *source, const uint8_t *bytes, uint64_t offset,
                             uint64_t number)
{
    struct ttd_header header;
    const char *what;
    return ttd_header_decode(bytes, &header, &what) == TTD_OK && header.offset == offset &&
           header.number >= number &&
           (source->trace_id == 0 || header.trace_id == source->trace_id);
}

/** Returns the first aligned offset from `begin` on where a magic may be; else where to go on: so
 * that no header that ends behind `size` is passed over. */
static size_t source_next_candidate(const uint8_t *block, size_t begin, size_t size)
{
    static const uint8_t magic[TTD_MAGIC_SIZE] = {TTD_MAGIC_BYTES};
    size_t end = size - TTD_HEADER_SIZE + 1;
    const uint8_t *candidate = block + begin;
    while ((candidate = memchr(candidate, magic[0], end - (size_t)(candidate - block)))) {
        if ((size_t)(candidate - block) % TTD_ALIGNMENT == 0)
            return (size_t)(candidate - block);
        if (++candidate == block + end)
            break;
    }
    return (end + TTD_ALIGNMENT - 1) / TTD_ALIGNMENT * TTD_ALIGNMENT;
}

enum ttd_status ttd_source_resync(struct ttd_source *source, uint64_t offset, uint64_t number,
                                  uint64_t *next_offset, struct ttd_error *error)
{
    uint8_t block[16384];
    offset = (offset + (TTD_ALIGNMENT - 1)) & ~(uint64_t)(TTD_ALIGNMENT - 1);
    for (;;) {
        size_t got;
        if (source->searched >= source->search_max) {
            *next_offset = offset;
            return ttd_fail(error, TTD_ERROR_LIMIT, "no intact chunk in all that was searched",
                            offset, TTD_NOWHERE);
        }
        enum ttd_status status = read_some(source, offset, block, sizeof block, &got, error);
        if (status != TTD_OK)
            return status;
        size_t position = 0;
        for (; position + TTD_HEADER_SIZE <= got; position += TTD_ALIGNMENT) {
            position = source_next_candidate(block, position, got);
            if (position + TTD_HEADER_SIZE > got)
                break;
            if (ttd_is_magic(block + position, TTD_MAGIC_SIZE) &&
                source_is_header(source, block + position, offset + position, number)) {
                *next_offset = offset + position;
                return TTD_OK;
            }
        }
        offset += position;
        source->searched += position;
        if (got < sizeof block) {
            *next_offset = offset;
            return TTD_END;
        }
    }
}

/* Damage of a chunk. Its header is good, so that the reader knows the events missing with it: a
 * tolerant reader passes over the chunk and returns a synthetic loss in its place. */

void ttd_reader_synthesize_loss(struct ttd_reader *reader, const struct ttd_header *header,
                                uint64_t event, struct ttd_batch *batch)
{
    const struct ttd_gap *gap = &reader->gap;
    bool events = header && header->kind == TTD_KIND_EVENTS;
    bool is_known = event != TTD_UNKNOWN && event >= gap->event && !gap->is_endless;
    reader->synthetic =
        (struct ttd_loss){.reason = TTD_LOSS_DAMAGE,
                          .count = is_known ? event - gap->event : TTD_UNKNOWN,
                          .last_good = gap->last_good,
                          .first_good = events ? header->first_position : ttd_position_invalid()};
    memset(batch, 0, sizeof *batch);
    batch->kind = TTD_KIND_LOSSES;
    batch->count = 1;
    batch->synthetic = true;
    batch->u.losses = &reader->synthetic;
    batch->error = gap->error;
    if (header)
        batch->chunk = ttd_chunk_of(header);
    reader->gap.pending = false;
    reader->rest_is_lost = !header;
    if (reader->checks)
        ttd_check_lost(reader, &reader->synthetic);
}

/** Notes that the chunk at hand is damaged and passes over it. TTD_END to go on behind it. */
static enum ttd_status source_pass_damaged(struct ttd_reader *reader,
                                           const struct ttd_error *damage, struct ttd_error *error)
{
    const struct ttd_header *header = &reader->header;
    reader->records_left = 0;
    reader->next_event = reader->event_before;
    reader->position = reader->position_before;
    enum ttd_status status = ttd_reader_damage(reader, damage, error);
    if (status != TTD_OK)
        return status;
    /* Its header is good, and names the events lost with it. */
    ttd_reader_pass(reader, header, true);
    reader->has_ended = false;
    if (reader->checks)
        ttd_check_damage(reader, damage, ttd_chunk_size(header), 1);
    return TTD_END;
}

enum ttd_status ttd_reader_end_unsupported(struct ttd_reader *reader,
                                           const struct ttd_error *detail, struct ttd_batch *batch,
                                           struct ttd_error *error)
{
    reader->records_left = 0;
    enum ttd_status status = ttd_reader_damage(reader, detail, error);
    if (status != TTD_OK)
        return status;
    reader->failed = true;
    reader->error = *detail;
    if (reader->checks)
        ttd_check_damage(reader, detail, reader->source.size - reader->offset, TTD_UNKNOWN);
    ttd_reader_synthesize_loss(reader, NULL, TTD_UNKNOWN, batch);
    return TTD_OK;
}

enum ttd_status ttd_reader_fail_chunk(struct ttd_reader *reader, const struct ttd_error *detail,
                                      struct ttd_batch *batch, struct ttd_error *error)
{
    if (detail->status == TTD_ERROR_CORRUPT)
        return source_pass_damaged(reader, detail, error);
    if (detail->status == TTD_ERROR_UNSUPPORTED)
        return ttd_reader_end_unsupported(reader, detail, batch, error);
    reader->records_left = 0;
    return ttd_reader_stop(reader, detail, error);
}
