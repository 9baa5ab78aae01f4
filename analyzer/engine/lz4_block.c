/* SPDX-License-Identifier: MIT */
#include "engine/lz4_block.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A match is this many bytes longer than its token says, and at least so long. */
#define MATCH_MIN 4

/* The lengths of a token go on in further bytes from here on. */
#define LENGTH_MORE 15

/* Restrictions of the format on the end of a block: no match begins or ends nearer to it. */
#define OUT_BEHIND_LITERALS 12
#define IN_BEHIND_LITERALS  8
#define OUT_BEHIND_MATCH    5

/* Bytes that are copied at once where there is room behind them. */
#define STRIDE 16

/** A block while it is decoded; `end` is behind the last byte of either side. */
struct block {
    const uint8_t *in;
    const uint8_t *in_end;
    uint8_t *begin;
    uint8_t *out;
    uint8_t *out_end;
};

/* Adds the bytes of a length that goes on after its token. False if the block ends within it, or it
 * is larger than any block. */
static bool lz4_add_length(struct block *block, size_t *length)
{
    uint8_t more;
    do {
        if (block->in == block->in_end || *length > (size_t)INT32_MAX)
            return false;
        more = *block->in++;
        *length += more;
    } while (more == UINT8_MAX);
    return true;
}

static bool lz4_block_copy_literals(struct block *block, size_t length)
{
    size_t left = (size_t)(block->in_end - block->in);
    size_t room = (size_t)(block->out_end - block->out);
    if (length > left || length > room)
        return false;
    if (length <= STRIDE && left >= STRIDE && room >= STRIDE)
        memcpy(block->out, block->in, STRIDE);
    else if (length)
        memcpy(block->out, block->in, length);
    block->in += length;
    block->out += length;
    return true;
}

/* Copies bytes that were decoded before. Matches that overlap their own output repeat
 * themselves. */
static bool lz4_block_copy_match(struct block *block, size_t offset, size_t length)
{
    size_t room = (size_t)(block->out_end - block->out);
    if (offset == 0 || offset > (size_t)(block->out - block->begin) ||
        length + OUT_BEHIND_MATCH > room)
        return false;
    const uint8_t *source = block->out - offset;
    uint8_t *target = block->out;
    uint8_t *end = target + length;
    block->out = end;
    if (offset >= STRIDE && room - length >= STRIDE) {
        for (; target < end; target += STRIDE, source += STRIDE)
            memcpy(target, source, STRIDE);
        return true;
    }
    while (target < end)
        *target++ = *source++;
    return true;
}

/* Decodes the literals of a sequence and its match. The last sequence of a block has no match. */
static bool lz4_block_decode_sequence(struct block *block, bool *is_last)
{
    unsigned token = *block->in++;
    size_t literals = token >> 4;
    size_t match = token & LENGTH_MORE;
    if (literals == LENGTH_MORE && !lz4_add_length(block, &literals))
        return false;
    if (!lz4_block_copy_literals(block, literals))
        return false;
    *is_last = block->in == block->in_end;
    if (*is_last)
        return true;
    if (block->in_end - block->in < IN_BEHIND_LITERALS ||
        block->out_end - block->out < OUT_BEHIND_LITERALS)
        return false;
    size_t offset = (size_t)(block->in[0] | block->in[1] << 8);
    block->in += 2;
    if (match == LENGTH_MORE && !lz4_add_length(block, &match))
        return false;
    return lz4_block_copy_match(block, offset, match + MATCH_MIN);
}

int lz4_block_decode(const char *source, char *target, int source_size, int target_size)
{
    struct block block = {.in = (const uint8_t *)source,
                          .in_end = (const uint8_t *)source + source_size,
                          .begin = (uint8_t *)target,
                          .out = (uint8_t *)target,
                          .out_end = (uint8_t *)target + target_size};
    bool is_last = false;
    /* Exactly one block decodes to nothing: a single token of 0. */
    if (target_size == 0)
        return source_size == 1 && *source == 0 ? 0 : -1;
    while (!is_last) {
        if (block.in == block.in_end || !lz4_block_decode_sequence(&block, &is_last))
            return -1;
    }
    return (int)(block.out - block.begin);
}
