/* SPDX-License-Identifier: MIT */
/**
 * Payloads of a fixed size: the first and the last chunk's. Encoders append to a buffer; decoders
 * read from a cursor; it keeps the first failure.
 */
#ifndef TTD_CODEC_CHUNK_FIXED_CHUNKS_H
#define TTD_CODEC_CHUNK_FIXED_CHUNKS_H

#include <ttdtrace/position.h>
#include <ttdtrace/trace.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "codec/chunk/header.h"

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
