/* SPDX-License-Identifier: MIT */
/** A growing run of bytes. The first failure of the allocator sticks; check once at the end. */
#ifndef TTD_BASE_BUFFER_H
#define TTD_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/allocator.h>

#include "base/bytes.h"

struct ttd_buffer {
    uint8_t *data;
    size_t size;
    size_t capacity;
    const struct ttd_allocator *allocator;
    bool failed;
};

/** Prepares an empty buffer; the allocator must outlive it. */
void ttd_buffer_init(struct ttd_buffer *buffer, const struct ttd_allocator *allocator);
void ttd_buffer_free(struct ttd_buffer *buffer);

/** Empties the buffer; keeps its memory. */
static inline void ttd_buffer_clear(struct ttd_buffer *buffer)
{
    buffer->size = 0;
}

/** Makes room for `size` bytes after the content. Returns false, and sets `failed`, if memory is
 * exhausted. */
bool ttd_buffer_reserve(struct ttd_buffer *buffer, size_t size);

/** Appends bytes; does nothing after a failure. */
void ttd_buffer_put(struct ttd_buffer *buffer, const void *data, size_t size);
void ttd_buffer_put_varint(struct ttd_buffer *buffer, uint64_t value);
void ttd_buffer_put8(struct ttd_buffer *buffer, uint8_t value);
void ttd_buffer_put32(struct ttd_buffer *buffer, uint32_t value);
void ttd_buffer_put64(struct ttd_buffer *buffer, uint64_t value);

/** Spreads 56 bits over the low 7 bits of 8 bytes. */
static inline uint64_t ttd_varint_spread(uint64_t x)
{
    x = (x & UINT64_C(0x00FFFFFFF0000000)) << 4 | (x & UINT64_C(0x000000000FFFFFFF));
    x = (x & UINT64_C(0x0FFFC0000FFFC000)) << 2 | (x & UINT64_C(0x00003FFF00003FFF));
    return (x & UINT64_C(0x3F803F803F803F80)) << 1 | (x & UINT64_C(0x007F007F007F007F));
}

/** Appends a varint of five bytes or more, like ttd_buffer_append_varint(). */
static inline void ttd_buffer_append_long_varint(struct ttd_buffer *buffer, uint64_t value)
{
    const uint64_t more = UINT64_C(0x8080808080808080); /* a byte follows */
    uint8_t *end = buffer->data + buffer->size;
    unsigned extra_bytes = 4u + (value >> 35 != 0) + (value >> 42 != 0) + (value >> 49 != 0) +
                           (value >> 56 != 0) + (value >> 63 != 0);
    if (extra_bytes < 8) {
        ttd_put64(end, ttd_varint_spread(value) | (more & ((UINT64_C(1) << 8 * extra_bytes) - 1)));
    } else {
        ttd_put64(end, ttd_varint_spread(value) | more);
        end[8] = (uint8_t)(value >> 56);
        end[9] = (uint8_t)(value >> 63);
    }
    buffer->size += extra_bytes + 1;
}

/** Appends a varint. The caller has reserved TTD_VARINT_MAX bytes. */
static inline void ttd_buffer_append_varint(struct ttd_buffer *buffer, uint64_t value)
{
    uint8_t *end = buffer->data + buffer->size;
    if (value < 0x80) {
        *end = (uint8_t)value;
        buffer->size++;
        return;
    }
    if (value >= UINT32_C(1) << 28) {
        ttd_buffer_append_long_varint(buffer, value);
        return;
    }
    /* Four groups at once; only the needed ones stay: their number is hard to predict. */
    uint32_t v = (uint32_t)value;
    unsigned extra_bytes = 1 + (v >= 1u << 14) + (v >= 1u << 21);
    uint32_t bytes = (v & 0x7F) | (v & 0x3F80) << 1 | (v & 0x1FC000) << 2 | (v & 0xFE00000) << 3;
    ttd_put32(end, bytes | (UINT32_C(0x808080) & ((UINT32_C(1) << 8 * extra_bytes) - 1)));
    buffer->size += extra_bytes + 1;
}

#endif
