/* SPDX-License-Identifier: MIT */
/* Chunks of references: round trips, their size, and the violations that are refused. */
#include <stdlib.h>
#include <string.h>

#include "codec/snapshots/references.h"
#include "support/entropy.h"
#include "support/fixtures/buffer.h"

#define HEADER_SIZE TTD_REFERENCES_COLUMNS
#define COUNT_MAX   4096

static struct ttd_buffer columns[TTD_REFERENCE_COLUMN_COUNT];

static void begin(void)
{
    buffer_begin();
    for (size_t i = 0; i < TTD_REFERENCE_COLUMN_COUNT; i++)
        ttd_buffer_init(&columns[i], &allocator);
}

static void finish(void)
{
    for (size_t i = 0; i < TTD_REFERENCE_COLUMN_COUNT; i++)
        ttd_buffer_free(&columns[i]);
    buffer_finish();
}

TestSuite(references, .init = begin, .fini = finish);

static void encode(const struct ttd_reference *references, size_t count)
{
    struct ttd_references list = {7, references, count};
    cr_assert_null(ttd_check_references(&list));
    ttd_buffer_clear(&buffer);
    ttd_encode_references(&buffer, &list, columns);
    cr_assert(!buffer.failed);
}

/** Decodes the first `size` bytes of the buffer as so many references. */
static const char *decode(struct ttd_reference *decoded, size_t count, size_t size)
{
    struct ttd_references list = {.count = count};
    /* A copy of exactly this size, so that a sanitizer sees a byte read beyond. */
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, buffer.data, size);
    struct ttd_cursor in = ttd_cursor_of(copy, size);
    ttd_decode_references(&in, &list, decoded);
    free(copy);
    if (!in.error) {
        cr_assert_eq(list.snapshot, 7);
        cr_assert_eq(list.references, decoded);
        cr_assert_eq(list.count, count);
    }
    return in.error;
}

static void expect_round_trip(const struct ttd_reference *references, size_t count)
{
    static struct ttd_reference decoded[COUNT_MAX];
    encode(references, count);
    cr_assert_null(decode(decoded, count, buffer.size));
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(decoded[i].region, references[i].region, "%zu", i);
        cr_assert_eq(decoded[i].offset, references[i].offset, "%zu", i);
        cr_assert_eq(decoded[i].value, references[i].value, "%zu", i);
    }
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
Test(references, neighbours_take_three_bytes)
{
    static struct ttd_reference references[1000];
    for (size_t i = 0; i < 1000; i++)
        references[i] = (struct ttd_reference){1, 8 * i, 0x602000 + 32 * (1000 - i)};
    expect_round_trip(references, 1000);
    cr_expect_lt(buffer.size, HEADER_SIZE + 1000 * 3 + 8);
}

Test(references, are_refused_where_they_are_truncated)
{
    static struct ttd_reference decoded[COUNT_MAX];
    size_t count = sizeof extremes / sizeof *extremes;
    encode(extremes, count);
    for (size_t size = 0; size < buffer.size; size++)
        cr_assert_not_null(decode(decoded, count, size), "%zu", size);
}

Test(references, must_be_as_many_as_the_header_says)
{
    static struct ttd_reference decoded[COUNT_MAX];
    size_t count = sizeof extremes / sizeof *extremes;
    encode(extremes, count);
    cr_assert_str_eq(decode(decoded, count - 1, buffer.size), "bytes left over in the payload");
    cr_assert_str_eq(decode(decoded, count + 1, buffer.size), "payload too short");
}

static void expect_invalid(struct ttd_reference first, struct ttd_reference second,
                           const char *expected)
{
    struct ttd_reference references[] = {first, second};
    struct ttd_references list = {7, references, 2};
    struct ttd_reference decoded[2];
    cr_assert_str_eq(ttd_check_references(&list), expected);
    /* Their encoding must not pass for other references. */
    ttd_buffer_clear(&buffer);
    ttd_encode_references(&buffer, &list, columns);
    cr_assert_not_null(decode(decoded, 2, buffer.size), "%s", expected);
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

/** Encodes two good references, changes a byte of the payload, and decodes. */
static const char *decode_with(size_t at, uint8_t byte)
{
    struct ttd_reference references[] = {{1, 8, 0x10}, {2, 0, 0x20}};
    struct ttd_reference decoded[2];
    encode(references, 2);
    buffer.data[at] = byte;
    return decode(decoded, 2, buffer.size);
}

Test(references, violations_are_refused)
{
    cr_assert_null(decode_with(HEADER_SIZE, 1));
    cr_assert_str_eq(decode_with(TTD_REFERENCES_SNAPSHOT, 0), "number of a snapshot");
    cr_assert_str_eq(decode_with(TTD_REFERENCES_RESERVED, 1), "reserved field is not zero");
    cr_assert_str_eq(decode_with(HEADER_SIZE, 0), "region of a reference");
    cr_assert_str_eq(decode_with(HEADER_SIZE + 4, 0), "value of a reference");
    /* zigzag(-2): back to a word of 0. */
    cr_assert_str_eq(decode_with(HEADER_SIZE + 5, 3), "value of a reference");
    cr_assert_not_null(decode_with(TTD_REFERENCES_LENGTHS, 3));
}

Test(references, without_memory_the_payload_fails)
{
    for (uint64_t n = 0; n < TTD_REFERENCE_COLUMN_COUNT + 1; n++) {
        finish();
        chaos_memory_init(&memory, n);
        ttd_buffer_init(&buffer, &allocator);
        for (size_t i = 0; i < TTD_REFERENCE_COLUMN_COUNT; i++)
            ttd_buffer_init(&columns[i], &allocator);
        struct ttd_references list = {7, extremes, 3};
        ttd_encode_references(&buffer, &list, columns);
        cr_assert(buffer.failed, "%llu", (unsigned long long)n);
    }
}
