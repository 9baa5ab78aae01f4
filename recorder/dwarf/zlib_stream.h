/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_DWARF_ZLIB_STREAM_H
#define RECORDER_DWARF_ZLIB_STREAM_H

/* Decompresses zlib streams of known size without allocating: in the recorded process, no library
 * may be used. The streams are untrusted. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The longest code of DEFLATE, and the symbols of its two alphabets. */
enum { ZLIB_CODE_BITS = 15, ZLIB_LENGTHS = 288, ZLIB_DISTANCES = 32 };

/** No stream of `size` bytes has more than `size` times this. */
#define ZLIB_RATIO_MAX 1032u

/** A canonical Huffman code. */
struct zlib_code {
    uint16_t counts[ZLIB_CODE_BITS + 1]; /* of symbols, by the bits of their codes */
    uint16_t symbols[ZLIB_LENGTHS];      /* in the order of their codes */
};

/** The memory of a decompression: the caller's stack may be too small for it. */
struct zlib_stream {
    const uint8_t *next;
    const uint8_t *end;
    uint8_t *out;
    size_t size; /* of `out` */
    size_t done;
    uint32_t bits; /* that were read and not used, the first one lowest */
    unsigned bit_count;
    bool is_bad; /* sticks */
    struct zlib_code lengths;
    struct zlib_code distances;
    uint8_t widths[ZLIB_LENGTHS + ZLIB_DISTANCES]; /* bits of each symbol's code */
};

#pragma GCC visibility push(hidden)

/** Decompresses into `out`. False unless the stream is valid and has exactly `out_size` bytes. */
bool zlib_expand(struct zlib_stream *stream, const uint8_t *bytes, size_t size, uint8_t *out,
                 size_t out_size);

#pragma GCC visibility pop

#endif
