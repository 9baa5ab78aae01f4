/* SPDX-License-Identifier: MIT */
/*
 * Mutations for libFuzzer that understand chunks: without them, nearly every input ends at a wrong
 * checksum. Payloads are decompressed before they are changed, and checksums are mostly corrected.
 */
#include <lz4.h>
#include <stdlib.h>
#include <string.h>

#include "support/chunk_edit.h"
#include "target.h"

#define RAW_MAX (UINT32_C(1) << 16)

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static unsigned draw(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16;
}

/** A chunk in the file. The size is 0 if it is incomplete. */
struct chunk {
    size_t offset;
    size_t size;
};

static struct chunk pick(const uint8_t *data, size_t size, unsigned *seed)
{
    size_t count = 0;
    while (count < 64 && chunk_edit_find(data, size, count) < size)
        count++;
    size_t offset = count ? chunk_edit_find(data, size, draw(seed) % count) : size;
    uint64_t whole = chunk_edit_size(data + offset, size - offset);
    return (struct chunk){offset, whole <= size - offset ? (size_t)whole : 0};
}

/** Replaces the payload of the chunk by an uncompressed one. Returns the new size of the file; if
 * that is too large, nothing changes. */
static size_t replace(uint8_t *data, size_t size, size_t max_size, struct chunk chunk,
                      const uint8_t *payload, size_t payload_size)
{
    uint8_t *header = data + chunk.offset;
    size_t padded = (payload_size + TTD_ALIGNMENT - 1) / TTD_ALIGNMENT * TTD_ALIGNMENT;
    size_t rest = size - chunk.offset - chunk.size;
    size_t new_size = chunk.offset + TTD_HEADER_SIZE + padded + rest;
    if (new_size > max_size)
        return size;
    memmove(header + TTD_HEADER_SIZE + padded, header + chunk.size, rest);
    memset(header + TTD_HEADER_SIZE, 0, padded);
    memcpy(header + TTD_HEADER_SIZE, payload, payload_size);
    header[TTD_HEADER_CODEC] = 0;
    ttd_put32(header + TTD_HEADER_STORED_SIZE, (uint32_t)payload_size);
    ttd_put32(header + TTD_HEADER_RAW_SIZE, (uint32_t)payload_size);
    return new_size;
}

/** Mutates a decompressed payload. */
static size_t mutate_payload(uint8_t *data, size_t size, size_t max_size, unsigned *seed)
{
    static uint8_t raw[RAW_MAX];
    struct chunk chunk = pick(data, size, seed);
    if (chunk.size == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    const uint8_t *header = data + chunk.offset;
    const uint8_t *payload = header + TTD_HEADER_SIZE;
    size_t stored = ttd_get32(header + TTD_HEADER_STORED_SIZE);
    if (stored > RAW_MAX)
        return size;
    int raw_size = (int)stored;
    if (header[TTD_HEADER_CODEC] == 1)
        raw_size = LZ4_decompress_safe((const char *)payload, (char *)raw, (int)stored, RAW_MAX);
    else
        memcpy(raw, payload, stored);
    if (raw_size < 0)
        return size;
    size_t room = draw(seed) % 4 ? (size_t)raw_size : RAW_MAX;
    size_t mutated = LLVMFuzzerMutate(raw, (size_t)raw_size, room ? room : 1);
    return replace(data, size, max_size, chunk, raw, mutated);
}

/** Mutates a header, its hash excepted. */
static void mutate_header(uint8_t *data, size_t size, unsigned *seed)
{
    struct chunk chunk = pick(data, size, seed);
    if (chunk.size == 0)
        return;
    size_t field = draw(seed) % (TTD_HEADER_PAYLOAD_HASH - TTD_HEADER_MAJOR);
    uint8_t *byte = data + chunk.offset + TTD_HEADER_MAJOR + field;
    *byte = draw(seed) % 2 ? (uint8_t)draw(seed) : (uint8_t)(*byte + (draw(seed) % 2 ? 1 : -1));
    chunk_edit_seal_header(data + chunk.offset);
}

/** Changes the trace identifier, which chooses the work of some targets. */
static void mutate_identity(uint8_t *data, size_t size, unsigned *seed)
{
    if (size >= TTD_HEADER_SIZE)
        ttd_put64(data + TTD_HEADER_TRACE_ID, UINT64_C(1) + draw(seed));
}

/** Removes or duplicates a chunk. */
static size_t mutate_order(uint8_t *data, size_t size, size_t max_size, unsigned *seed)
{
    struct chunk chunk = pick(data, size, seed);
    uint8_t *header = data + chunk.offset;
    size_t rest = size - chunk.offset - chunk.size;
    if (chunk.size == 0)
        return size;
    if (draw(seed) % 2) {
        memmove(header, header + chunk.size, rest);
        return size - chunk.size;
    }
    if (chunk.size > max_size - size)
        return size;
    memmove(header + chunk.size, header, chunk.size + rest);
    return size + chunk.size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    switch (draw(&seed) % 16) {
    case 0:
    case 1:
        return LLVMFuzzerMutate(data, size, max_size);
    case 2:
    case 3:
        mutate_header(data, size, &seed);
        return size;
    case 4:
    case 5:
        size = mutate_order(data, size, max_size, &seed);
        break;
    case 6:
        mutate_identity(data, size, &seed);
        break;
    default:
        size = mutate_payload(data, size, max_size, &seed);
        break;
    }
    if (draw(&seed) % 8)
        chunk_edit_seal_all(data, size);
    return size;
}
