/* SPDX-License-Identifier: MIT */
#include "support/chunk_edit.h"

#include <string.h>
#include <xxhash.h>

uint64_t chunk_edit_size(const uint8_t *bytes, size_t size)
{
    if (size < TTD_HEADER_SIZE)
        return 0;
    uint64_t stored = ttd_get32(bytes + TTD_HEADER_STORED_SIZE);
    return (TTD_HEADER_SIZE + stored + TTD_ALIGNMENT - 1) / TTD_ALIGNMENT * TTD_ALIGNMENT;
}

size_t chunk_edit_find(const uint8_t *bytes, size_t size, size_t number)
{
    size_t at = 0;
    while (number > 0) {
        uint64_t chunk = chunk_edit_size(bytes + at, size - at);
        if (chunk == 0 || chunk > size - at)
            return size;
        at += (size_t)chunk;
        number--;
    }
    return at;
}

size_t chunk_edit_find_kind(const uint8_t *bytes, size_t size, unsigned kind)
{
    size_t at = 0;
    for (size_t i = 0; (at = chunk_edit_find(bytes, size, i)) < size; i++)
        if (ttd_get16(bytes + at + TTD_HEADER_KIND) == kind)
            break;
    return at;
}

uint64_t chunk_edit_hash(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

void chunk_edit_seal_header(uint8_t *chunk)
{
    ttd_put64(chunk + TTD_HEADER_HASH, chunk_edit_hash(chunk, TTD_HEADER_HASH));
}

void chunk_edit_seal(uint8_t *chunk, size_t size)
{
    if (size < TTD_HEADER_SIZE)
        return;
    uint32_t stored = ttd_get32(chunk + TTD_HEADER_STORED_SIZE);
    if (stored <= size - TTD_HEADER_SIZE)
        ttd_put64(chunk + TTD_HEADER_PAYLOAD_HASH,
                  chunk_edit_hash(chunk + TTD_HEADER_SIZE, stored));
    chunk_edit_seal_header(chunk);
}

void chunk_edit_seal_all(uint8_t *bytes, size_t size)
{
    static const uint8_t magic[TTD_MAGIC_SIZE] = {TTD_MAGIC_BYTES};
    size_t at = 0;
    for (uint64_t number = 0; size - at >= TTD_HEADER_SIZE; number++) {
        uint8_t *chunk = bytes + at;
        memcpy(chunk, magic, sizeof magic);
        ttd_put64(chunk + TTD_HEADER_NUMBER, number);
        ttd_put64(chunk + TTD_HEADER_OFFSET, at);
        memcpy(chunk + TTD_HEADER_TRACE_ID, bytes + TTD_HEADER_TRACE_ID, 8);
        chunk_edit_seal(chunk, size - at);
        uint64_t step = chunk_edit_size(chunk, size - at);
        if (step > size - at)
            break;
        at += (size_t)step;
    }
}
