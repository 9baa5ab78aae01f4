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

/** Picks a chunk. Returns its offset; sets its size, or 0 if it is incomplete. */
static size_t pick(const uint8_t *data, size_t size, unsigned *seed, size_t *chunk_size)
{
    size_t count = 0;
    while (count < 64 && chunk_edit_find(data, size, count) < size)
        count++;
    size_t at = count ? chunk_edit_find(data, size, draw(seed) % count) : size;
    uint64_t whole = chunk_edit_size(data + at, size - at);
    *chunk_size = whole <= size - at ? (size_t)whole : 0;
    return at;
}

/** Replaces the chunk at `at` by an uncompressed one. Returns the new size of the file. */
static size_t replace(uint8_t *data, size_t size, size_t max_size, size_t at, size_t chunk_size,
                      const uint8_t *payload, size_t payload_size)
{
    size_t padded = (payload_size + TTD_ALIGNMENT - 1) / TTD_ALIGNMENT * TTD_ALIGNMENT;
    size_t rest = size - at - chunk_size;
    if (at + TTD_HEADER_SIZE + padded + rest > max_size)
        return size;
    uint8_t *target = data + at + TTD_HEADER_SIZE;
    memmove(target + padded, data + at + chunk_size, rest);
    memset(target, 0, padded);
    memcpy(target, payload, payload_size);
    data[at + TTD_HEADER_CODEC] = 0;
    ttd_put32(data + at + TTD_HEADER_STORED_SIZE, (uint32_t)payload_size);
    ttd_put32(data + at + TTD_HEADER_RAW_SIZE, (uint32_t)payload_size);
    return at + TTD_HEADER_SIZE + padded + rest;
}

/** Mutates a decompressed payload. */
static size_t mutate_payload(uint8_t *data, size_t size, size_t max_size, unsigned *seed)
{
    static uint8_t raw[RAW_MAX];
    size_t chunk_size;
    size_t at = pick(data, size, seed, &chunk_size);
    if (chunk_size == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    const uint8_t *payload = data + at + TTD_HEADER_SIZE;
    size_t stored = ttd_get32(data + at + TTD_HEADER_STORED_SIZE);
    if (stored > RAW_MAX)
        return size;
    int raw_size = (int)stored;
    if (data[at + TTD_HEADER_CODEC] == 1)
        raw_size = LZ4_decompress_safe((const char *)payload, (char *)raw, (int)stored, RAW_MAX);
    else
        memcpy(raw, payload, stored);
    if (raw_size < 0)
        return size;
    size_t room = draw(seed) % 4 ? (size_t)raw_size : RAW_MAX;
    size_t mutated = LLVMFuzzerMutate(raw, (size_t)raw_size, room ? room : 1);
    return replace(data, size, max_size, at, chunk_size, raw, mutated);
}

/** Mutates a header, its hash excepted. */
static void mutate_header(uint8_t *data, size_t size, unsigned *seed)
{
    size_t chunk_size;
    size_t at = pick(data, size, seed, &chunk_size);
    if (chunk_size == 0)
        return;
    size_t field = draw(seed) % (TTD_HEADER_PAYLOAD_HASH - TTD_HEADER_MAJOR);
    uint8_t *byte = data + at + TTD_HEADER_MAJOR + field;
    *byte = draw(seed) % 2 ? (uint8_t)draw(seed) : (uint8_t)(*byte + (draw(seed) % 2 ? 1 : -1));
    chunk_edit_seal_header(data + at);
}

/** Changes the trace identifier, which chooses what some targets do. */
static void mutate_identity(uint8_t *data, size_t size, unsigned *seed)
{
    if (size >= TTD_HEADER_SIZE)
        ttd_put64(data + TTD_HEADER_TRACE_ID, UINT64_C(1) + draw(seed));
}

/** Removes or duplicates a chunk. */
static size_t mutate_order(uint8_t *data, size_t size, size_t max_size, unsigned *seed)
{
    size_t chunk_size;
    size_t at = pick(data, size, seed, &chunk_size);
    size_t rest = size - at - chunk_size;
    if (chunk_size == 0)
        return size;
    if (draw(seed) % 2) {
        memmove(data + at, data + at + chunk_size, rest);
        return size - chunk_size;
    }
    if (chunk_size > max_size - size)
        return size;
    memmove(data + at + chunk_size, data + at, chunk_size + rest);
    return size + chunk_size;
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
