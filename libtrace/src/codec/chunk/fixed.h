/* SPDX-License-Identifier: MIT */
/**
 * Payloads of a fixed size: the first and the last chunk's. Encoders append to a buffer; decoders
 * read from a cursor, which keeps the first failure.
 */
#ifndef TTD_CODEC_CHUNK_FIXED_H
#define TTD_CODEC_CHUNK_FIXED_H

#include <ttdtrace/trace.h>

#include "base/buffer.h"
#include "base/cursor.h"

/* spec, "Trace"; trace_id is in the chunk's header. */
void ttd_encode_trace(struct ttd_buffer *buffer, const struct ttd_trace *trace);
void ttd_decode_trace(struct ttd_cursor *cursor, struct ttd_trace *trace);
/** Validates the properties of a trace. Returns a description of the first violation, or NULL. */
const char *ttd_check_trace(const struct ttd_trace *trace);

/* spec, "End". */
void ttd_encode_end(struct ttd_buffer *buffer, const struct ttd_end *end);
void ttd_decode_end(struct ttd_cursor *cursor, struct ttd_end *end);

#endif
