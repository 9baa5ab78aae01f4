/* SPDX-License-Identifier: MIT */
#include "base/buffer.h"

#include <string.h>

#include "base/memory.h"
#include "layout.h"

void ttd_buffer_init(struct ttd_buffer *buffer, const struct ttd_allocator *allocator)
{
    *buffer = (struct ttd_buffer){.allocator = allocator};
}

void ttd_buffer_free(struct ttd_buffer *buffer)
{
    if (buffer->allocator)
        ttd_release(buffer->allocator, buffer->data);
    *buffer = (struct ttd_buffer){.allocator = buffer->allocator};
}

static bool buffer_has_room(const struct ttd_buffer *buffer, size_t size)
{
    return !buffer->failed && size <= buffer->capacity - buffer->size;
}

bool ttd_buffer_reserve(struct ttd_buffer *buffer, size_t size)
{
    if (buffer_has_room(buffer, size))
        return true;
    /* A failure sticks, so that callers check once, when all is appended. */
    if (buffer->failed)
        return false;
    void *data = buffer->data;
    if (size > SIZE_MAX - buffer->size ||
        ttd_grow_array(buffer->allocator, &data, &buffer->capacity, buffer->size + size, 1)) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    return true;
}

void ttd_buffer_put(struct ttd_buffer *buffer, const void *data, size_t size)
{
    if (size == 0 || !ttd_buffer_reserve(buffer, size))
        return;
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

void ttd_buffer_put_varint(struct ttd_buffer *buffer, uint64_t value)
{
    /* Room for the longest varint: its length is known only when it is written. */
    if (!buffer_has_room(buffer, TTD_VARINT_MAX) && !ttd_buffer_reserve(buffer, TTD_VARINT_MAX))
        return;
    if (value < 0x80) {
        buffer->data[buffer->size++] = (uint8_t)value;
        return;
    }
    buffer->size = (size_t)(ttd_put_varint(buffer->data + buffer->size, value) - buffer->data);
}

void ttd_buffer_put8(struct ttd_buffer *buffer, uint8_t value)
{
    ttd_buffer_put(buffer, &value, 1);
}

void ttd_buffer_put32(struct ttd_buffer *buffer, uint32_t value)
{
    uint8_t bytes[4];
    ttd_put32(bytes, value);
    ttd_buffer_put(buffer, bytes, sizeof bytes);
}

void ttd_buffer_put64(struct ttd_buffer *buffer, uint64_t value)
{
    uint8_t bytes[8];
    ttd_put64(bytes, value);
    ttd_buffer_put(buffer, bytes, sizeof bytes);
}
