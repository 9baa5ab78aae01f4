/* SPDX-License-Identifier: MIT */
#include "dwarf/zlib_stream.h"

#include <string.h>

/* Blocks of DEFLATE (RFC 1951). */
enum {
    BLOCK_STORED,
    BLOCK_FIXED,
    BLOCK_DYNAMIC,
    SYMBOL_END = 256,
    LENGTH_CODES = 29,
    DISTANCE_CODES = 30,
    WIDTH_CODES = 19, /* symbols that describe the widths of the two codes */
};

static uint32_t zlib_bits(struct zlib_stream *stream, unsigned count)
{
    while (stream->bit_count < count) {
        if (stream->next == stream->end) {
            stream->is_bad = true;
            return 0;
        }
        stream->bits |= (uint32_t)*stream->next++ << stream->bit_count;
        stream->bit_count += 8;
    }
    uint32_t value = stream->bits & (((uint32_t)1 << count) - 1);
    stream->bits >>= count;
    stream->bit_count -= count;
    return value;
}

/* Makes a code of the widths of its symbols. False if they are more than there are codes; fewer are
 * no error before a missing one is met. */
static bool zlib_code_make(struct zlib_code *code, const uint8_t *widths, unsigned count)
{
    uint16_t places[ZLIB_CODE_BITS + 1];
    int left = 1;
    memset(code->counts, 0, sizeof code->counts);
    for (unsigned i = 0; i < count; i++)
        code->counts[widths[i]]++;
    code->counts[0] = 0;
    places[0] = places[1] = 0;
    for (unsigned bits = 1; bits <= ZLIB_CODE_BITS; bits++) {
        left = 2 * left - code->counts[bits];
        if (left < 0)
            return false;
        if (bits < ZLIB_CODE_BITS)
            places[bits + 1] = (uint16_t)(places[bits] + code->counts[bits]);
    }
    for (unsigned i = 0; i < count; i++)
        if (widths[i] != 0)
            code->symbols[places[widths[i]]++] = (uint16_t)i;
    return true;
}

static unsigned zlib_symbol(struct zlib_stream *stream, const struct zlib_code *code)
{
    uint32_t value = 0, first = 0;
    unsigned place = 0;
    for (unsigned bits = 1; bits <= ZLIB_CODE_BITS && !stream->is_bad; bits++) {
        value |= zlib_bits(stream, 1);
        if (value - first < code->counts[bits])
            return code->symbols[place + (value - first)];
        place += code->counts[bits];
        first = (first + code->counts[bits]) << 1;
        value <<= 1;
    }
    stream->is_bad = true;
    return 0;
}

static void zlib_put(struct zlib_stream *stream, uint8_t byte)
{
    if (stream->done == stream->size)
        stream->is_bad = true;
    else
        stream->out[stream->done++] = byte;
}

/* Repeats `length` bytes from `distance` bytes before: the copy may overlap itself. */
static void zlib_repeat(struct zlib_stream *stream, size_t distance, size_t length)
{
    if (distance > stream->done || length > stream->size - stream->done) {
        stream->is_bad = true;
        return;
    }
    for (uint8_t *out = stream->out + stream->done, *end = out + length; out < end; out++)
        *out = out[-(ptrdiff_t)distance];
    stream->done += length;
}

/* Reads the length of a repetition, by its symbol. */
static size_t zlib_length(struct zlib_stream *stream, unsigned symbol)
{
    unsigned index = symbol - SYMBOL_END - 1;
    if (index >= LENGTH_CODES) {
        stream->is_bad = true;
        return 0;
    }
    if (index < 8)
        return 3 + index;
    if (index == LENGTH_CODES - 1)
        return 258;
    unsigned extra = index / 4 - 1;
    return 3 + ((4 + index % 4) << extra) + zlib_bits(stream, extra);
}

static size_t zlib_distance(struct zlib_stream *stream)
{
    unsigned symbol = zlib_symbol(stream, &stream->distances);
    if (symbol >= DISTANCE_CODES) {
        stream->is_bad = true;
        return 0;
    }
    if (symbol < 4)
        return 1 + symbol;
    unsigned extra = symbol / 2 - 1;
    return 1 + ((2 + symbol % 2) << extra) + zlib_bits(stream, extra);
}

static void zlib_block_coded(struct zlib_stream *stream)
{
    while (!stream->is_bad) {
        unsigned symbol = zlib_symbol(stream, &stream->lengths);
        if (symbol == SYMBOL_END)
            return;
        if (symbol < SYMBOL_END) {
            zlib_put(stream, (uint8_t)symbol);
            continue;
        }
        size_t length = zlib_length(stream, symbol);
        size_t distance = zlib_distance(stream);
        if (!stream->is_bad)
            zlib_repeat(stream, distance, length);
    }
}

static void zlib_block_stored(struct zlib_stream *stream)
{
    stream->bits = stream->bit_count = 0; /* less than a byte is left */
    uint32_t size = zlib_bits(stream, 16);
    uint32_t inverse = zlib_bits(stream, 16);
    size_t left = (size_t)(stream->end - stream->next);
    if (stream->is_bad || (size ^ inverse) != 0xffff || size > left ||
        size > stream->size - stream->done) {
        stream->is_bad = true;
        return;
    }
    memcpy(stream->out + stream->done, stream->next, size);
    stream->done += size;
    stream->next += size;
}

static void zlib_codes_fixed(struct zlib_stream *stream)
{
    uint8_t *widths = stream->widths;
    for (unsigned i = 0; i < ZLIB_LENGTHS; i++)
        widths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    zlib_code_make(&stream->lengths, widths, ZLIB_LENGTHS);
    memset(widths, 5, ZLIB_DISTANCES);
    zlib_code_make(&stream->distances, widths, ZLIB_DISTANCES);
}

/* Reads `count` widths, which are coded themselves, by the code in stream->lengths. */
static void zlib_widths(struct zlib_stream *stream, unsigned count)
{
    for (unsigned i = 0; i < count && !stream->is_bad;) {
        unsigned symbol = zlib_symbol(stream, &stream->lengths), times = 1;
        uint8_t width = (uint8_t)symbol;
        if (symbol == 16 && i == 0)
            stream->is_bad = true;
        if (symbol >= 16)
            width = symbol == 16 && i > 0 ? stream->widths[i - 1] : 0;
        if (symbol == 16)
            times = 3 + zlib_bits(stream, 2);
        else if (symbol == 17)
            times = 3 + zlib_bits(stream, 3);
        else if (symbol == 18)
            times = 11 + zlib_bits(stream, 7);
        if (times > count - i) {
            stream->is_bad = true;
            return;
        }
        memset(stream->widths + i, width, times);
        i += times;
    }
}

static void zlib_codes_read(struct zlib_stream *stream)
{
    static const uint8_t order[WIDTH_CODES] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                               11, 4,  12, 3, 13, 2, 14, 1, 15};
    unsigned lengths = 257 + zlib_bits(stream, 5);
    unsigned distances = 1 + zlib_bits(stream, 5);
    unsigned described = 4 + zlib_bits(stream, 4);
    memset(stream->widths, 0, WIDTH_CODES);
    for (unsigned i = 0; i < described; i++)
        stream->widths[order[i]] = (uint8_t)zlib_bits(stream, 3);
    if (lengths > ZLIB_LENGTHS || !zlib_code_make(&stream->lengths, stream->widths, WIDTH_CODES)) {
        stream->is_bad = true;
        return;
    }
    zlib_widths(stream, lengths + distances);
    if (!stream->is_bad &&
        (!zlib_code_make(&stream->lengths, stream->widths, lengths) ||
         !zlib_code_make(&stream->distances, stream->widths + lengths, distances)))
        stream->is_bad = true;
}

static void zlib_block(struct zlib_stream *stream)
{
    switch (zlib_bits(stream, 2)) {
    case BLOCK_STORED:
        zlib_block_stored(stream);
        return;
    case BLOCK_FIXED:
        zlib_codes_fixed(stream);
        break;
    case BLOCK_DYNAMIC:
        zlib_codes_read(stream);
        break;
    default:
        stream->is_bad = true;
    }
    zlib_block_coded(stream);
}

static uint32_t zlib_adler(const uint8_t *bytes, size_t size)
{
    enum { MODULUS = 65521 };
    uint32_t low = 1, high = 0;
    for (size_t i = 0; i < size; i++) {
        low = (low + bytes[i]) % MODULUS;
        high = (high + low) % MODULUS;
    }
    return high << 16 | low;
}

bool zlib_expand(struct zlib_stream *stream, const uint8_t *bytes, size_t size, uint8_t *out,
                 size_t out_size)
{
    enum { HEADER = 2, METHOD = 0x0f, METHOD_DEFLATE = 8, HAS_DICTIONARY = 0x20, CHECKSUM = 4 };
    if (size < HEADER + CHECKSUM || (bytes[0] & METHOD) != METHOD_DEFLATE ||
        (bytes[0] << 8 | bytes[1]) % 31 != 0 || (bytes[1] & HAS_DICTIONARY) != 0)
        return false;
    stream->next = bytes + HEADER;
    stream->end = bytes + size;
    stream->out = out;
    stream->size = out_size;
    stream->done = 0;
    stream->bits = stream->bit_count = 0;
    stream->is_bad = false;
    for (bool is_last = false; !is_last && !stream->is_bad;) {
        is_last = zlib_bits(stream, 1) != 0;
        zlib_block(stream);
    }
    if (stream->is_bad || stream->done != out_size || stream->end - stream->next < CHECKSUM)
        return false;
    const uint8_t *sum = stream->next;
    return zlib_adler(out, out_size) ==
           ((uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 | (uint32_t)sum[2] << 8 | sum[3]);
}
