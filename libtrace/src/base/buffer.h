/* SPDX-License-Identifier: MIT */
/** A growing run of bytes. The first failure of the allocator sticks; check once at the end. */
#ifndef TTD_BASE_BUFFER_H
#define TTD_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/allocator.h>

#include "base/bytes.h"

typedef struct ttd_buffer {
    uint8_t *data;
    size_t size;
    size_t capacity;
    const ttd_allocator *allocator;
    bool failed;
} ttd_buffer;

/** Prepares an empty buffer; the allocator must outlive it. */
void ttd_buffer_init(ttd_buffer *buffer, const ttd_allocator *allocator);
void ttd_buffer_free(ttd_buffer *buffer);

/** Forgets the content and keeps the memory. */
static inline void ttd_buffer_clear(ttd_buffer *buffer)
{
    buffer->size = 0;
}

/** Makes room for `more` bytes after the content. False, and failed, without memory. */
bool ttd_buffer_reserve(ttd_buffer *buffer, size_t more);

/** Appends bytes; does nothing after a failure. */
void ttd_buffer_put(ttd_buffer *buffer, const void *data, size_t size);
void ttd_buffer_put_varint(ttd_buffer *buffer, uint64_t value);
void ttd_buffer_put8(ttd_buffer *buffer, uint8_t value);
void ttd_buffer_put32(ttd_buffer *buffer, uint32_t value);
void ttd_buffer_put64(ttd_buffer *buffer, uint64_t value);

#endif
