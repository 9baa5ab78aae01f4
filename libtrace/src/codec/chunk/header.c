/* SPDX-License-Identifier: MIT */
#include "codec/chunk/header.h"

#include <lz4.h>
#include <lz4hc.h>
#include <string.h>
#include <xxhash.h>

#include <ttdtrace/model.h>
#include <ttdtrace/version.h>

#include "base/bytes.h"
#include "codec/columns.h"
#include "layout.h"

static const uint8_t magic[TTD_MAGIC_SIZE] = {TTD_MAGIC_BYTES};

#define KIND_IS_MANY false
#define KIND_IS_ONE  true
#define RECORDS_ROW(name, number, text, minor, properties, count, ...)                             \
    [number] = {number, properties, minor, KIND_IS_##count},
#define CHUNK_ROW(name, number, text, minor, properties, as)                                       \
    [number] = {TTD_KIND_##as, properties, minor, true},

const struct ttd_kind_row ttd_kind_rows[TTD_KIND_LAST + 1] = {TTD_KINDS(RECORDS_ROW, CHUNK_ROW)};

uint64_t ttd_hash(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

bool ttd_is_magic(const uint8_t *bytes, size_t size)
{
    return memcmp(bytes, magic, size < sizeof magic ? size : sizeof magic) == 0;
}

static void header_put_position(uint8_t *bytes, struct ttd_position position)
{
    ttd_put64(bytes, position.sequence);
    ttd_put64(bytes + 8, position.steps);
}

static struct ttd_position header_get_position(const uint8_t *bytes)
{
    struct ttd_position position = {ttd_get64(bytes), ttd_get64(bytes + 8)};
    return position;
}

void ttd_header_encode(const struct ttd_header *header, uint8_t bytes[TTD_HEADER_SIZE])
{
    memcpy(bytes + TTD_HEADER_MAGIC, magic, sizeof magic);
    ttd_put16(bytes + TTD_HEADER_MAJOR, header->major);
    ttd_put16(bytes + TTD_HEADER_KIND, header->kind);
    bytes[TTD_HEADER_CODEC] = header->codec;
    bytes[TTD_HEADER_FLAGS] = header->flags;
    ttd_put16(bytes + TTD_HEADER_MINOR, header->minor);
    ttd_put32(bytes + TTD_HEADER_STORED_SIZE, header->stored_size);
    ttd_put32(bytes + TTD_HEADER_RAW_SIZE, header->raw_size);
    ttd_put64(bytes + TTD_HEADER_TRACE_ID, header->trace_id);
    ttd_put64(bytes + TTD_HEADER_NUMBER, header->number);
    ttd_put64(bytes + TTD_HEADER_OFFSET, header->offset);
    ttd_put64(bytes + TTD_HEADER_FIRST_RECORD, header->first_record);
    ttd_put32(bytes + TTD_HEADER_RECORD_COUNT, header->record_count);
    ttd_put32(bytes + TTD_HEADER_RESERVED, 0);
    header_put_position(bytes + TTD_HEADER_FIRST_POSITION, header->first_position);
    header_put_position(bytes + TTD_HEADER_LAST_POSITION, header->last_position);
    ttd_put64(bytes + TTD_HEADER_PAYLOAD_HASH, header->payload_hash);
    ttd_put64(bytes + TTD_HEADER_HASH, ttd_hash(bytes, TTD_HEADER_HASH));
}

/** Validates the fields of a header whose hash matched. Returns a static description of the first
 * violation, or NULL. */
static const char *header_check(const struct ttd_header *header, uint32_t reserved)
{
    if (reserved != 0)
        return "reserved field is not zero";
    if (header->flags & ~TTD_CHUNK_FLAGS_MASK)
        return "unknown flags of a chunk";
    if (header->kind == 0)
        return "kind 0";
    /* A reader passes over an unknown kind unless it is critical; of known kinds the flag is given.
     */
    if (header->kind <= TTD_KIND_LAST && ttd_kind_has(header->kind, TTD_KIND_IS_CRITICAL) !=
                                             ((header->flags & TTD_CHUNK_CRITICAL) != 0))
        return "critical flag of a chunk";
    if (header->stored_size > TTD_PAYLOAD_MAX || header->raw_size > TTD_PAYLOAD_MAX)
        return "payload exceeds its limit";
    if (header->codec == TTD_CODEC_RAW && header->stored_size != header->raw_size)
        return "stored size of a raw payload";
    /* LZ4 cannot compress farther: a larger size is a lie that would cost memory. */
    if (header->codec == TTD_CODEC_LZ4 && header->raw_size > TTD_LZ4_RAW_MAX(header->stored_size))
        return "raw size of a compressed payload";
    /* Each record takes a byte at least: memory for them is in proportion to the payload. */
    if (header->record_count > TTD_RECORDS_MAX || header->record_count > header->raw_size)
        return "number of records";
    if (header->first_record > UINT64_MAX - header->record_count)
        return "number of the first record";
    if (header->trace_id == 0)
        return "trace_id 0";
    if (header->offset % TTD_ALIGNMENT != 0)
        return "offset of a chunk";
    if (!ttd_position_is_valid(header->first_position) ||
        !ttd_position_is_valid(header->last_position) ||
        ttd_position_compare(header->first_position, header->last_position) > 0)
        return "positions of a chunk";
    return NULL;
}

enum ttd_status ttd_header_decode(const uint8_t bytes[TTD_HEADER_SIZE], struct ttd_header *header,
                                  const char **what)
{
    if (!ttd_is_magic(bytes, TTD_MAGIC_SIZE)) {
        *what = "magic";
        return TTD_ERROR_NOT_A_TRACE;
    }
    if (ttd_get64(bytes + TTD_HEADER_HASH) != ttd_hash(bytes, TTD_HEADER_HASH)) {
        *what = "header checksum";
        return TTD_ERROR_CORRUPT;
    }
    struct ttd_header result = {
        .major = ttd_get16(bytes + TTD_HEADER_MAJOR),
        .kind = ttd_get16(bytes + TTD_HEADER_KIND),
        .codec = bytes[TTD_HEADER_CODEC],
        .flags = bytes[TTD_HEADER_FLAGS],
        .minor = ttd_get16(bytes + TTD_HEADER_MINOR),
        .stored_size = ttd_get32(bytes + TTD_HEADER_STORED_SIZE),
        .raw_size = ttd_get32(bytes + TTD_HEADER_RAW_SIZE),
        .trace_id = ttd_get64(bytes + TTD_HEADER_TRACE_ID),
        .number = ttd_get64(bytes + TTD_HEADER_NUMBER),
        .offset = ttd_get64(bytes + TTD_HEADER_OFFSET),
        .first_record = ttd_get64(bytes + TTD_HEADER_FIRST_RECORD),
        .record_count = ttd_get32(bytes + TTD_HEADER_RECORD_COUNT),
        .first_position = header_get_position(bytes + TTD_HEADER_FIRST_POSITION),
        .last_position = header_get_position(bytes + TTD_HEADER_LAST_POSITION),
        .payload_hash = ttd_get64(bytes + TTD_HEADER_PAYLOAD_HASH),
    };
    /* After the checksum: a damaged version is damage, not a format of the future. */
    if (result.major != TTD_FORMAT_MAJOR) {
        *what = "major version";
        return TTD_ERROR_UNSUPPORTED;
    }
    *what = header_check(&result, ttd_get32(bytes + TTD_HEADER_RESERVED));
    if (*what)
        return TTD_ERROR_CORRUPT;
    *header = result;
    return TTD_OK;
}

/** From this level on LZ4HC is used. */
#define FIRST_HC_LEVEL 3

enum ttd_status ttd_payload_compress(const uint8_t *raw, size_t raw_size, int level,
                                     enum ttd_codec *codec, struct ttd_buffer *stored,
                                     struct ttd_buffer *scratch)
{
    ttd_buffer_clear(stored);
    if (*codec != TTD_CODEC_LZ4 || raw_size == 0) {
        *codec = TTD_CODEC_RAW;
        return TTD_OK;
    }
    int bound = LZ4_compressBound((int)raw_size);
    if (!ttd_buffer_reserve(stored, (size_t)bound))
        return TTD_ERROR_NO_MEMORY;
    const char *source = (const char *)raw;
    char *target = (char *)stored->data;
    int size = 0;
    if (level < FIRST_HC_LEVEL) {
        size = LZ4_compress_default(source, target, (int)raw_size, bound);
    } else {
        ttd_buffer_clear(scratch);
        if (!ttd_buffer_reserve(scratch, (size_t)LZ4_sizeofStateHC()))
            return TTD_ERROR_NO_MEMORY;
        size =
            LZ4_compress_HC_extStateHC(scratch->data, source, target, (int)raw_size, bound, level);
    }
    /* Stored as it is where compression gains nothing: decoding is then a copy. */
    if (size <= 0 || (size_t)size >= raw_size)
        *codec = TTD_CODEC_RAW;
    else
        stored->size = (size_t)size;
    return TTD_OK;
}

bool ttd_payload_is_known(unsigned codec)
{
    return codec == TTD_CODEC_RAW || codec == TTD_CODEC_LZ4;
}

/** Adds the bytes of a length that goes on after its token. Returns the position behind them. */
static const uint8_t *header_payload_add_length(const uint8_t *next, const uint8_t *end,
                                                size_t *length)
{
    uint8_t byte = 255;
    while (byte == 255 && next != end) {
        byte = *next++;
        *length += byte;
    }
    return next;
}

/** Whether the offset of a match is 0. LZ4's decoders do not reject it, and each one's result is
 * undefined. The block is one that LZ4 has decoded, and so is well-formed otherwise. */
static bool header_has_offset_zero(const uint8_t *block, size_t size)
{
    const uint8_t *next = block;
    const uint8_t *end = block + size;
    while (next != end) {
        unsigned token = *next++;
        size_t length = token >> 4;
        if (length == 15)
            next = header_payload_add_length(next, end, &length);
        if ((size_t)(end - next) < length + 2)
            return false; /* the last sequence has no match */
        next += length;
        if (ttd_get16(next) == 0)
            return true;
        next += 2;
        if ((token & 15) == 15)
            next = header_payload_add_length(next, end, &length);
    }
    return false;
}

enum ttd_status ttd_payload_decompress(unsigned codec, const uint8_t *stored, size_t stored_size,
                                       uint8_t *raw, size_t raw_size, const char **what)
{
    switch (codec) {
    case TTD_CODEC_RAW:
        if (raw_size != 0)
            memcpy(raw, stored, raw_size);
        return TTD_OK;
    case TTD_CODEC_LZ4:
        if (LZ4_decompress_safe((const char *)stored, (char *)raw, (int)stored_size,
                                (int)raw_size) == (int)raw_size &&
            !header_has_offset_zero(stored, stored_size))
            return TTD_OK;
        *what = "compressed payload";
        return TTD_ERROR_CORRUPT;
    default:
        *what = "codec";
        return TTD_ERROR_UNSUPPORTED;
    }
}

/* Payloads of a fixed size. */

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
