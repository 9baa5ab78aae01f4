/* SPDX-License-Identifier: MIT */
/**
 * Kinds whose payload is one record after the other. Encoders append to a buffer, decoders read one
 * record from a cursor; both keep the first failure. Decoded records point into the payload.
 */
#ifndef TTD_CODEC_RECORDS_H
#define TTD_CODEC_RECORDS_H

#include <ttdtrace/model.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "codec/columns.h"

/* spec, "Strings". Ids are not in the payload. */
void ttd_encode_string(struct ttd_buffer *buffer, struct ttd_string string);
struct ttd_string ttd_decode_string(struct ttd_cursor *cursor);

/* spec, "Modules", "Threads", "Heaps", "Heap parents". */
void ttd_encode_module(struct ttd_buffer *buffer, const struct ttd_module *module);
void ttd_decode_module(struct ttd_cursor *cursor, struct ttd_module *module);
void ttd_encode_thread(struct ttd_buffer *buffer, const struct ttd_thread *thread);
void ttd_decode_thread(struct ttd_cursor *cursor, struct ttd_thread *thread);
void ttd_encode_heap(struct ttd_buffer *buffer, const struct ttd_heap *heap);
void ttd_decode_heap(struct ttd_cursor *cursor, struct ttd_heap *heap);
void ttd_encode_heap_parent(struct ttd_buffer *buffer, const struct ttd_heap_parent *parent);
void ttd_decode_heap_parent(struct ttd_cursor *cursor, struct ttd_heap_parent *parent);
/** Validates the ids. Returns a static description of the first violation, or NULL. */
const char *ttd_check_heap_parent(const struct ttd_heap_parent *parent);

/* spec, "Symbols". `offset` is the previous symbol's, 0 before the first. */
void ttd_encode_symbol(struct ttd_buffer *buffer, const struct ttd_symbol *symbol,
                       uint64_t *offset);
/** Decodes everything but the frames: ttd_decode_symbol_frame() follows frame_count times. */
void ttd_decode_symbol(struct ttd_cursor *cursor, struct ttd_symbol *symbol, uint64_t *offset);
void ttd_decode_symbol_frame(struct ttd_cursor *cursor, struct ttd_symbol_frame *frame);

/* spec, "User events", "Losses", "Metadata". */
void ttd_encode_user_event(struct ttd_buffer *buffer, const struct ttd_user_event *event);
void ttd_decode_user_event(struct ttd_cursor *cursor, struct ttd_user_event *event);
void ttd_encode_loss(struct ttd_buffer *buffer, const struct ttd_loss *loss);
void ttd_decode_loss(struct ttd_cursor *cursor, struct ttd_loss *loss);
/** Validates the range of a loss. Returns a static description of the first violation, or NULL. */
const char *ttd_check_loss(const struct ttd_loss *loss);
void ttd_encode_metadata(struct ttd_buffer *buffer, const struct ttd_metadata *metadata);
void ttd_decode_metadata(struct ttd_cursor *cursor, struct ttd_metadata *metadata);

/** Adds a count of lost events; UINT64_MAX, for unknown, adds nothing, and the sum saturates. */
static inline uint64_t ttd_add_count(uint64_t sum, uint64_t count)
{
    if (count == UINT64_MAX)
        return sum;
    return count < UINT64_MAX - sum ? sum + count : UINT64_MAX;
}

#endif
