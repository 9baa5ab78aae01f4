/* SPDX-License-Identifier: MIT */
/* Payload codecs. */
#include <string.h>

#include <criterion/criterion.h>

#include "codec/chunk/header.h"
#include "support/chaos.h"
#include "support/entropy.h"

#define RAW_SIZE 5000

static struct chaos_memory memory;
static struct ttd_allocator allocator;
static struct ttd_buffer stored;
static struct ttd_buffer scratch;
static uint8_t raw[RAW_SIZE];

static void begin(void)
{
    chaos_memory_init(&memory, CHAOS_NEVER);
    allocator = chaos_allocator(&memory);
    ttd_buffer_init(&stored, &allocator);
    ttd_buffer_init(&scratch, &allocator);
    for (size_t i = 0; i < RAW_SIZE; i++)
        raw[i] = (uint8_t)(i / 50);
}

static void finish(void)
{
    ttd_buffer_free(&stored);
    ttd_buffer_free(&scratch);
    cr_assert_eq(memory.blocks, 0, "nothing is left allocated");
}

TestSuite(payload, .init = begin, .fini = finish);

static enum ttd_codec compress(size_t size, int level)
{
    enum ttd_codec codec = TTD_CODEC_LZ4;
    cr_assert_eq(ttd_payload_compress(raw, size, level, &codec, &stored, &scratch), TTD_OK);
    return codec;
}

static void expect_refused(const uint8_t *bytes, size_t size, size_t raw_size)
{
    uint8_t decompressed[RAW_SIZE + 1];
    const char *what = NULL;
    cr_assert_eq(ttd_payload_decompress(TTD_CODEC_LZ4, bytes, size, decompressed, raw_size, &what),
                 TTD_ERROR_CORRUPT);
    cr_assert_str_eq(what, "compressed payload");
}

Test(payload, comes_back_from_every_level)
{
    for (int level = 0; level <= 12; level++) {
        uint8_t decompressed[RAW_SIZE];
        const char *what;
        cr_assert_eq(compress(RAW_SIZE, level), TTD_CODEC_LZ4);
        cr_assert_lt(stored.size, RAW_SIZE / 2);
        cr_assert_eq(ttd_payload_decompress(TTD_CODEC_LZ4, stored.data, stored.size, decompressed,
                                            RAW_SIZE, &what),
                     TTD_OK);
        cr_assert_eq(memcmp(decompressed, raw, RAW_SIZE), 0);
    }
}

Test(payload, that_does_not_become_smaller_stays_raw)
{
    struct entropy entropy = entropy_of_seed(1);
    for (size_t i = 0; i < RAW_SIZE; i++)
        raw[i] = (uint8_t)entropy_pick(&entropy, 256);
    cr_assert_eq(compress(RAW_SIZE, 0), TTD_CODEC_RAW);
    cr_assert_eq(stored.size, 0);
}

Test(payload, of_nothing_is_raw)
{
    cr_assert_eq(compress(0, 0), TTD_CODEC_RAW);
}

Test(payload, stays_raw_where_no_compression_is_wanted)
{
    enum ttd_codec codec = TTD_CODEC_RAW;
    cr_assert_eq(ttd_payload_compress(raw, RAW_SIZE, 0, &codec, &stored, &scratch), TTD_OK);
    cr_assert_eq(codec, TTD_CODEC_RAW);
    cr_assert_eq(memory.counter.calls, 0, "no memory is asked for");
}

Test(payload, that_is_raw_is_copied)
{
    uint8_t copy[RAW_SIZE];
    const char *what;
    cr_assert_eq(ttd_payload_decompress(TTD_CODEC_RAW, raw, RAW_SIZE, copy, RAW_SIZE, &what),
                 TTD_OK);
    cr_assert_eq(memcmp(copy, raw, RAW_SIZE), 0);
}

Test(payload, says_where_memory_runs_out)
{
    for (uint64_t call = 0; call < 2; call++) {
        enum ttd_codec codec = TTD_CODEC_LZ4;
        ttd_buffer_free(&stored);
        ttd_buffer_free(&scratch);
        ttd_buffer_init(&stored, &allocator);
        memory.counter = (struct chaos_counter){.fail_at = call};
        cr_assert_eq(ttd_payload_compress(raw, RAW_SIZE, 9, &codec, &stored, &scratch),
                     TTD_ERROR_NO_MEMORY);
    }
}

Test(payload, is_refused_where_it_is_truncated)
{
    compress(RAW_SIZE, 0);
    for (size_t size = 1; size < stored.size; size++)
        expect_refused(stored.data, size, RAW_SIZE);
}

Test(payload, is_refused_where_its_raw_size_is_another)
{
    compress(RAW_SIZE, 0);
    expect_refused(stored.data, stored.size, RAW_SIZE - 1);
    expect_refused(stored.data, stored.size, RAW_SIZE + 1);
}

/* Decoders of LZ4 make different bytes of such a match. */
Test(payload, is_refused_with_an_offset_of_zero)
{
    static const uint8_t block[] = {0x44, 'a', 'b', 'c', 'd', 0, 0, 0x50, 'v', 'w', 'x', 'y', 'z'};
    uint8_t with_offset[sizeof block];
    uint8_t decompressed[RAW_SIZE];
    const char *what;
    memcpy(with_offset, block, sizeof block);
    with_offset[5] = 4;
    const size_t raw_size = 4 + 8 + 5;
    cr_assert_eq(ttd_payload_decompress(TTD_CODEC_LZ4, with_offset, sizeof with_offset,
                                        decompressed, raw_size, &what),
                 TTD_OK, "with another offset it is a block");
    expect_refused(block, sizeof block, raw_size);
}

Test(payload, of_an_unknown_codec_is_unsupported)
{
    uint8_t copy[RAW_SIZE];
    const char *what = NULL;
    cr_assert_not(ttd_payload_is_known(200));
    cr_assert_eq(ttd_payload_decompress(200, raw, RAW_SIZE, copy, RAW_SIZE, &what),
                 TTD_ERROR_UNSUPPORTED);
    cr_assert_str_eq(what, "codec");
}
