/* SPDX-License-Identifier: MIT */
/* The decoder of LZ4 blocks does what that of LZ4 does. */
#include <criterion/criterion.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>

#include "engine/lz4_block.h"
#include "support/entropy.h"

#define SIZE_MAX_RAW 5000
#define BLOCKS       3000

/* Memory of just that size, so that a sanitizer sees what is read or written beyond it. */
static char *exactly(const char *data, size_t size)
{
    char *copy = malloc(size);
    if (size && data)
        memcpy(copy, data, size);
    return copy;
}

/* Decodes a block with both, and returns the size; negative if it is malformed. */
static int decode(const char *block, int size, int raw_size)
{
    char *source = exactly(block, (size_t)size);
    char *own = exactly(NULL, (size_t)raw_size);
    char *other = exactly(NULL, (size_t)raw_size);
    int result = lz4_block_decode(source, own, size, raw_size);
    int expected = LZ4_decompress_safe(source, other, size, raw_size);
    cr_assert_eq(result < 0, expected < 0, "%d instead of %d", result, expected);
    if (result >= 0) {
        cr_assert_eq(result, expected);
        cr_assert_eq(memcmp(own, other, (size_t)result), 0);
    }
    free(source);
    free(own);
    free(other);
    return result;
}

/* Data of any size that repeat themselves more or less. */
static int fill(struct entropy *entropy, char *raw)
{
    int size = (int)entropy_below(entropy, SIZE_MAX_RAW);
    unsigned letters = 1 + entropy_pick(entropy, 256);
    for (int i = 0; i < size;) {
        int length = 1 + (int)entropy_pick(entropy, 40);
        int back = i ? 1 + (int)entropy_pick(entropy, (unsigned)i) : 0;
        bool repeats = back && entropy_pick(entropy, 3);
        for (int k = 0; k < length && i < size; k++, i++)
            raw[i] = repeats ? raw[i - back] : (char)entropy_pick(entropy, letters);
    }
    return size;
}

Test(lz4_block, decodes_what_lz4_made)
{
    static char raw[SIZE_MAX_RAW], block[LZ4_COMPRESSBOUND(SIZE_MAX_RAW)];
    struct entropy entropy = entropy_of_seed(1);
    for (int i = 0; i < BLOCKS; i++) {
        int raw_size = fill(&entropy, raw);
        int size = LZ4_compress_default(raw, block, raw_size, (int)sizeof block);
        cr_assert_eq(decode(block, size, raw_size), raw_size);
        cr_assert_lt(decode(block, size, raw_size ? raw_size - 1 : 0), raw_size ? 0 : 1);
    }
}

/* Whether the offset of a match of the block may be 0, of which LZ4 makes something. */
static bool has_zeros(const char *block, int size)
{
    for (int i = 0; i + 1 < size; i++) {
        if (!block[i] && !block[i + 1])
            return true;
    }
    return false;
}

Test(lz4_block, rejects_what_lz4_rejects)
{
    static char raw[SIZE_MAX_RAW], block[LZ4_COMPRESSBOUND(SIZE_MAX_RAW)];
    struct entropy entropy = entropy_of_seed(2);
    int malformed = 0;
    for (int i = 0; i < 4 * BLOCKS; i++) {
        int raw_size = fill(&entropy, raw);
        int size = LZ4_compress_default(raw, block, raw_size, (int)sizeof block);
        for (unsigned k = 1 + entropy_pick(&entropy, 3); k > 0 && size; k--)
            block[entropy_pick(&entropy, (unsigned)size)] ^= (char)(1 << entropy_pick(&entropy, 8));
        if (size && !entropy_pick(&entropy, 4))
            size -= (int)entropy_pick(&entropy, (unsigned)size);
        if (has_zeros(block, size))
            continue;
        malformed += decode(block, size, raw_size) != raw_size;
    }
    cr_assert_gt(malformed, BLOCKS / 2);
}

Test(lz4_block, rejects_an_offset_of_0)
{
    static const char block[] = {0x10, 'a', 0, 0, 0x50, 'b', 'c', 'd', 'e', 'f'};
    char raw[64];
    cr_assert_lt(lz4_block_decode(block, raw, sizeof block, 10), 0);
}
