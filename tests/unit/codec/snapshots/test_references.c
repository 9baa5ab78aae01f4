/* SPDX-License-Identifier: MIT */
/* Chunks of references of both kinds: round trips, their size, and the violations that are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "codec/snapshots/references.h"
#include "support/entropy.h"
#include "support/fixtures/buffer.h"
#include "support/older_references.h"

#define HEADER_SIZE TTD_PACKED_REFERENCES_COLUMNS
#define COUNT_MAX   4096

static struct ttd_reference_encoder encoder;

static void begin(void)
{
    buffer_begin();
    ttd_reference_encoder_init(&encoder, &allocator);
}

static void finish(void)
{
    ttd_reference_encoder_free(&encoder);
    buffer_finish();
}

TestSuite(references, .init = begin, .fini = finish);

/** Encodes references that are added a few at a time. */
static void encode(const struct ttd_reference *references, size_t count, size_t at_once)
{
    for (size_t i = 0; i < count; i += at_once) {
        struct ttd_references list = {7, references + i, count - i < at_once ? count - i : at_once};
        cr_assert_null(ttd_reference_encoder_check(&encoder, &list));
        cr_assert(ttd_reference_encoder_add(&encoder, &list));
    }
    cr_assert_eq(encoder.count, count);
    ttd_buffer_clear(&buffer);
    ttd_reference_encoder_finish(&encoder, &buffer);
    ttd_reference_encoder_clear(&encoder);
    cr_assert(!buffer.failed);
}

/** Encodes references of the older kind, which is only read. They need not be valid. */
static void encode_older(const struct ttd_reference *references, size_t count)
{
    static uint8_t bytes[OLDER_REFERENCES_SIZE(COUNT_MAX)];
    struct ttd_references list = {7, references, count};
    ttd_buffer_clear(&buffer);
    ttd_buffer_put(&buffer, bytes, older_references(&list, bytes));
}

typedef void decode_function(struct ttd_cursor *cursor, struct ttd_references *list,
                             struct ttd_reference *references);

/** Decodes the first `size` bytes of the buffer as so many references. */
static const char *decode_by(decode_function *function, struct ttd_reference *decoded, size_t count,
                             size_t size)
{
    struct ttd_references list = {.count = count};
    /* A copy of exactly this size, so that a sanitizer sees a byte read beyond. */
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, buffer.data, size);
    struct ttd_cursor in = ttd_cursor_of(copy, size);
    function(&in, &list, decoded);
    free(copy);
    if (!in.error) {
        cr_assert_eq(list.snapshot, 7);
        cr_assert_eq(list.references, decoded);
        cr_assert_eq(list.count, count);
    }
    return in.error;
}

static const char *decode(struct ttd_reference *decoded, size_t count, size_t size)
{
    return decode_by(ttd_decode_packed_references, decoded, count, size);
}

static void expect_decoded(decode_function *function, const struct ttd_reference *references,
                           size_t count)
{
    static struct ttd_reference decoded[COUNT_MAX];
    cr_assert_null(decode_by(function, decoded, count, buffer.size));
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(decoded[i].region, references[i].region, "%zu", i);
        cr_assert_eq(decoded[i].offset, references[i].offset, "%zu", i);
        cr_assert_eq(decoded[i].value, references[i].value, "%zu", i);
    }
}

static void expect_round_trip(const struct ttd_reference *references, size_t count)
{
    encode_older(references, count);
    expect_decoded(ttd_decode_references, references, count);
    encode(references, count, 3);
    expect_decoded(ttd_decode_packed_references, references, count);
    struct ttd_buffer small = buffer;
    ttd_buffer_init(&buffer, &allocator);
    encode(references, count, count);
    cr_assert_eq(buffer.size, small.size, "the same however they are added");
    cr_assert_arr_eq(buffer.data, small.data, small.size);
    expect_decoded(ttd_decode_packed_references, references, count);
    ttd_buffer_free(&small);
}

static const struct ttd_reference extremes[] = {{1, 0, 1},
                                                {1, 1, UINT64_MAX},
                                                {1, UINT64_MAX, 0x602010},
                                                {2, UINT64_MAX, 0x602008},
                                                {3, 0, 8},
                                                {3, 4, 7},
                                                {3, UINT64_MAX - 8, UINT64_C(1) << 63},
                                                {3, UINT64_MAX - 7, INT64_MAX},
                                                {UINT32_MAX - 1, 5, 1},
                                                {UINT32_MAX, 0, 2}};

Test(references, extremes_come_back_as_they_were)
{
    expect_round_trip(extremes, sizeof extremes / sizeof *extremes);
}

Test(references, any_come_back_as_they_were)
{
    static struct ttd_reference references[COUNT_MAX];
    for (uint64_t seed = 1; seed < 40; seed++) {
        struct entropy entropy = entropy_of_seed(seed);
        struct ttd_reference last = {1, 0, 0};
        size_t count = 1 + (size_t)entropy_below(&entropy, COUNT_MAX);
        for (size_t i = 0; i < count; i++) {
            uint64_t step = 1 + entropy_value(&entropy) % (UINT64_MAX - 1);
            if (step > UINT64_MAX - last.offset || entropy_below(&entropy, 100) == 0)
                last = (struct ttd_reference){last.region + 1, step, 0};
            else
                last.offset += step;
            last.value = 1 + entropy_value(&entropy) % UINT64_MAX;
            references[i] = last;
        }
        expect_round_trip(references, count);
    }
}

/* A list in memory order, whose nodes point back: a difference downwards is as short as one
 * upwards, and words that lie one behind the other cost nothing but their bytes. */
Test(references, neighbours_take_two_bytes)
{
    static struct ttd_reference references[1000];
    for (size_t i = 0; i < 1000; i++)
        references[i] = (struct ttd_reference){1, 8 * i, 0x602000 + 32 * (1000 - i)};
    expect_round_trip(references, 1000);
    cr_expect_lt(buffer.size, HEADER_SIZE + 1000 * 2 + 8);
}

/* Strings behind a header of odd size: a byte more. */
Test(references, low_bits_take_a_byte)
{
    static struct ttd_reference references[1000];
    for (size_t i = 0; i < 1000; i++)
        references[i] = (struct ttd_reference){1, 8 * i, 0x602003 + 32 * i + 16 * (i % 2)};
    expect_round_trip(references, 1000);
    cr_expect_lt(buffer.size, HEADER_SIZE + 1000 * 3 + 8);
}

Test(references, are_refused_where_they_are_truncated)
{
    static struct ttd_reference decoded[COUNT_MAX];
    size_t count = sizeof extremes / sizeof *extremes;
    encode(extremes, count, count);
    for (size_t size = 0; size < buffer.size; size++)
        cr_assert_not_null(decode(decoded, count, size), "%zu", size);
    encode_older(extremes, count);
    for (size_t size = 0; size < buffer.size; size++)
        cr_assert_not_null(decode_by(ttd_decode_references, decoded, count, size), "%zu", size);
}

Test(references, must_be_as_many_as_the_header_says)
{
    static struct ttd_reference decoded[COUNT_MAX];
    static const struct ttd_reference four[] = {{1, 0, 8}, {1, 8, 8}, {2, 0, 9}, {2, 8, 9}};
    encode(four, 4, 4);
    cr_assert_str_eq(decode(decoded, 3, buffer.size), "number of references of a region");
    cr_assert_str_eq(decode(decoded, 2, buffer.size), "bytes left over in the payload");
    cr_assert_str_eq(decode(decoded, 5, buffer.size), "payload too short");
    encode_older(four, 4);
    cr_assert_str_eq(decode_by(ttd_decode_references, decoded, 3, buffer.size),
                     "bytes left over in the payload");
    cr_assert_str_eq(decode_by(ttd_decode_references, decoded, 5, buffer.size),
                     "payload too short");
}

static void expect_invalid(struct ttd_reference first, struct ttd_reference second,
                           const char *expected)
{
    struct ttd_reference references[] = {first, second};
    struct ttd_references list = {7, references, 2};
    struct ttd_reference decoded[2];
    cr_assert_str_eq(ttd_reference_encoder_check(&encoder, &list), expected);
    /* Also if the first one was added before. */
    struct ttd_references before = {7, &first, 1}, after = {7, &second, 1};
    if (!ttd_reference_encoder_check(&encoder, &before)) {
        cr_assert(ttd_reference_encoder_add(&encoder, &before));
        cr_assert_str_eq(ttd_reference_encoder_check(&encoder, &after), expected);
        ttd_reference_encoder_clear(&encoder);
    }
    /* Their encoding must not pass for other references. */
    encode_older(references, 2);
    cr_assert_not_null(decode_by(ttd_decode_references, decoded, 2, buffer.size), "%s", expected);
}

Test(references, must_have_an_order)
{
    expect_invalid((struct ttd_reference){1, 8, 1}, (struct ttd_reference){1, 8, 1},
                   "order of references");
    expect_invalid((struct ttd_reference){1, 8, 1}, (struct ttd_reference){1, 0, 1},
                   "order of references");
    expect_invalid((struct ttd_reference){1, UINT64_MAX, 1}, (struct ttd_reference){1, 0, 1},
                   "order of references");
    expect_invalid((struct ttd_reference){2, 8, 1}, (struct ttd_reference){1, 16, 1},
                   "order of references");
    expect_invalid((struct ttd_reference){0, 8, 1}, (struct ttd_reference){0, 16, 1},
                   "order of references");
}

Test(references, must_have_values)
{
    expect_invalid((struct ttd_reference){1, 8, 0}, (struct ttd_reference){1, 16, 1},
                   "value of a reference");
    expect_invalid((struct ttd_reference){1, 8, 1}, (struct ttd_reference){1, 16, 0},
                   "value of a reference");
}

Test(references, are_of_one_snapshot)
{
    struct ttd_reference first = {1, 8, 1}, second = {1, 16, 1};
    cr_assert(ttd_reference_encoder_add(&encoder, &(struct ttd_references){7, &first, 1}));
    cr_assert_str_eq(ttd_reference_encoder_check(&encoder, &(struct ttd_references){8, &second, 1}),
                     "snapshot of references");
}

/** A payload of two references, {1, 8, 0x10} and {2, 0, 0x21}, of which a byte is another. */
static const char *decode_with(size_t at, uint8_t byte)
{
    static const uint8_t good[] = {7, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 2,
                                   0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 0, 8, 9, 1};
    struct ttd_reference references[] = {{1, 8, 0x10}, {2, 0, 0x21}};
    struct ttd_reference decoded[2];
    encode(references, 2, 2);
    cr_assert_eq(buffer.size, sizeof good);
    cr_assert_arr_eq(buffer.data, good, sizeof good);
    buffer.data[at] = byte;
    return decode(decoded, 2, buffer.size);
}

Test(references, violations_are_refused)
{
    cr_assert_null(decode_with(HEADER_SIZE, 1));
    cr_assert_str_eq(decode_with(TTD_REFERENCES_SNAPSHOT, 0), "number of a snapshot");
    cr_assert_str_eq(decode_with(TTD_REFERENCES_RESERVED, 1), "reserved field is not zero");
    cr_assert_str_eq(decode_with(HEADER_SIZE, 0), "region of a reference");
    cr_assert_str_eq(decode_with(HEADER_SIZE + 2, 0), "region of a reference");
    cr_assert_str_eq(decode_with(HEADER_SIZE + 1, 0), "number of references of a region");
    cr_assert_str_eq(decode_with(HEADER_SIZE + 1, 3), "number of references of a region");
    cr_assert_str_eq(decode_with(HEADER_SIZE + 6, 0), "value of a reference");
    /* zigzag(-1), twice: below 0. */
    cr_assert_str_eq(decode_with(HEADER_SIZE + 6, 2), "value of a reference");
    /* Low bits that are there and are not, of no value, or too many. */
    cr_assert_str_eq(decode_with(HEADER_SIZE + 6, 9), "value of a reference");
    cr_assert_str_eq(decode_with(HEADER_SIZE + 7, 8), "bytes left over in the payload");
    cr_assert_str_eq(decode_with(HEADER_SIZE + 8, 0), "value of a reference");
    cr_assert_str_eq(decode_with(HEADER_SIZE + 8, 8), "value of a reference");
    cr_assert_not_null(decode_with(TTD_REFERENCES_LENGTHS, 3));
}

Test(references, without_memory_none_is_added)
{
    struct ttd_references list = {7, extremes, 3};
    for (uint64_t n = 0; n < 5; n++) {
        finish();
        begin();
        chaos_memory_init(&memory, n);
        bool is_added = ttd_reference_encoder_add(&encoder, &list);
        cr_assert_eq(is_added, n == 4, "%llu", (unsigned long long)n);
        cr_assert_eq(encoder.count, is_added ? 3 : 0);
        /* And there is none for the payload. */
        ttd_reference_encoder_finish(&encoder, &buffer);
        cr_assert(buffer.failed);
    }
}
