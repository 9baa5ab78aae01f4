/* SPDX-License-Identifier: MIT */
/** Chunk headers and payloads (spec, "Chunk header", "Payload"), and the payloads of the first and
 * the last chunk and of an index. */
#ifndef TTD_CODEC_CHUNK_HEADER_H
#define TTD_CODEC_CHUNK_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/model.h>
#include <ttdtrace/position.h>
#include <ttdtrace/reader.h>
#include <ttdtrace/status.h>
#include <ttdtrace/trace.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "layout.h"

/** A chunk header, field by field. */
struct ttd_header {
    uint16_t major;
    uint16_t kind;
    uint8_t codec;
    uint8_t flags;
    uint16_t minor;
    uint32_t stored_size;
    uint32_t raw_size;
    uint64_t trace_id;
    uint64_t number;
    uint64_t offset;
    uint64_t first_record;
    uint32_t record_count;
    struct ttd_position first_position;
    struct ttd_position last_position;
    uint64_t payload_hash;
};

/** Computes a checksum of the format: XXH3, 64 bits, seed 0. */
uint64_t ttd_hash(const void *data, size_t size);

/** Whether the bytes are the magic; compares `size` bytes, at most all eight. */
bool ttd_is_magic(const uint8_t *bytes, size_t size);

/** Writes a header with its hash. */
void ttd_header_encode(const struct ttd_header *header, uint8_t bytes[TTD_HEADER_SIZE]);

/**
 * Reads a header: magic, then hash, then version, then every field by itself.
 *
 * @param what  set on failure, static
 * @return TTD_OK, TTD_ERROR_NOT_A_TRACE (no magic), TTD_ERROR_CORRUPT, TTD_ERROR_UNSUPPORTED.
 */
enum ttd_status ttd_header_decode(const uint8_t bytes[TTD_HEADER_SIZE], struct ttd_header *header,
                                  const char **what);

/** A row of TTD_KINDS. */
struct ttd_kind_row {
    /** The kind of the records in a chunk. */
    uint8_t records;
    /** Bits of enum ttd_kind_property. */
    uint8_t properties;
    /** The minor version of the format that it came with. */
    uint16_t minor;
    /** A chunk is one record. */
    bool is_single;
};

/** All known kinds, by number; 0 is none. */
extern const struct ttd_kind_row ttd_kind_rows[TTD_KIND_LAST + 1];

/** Returns the kind of the records in a chunk of a known kind. */
static inline enum ttd_kind ttd_kind_of_records(unsigned kind)
{
    return (enum ttd_kind)ttd_kind_rows[kind].records;
}

/** Whether a kind is known and has the property. */
static inline bool ttd_kind_has(unsigned kind, enum ttd_kind_property property)
{
    return kind <= TTD_KIND_LAST && (ttd_kind_rows[kind].properties & property);
}

/** Returns the size of a whole chunk in the file: header, stored payload and padding. */
static inline uint64_t ttd_chunk_size(const struct ttd_header *header)
{
    uint64_t size = TTD_HEADER_SIZE + (uint64_t)header->stored_size;
    return (size + (TTD_ALIGNMENT - 1)) & ~(uint64_t)(TTD_ALIGNMENT - 1);
}

/* Payload codecs (spec, "Payload"). */

/**
 * Compresses `raw` into `stored` (cleared first), if that makes it smaller.
 *
 * @param codec    the codec wanted; set to the one to use. With TTD_CODEC_RAW `stored` stays empty.
 * @param scratch  memory of the compressor; kept for the next payload, since it is large
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status ttd_payload_compress(const uint8_t *raw, size_t raw_size, int level,
                                     enum ttd_codec *codec, struct ttd_buffer *stored,
                                     struct ttd_buffer *scratch);

/** Whether payloads of this codec can be decompressed. */
bool ttd_payload_is_known(unsigned codec);

/**
 * Decompresses into exactly `raw_size` bytes. The limits of both sizes were checked before.
 *
 * @param what  set on failure, static
 * @return TTD_OK, TTD_ERROR_CORRUPT, TTD_ERROR_UNSUPPORTED.
 */
enum ttd_status ttd_payload_decompress(unsigned codec, const uint8_t *stored, size_t stored_size,
                                       uint8_t *raw, size_t raw_size, const char **what);

/* Payloads of a fixed size. Encoders append to a buffer; decoders read from a cursor; it keeps the
 * first failure. */

/* Index chunks (spec, "Index"). */

/** A link to an index chunk: its place, and the begin of the chunks that it covers. */
struct ttd_index_link {
    uint64_t offset;
    /** Number and effect position of the first event at or after the first chunk covered. */
    uint64_t first_event;
    struct ttd_position position;
};

/** Links of an index chunk: itself, then those 1, 2, 4, … index chunks before it. */
struct ttd_index_links {
    size_t count;
    struct ttd_index_link links[TTD_INDEX_LINKS_MAX];
};

/** Appends the links; the entries, headers as they are in the file, follow. */
void ttd_encode_index_links(struct ttd_buffer *buffer, const struct ttd_index_links *links);

/** Reads the links; the rest of the cursor is `entries` entries of TTD_HEADER_SIZE bytes. */
void ttd_decode_index_links(struct ttd_cursor *cursor, struct ttd_index_links *links,
                            uint32_t entries);

/* spec, "Trace"; trace_id is in the chunk's header. */
void ttd_encode_trace(struct ttd_buffer *buffer, const struct ttd_trace *trace);
void ttd_decode_trace(struct ttd_cursor *cursor, struct ttd_trace *trace);
/** Validates the properties of a trace. Returns a description of the first violation, or NULL. */
const char *ttd_check_trace(const struct ttd_trace *trace);

/* spec, "End". */
void ttd_encode_end(struct ttd_buffer *buffer, const struct ttd_end *end);
void ttd_decode_end(struct ttd_cursor *cursor, struct ttd_end *end);

#endif
