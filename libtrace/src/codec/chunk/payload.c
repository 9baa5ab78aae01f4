/* SPDX-License-Identifier: MIT */
#include "codec/chunk/payload.h"

#include <lz4.h>
#include <lz4hc.h>
#include <string.h>

#include "base/bytes.h"
#include "layout.h"

/** From this level on LZ4HC is used. */
#define FIRST_HC_LEVEL 3

enum ttd_status ttd_payload_compress(const uint8_t *raw, size_t raw_size, int level,
                                     enum ttd_codec *codec, struct ttd_buffer *stored)
{
    ttd_buffer_clear(stored);
    if (*codec != TTD_CODEC_LZ4 || raw_size == 0) {
        *codec = TTD_CODEC_RAW;
        return TTD_OK;
    }
    int bound = LZ4_compressBound((int)raw_size);
    if (!ttd_buffer_reserve(stored, (size_t)bound))
        return TTD_ERROR_NO_MEMORY;
    const char *source = (const char *)raw;
    char *target = (char *)stored->data;
    int size = 0;
    if (level < FIRST_HC_LEVEL) {
        size = LZ4_compress_default(source, target, (int)raw_size, bound);
    } else {
        struct ttd_buffer state;
        ttd_buffer_init(&state, stored->allocator);
        if (!ttd_buffer_reserve(&state, (size_t)LZ4_sizeofStateHC()))
            return TTD_ERROR_NO_MEMORY;
        size = LZ4_compress_HC_extStateHC(state.data, source, target, (int)raw_size, bound, level);
        ttd_buffer_free(&state);
    }
    /* Stored as it is where compression gains nothing: decoding is then a copy. */
    if (size <= 0 || (size_t)size >= raw_size)
        *codec = TTD_CODEC_RAW;
    else
        stored->size = (size_t)size;
    return TTD_OK;
}

bool ttd_payload_is_known(unsigned codec)
{
    return codec == TTD_CODEC_RAW || codec == TTD_CODEC_LZ4;
}

/** Adds the bytes of a length that goes on after its token. Returns the position behind them. */
static const uint8_t *payload_add_length(const uint8_t *next, const uint8_t *end, size_t *length)
{
    uint8_t byte = 255;
    while (byte == 255 && next != end) {
        byte = *next++;
        *length += byte;
    }
    return next;
}

/** Whether the offset of a match is 0. LZ4's decoders do not reject it, and what each makes of it
 * is undefined. The block is one that LZ4 has decoded, and so is well-formed otherwise. */
static bool has_offset_zero(const uint8_t *block, size_t size)
{
    const uint8_t *next = block;
    const uint8_t *end = block + size;
    while (next != end) {
        unsigned token = *next++;
        size_t length = token >> 4;
        if (length == 15)
            next = payload_add_length(next, end, &length);
        if ((size_t)(end - next) < length + 2)
            return false; /* the last sequence has no match */
        next += length;
        if (ttd_get16(next) == 0)
            return true;
        next += 2;
        if ((token & 15) == 15)
            next = payload_add_length(next, end, &length);
    }
    return false;
}

enum ttd_status ttd_payload_decompress(unsigned codec, const uint8_t *stored, size_t stored_size,
                                       uint8_t *raw, size_t raw_size, const char **what)
{
    switch (codec) {
    case TTD_CODEC_RAW:
        if (raw_size != 0)
            memcpy(raw, stored, raw_size);
        return TTD_OK;
    case TTD_CODEC_LZ4:
        if (LZ4_decompress_safe((const char *)stored, (char *)raw, (int)stored_size,
                                (int)raw_size) == (int)raw_size &&
            !has_offset_zero(stored, stored_size))
            return TTD_OK;
        *what = "compressed payload";
        return TTD_ERROR_CORRUPT;
    default:
        *what = "codec";
        return TTD_ERROR_UNSUPPORTED;
    }
}
