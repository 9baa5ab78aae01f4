/* SPDX-License-Identifier: MIT */
/* Chunk headers. */
#include <string.h>

#include <criterion/criterion.h>

#include <ttdtrace/model.h>
#include <ttdtrace/version.h>

#include "base/bytes.h"
#include "codec/chunk/header.h"

/* A header whose fields all differ. */
static struct ttd_header valid_header(void)
{
    return (struct ttd_header){.major = TTD_FORMAT_MAJOR,
                               .kind = TTD_KIND_EVENTS,
                               .codec = TTD_CODEC_LZ4,
                               .flags = TTD_CHUNK_CRITICAL,
                               .minor = 0x0102,
                               .stored_size = 0x0304,
                               .raw_size = 0x0506,
                               .trace_id = 0x0708,
                               .number = 0x090A,
                               .offset = 0x0B08,
                               .first_record = 0x0D0E,
                               .record_count = 0x0102,
                               .first_position = {0x1112, 0x1314},
                               .last_position = {0x1516, 0x1718},
                               .payload_hash = 0x191A};
}

static void expect_refused_bytes(const uint8_t bytes[TTD_HEADER_SIZE], enum ttd_status expected,
                                 const char *expected_what)
{
    struct ttd_header header = {.number = 77};
    const char *what = NULL;
    cr_assert_eq(ttd_header_decode(bytes, &header, &what), expected);
    cr_assert_str_eq(what, expected_what);
    cr_assert_eq(header.number, 77, "untouched");
}

/* Refused although the hash is right. */
static void expect_corrupt(const struct ttd_header *header, const char *what)
{
    uint8_t bytes[TTD_HEADER_SIZE];
    ttd_header_encode(header, bytes);
    expect_refused_bytes(bytes, TTD_ERROR_CORRUPT, what);
}

static void expect_accepted(const struct ttd_header *header)
{
    uint8_t bytes[TTD_HEADER_SIZE];
    struct ttd_header decoded;
    const char *what;
    ttd_header_encode(header, bytes);
    cr_assert_eq(ttd_header_decode(bytes, &decoded, &what), TTD_OK);
}

Test(header, comes_back_as_it_was)
{
    struct ttd_header header = valid_header();
    struct ttd_header decoded;
    uint8_t bytes[TTD_HEADER_SIZE];
    const char *what;

    ttd_header_encode(&header, bytes);
    cr_assert_eq(ttd_header_decode(bytes, &decoded, &what), TTD_OK);

    cr_assert_eq(decoded.major, header.major);
    cr_assert_eq(decoded.kind, header.kind);
    cr_assert_eq(decoded.codec, header.codec);
    cr_assert_eq(decoded.flags, header.flags);
    cr_assert_eq(decoded.minor, header.minor);
    cr_assert_eq(decoded.stored_size, header.stored_size);
    cr_assert_eq(decoded.raw_size, header.raw_size);
    cr_assert_eq(decoded.trace_id, header.trace_id);
    cr_assert_eq(decoded.number, header.number);
    cr_assert_eq(decoded.offset, header.offset);
    cr_assert_eq(decoded.first_record, header.first_record);
    cr_assert_eq(decoded.record_count, header.record_count);
    cr_assert_eq(ttd_position_compare(decoded.first_position, header.first_position), 0);
    cr_assert_eq(ttd_position_compare(decoded.last_position, header.last_position), 0);
    cr_assert_eq(decoded.payload_hash, header.payload_hash);
}

Test(header, has_its_fields_where_the_layout_says)
{
    struct ttd_header header = valid_header();
    uint8_t bytes[TTD_HEADER_SIZE];

    ttd_header_encode(&header, bytes);

    cr_assert(ttd_is_magic(bytes, TTD_MAGIC_SIZE));
    cr_assert_eq(ttd_get32(bytes + TTD_HEADER_STORED_SIZE), 0x0304);
    cr_assert_eq(ttd_get64(bytes + TTD_HEADER_OFFSET), 0x0B08);
    cr_assert_eq(ttd_get64(bytes + TTD_HEADER_LAST_POSITION + 8), 0x1718);
    cr_assert_eq(ttd_get64(bytes + TTD_HEADER_HASH), ttd_hash(bytes, TTD_HEADER_HASH));
}

Test(header, without_magic_is_no_trace)
{
    struct ttd_header header = valid_header();
    uint8_t bytes[TTD_HEADER_SIZE];
    for (size_t i = 0; i < TTD_MAGIC_SIZE; i++) {
        ttd_header_encode(&header, bytes);
        bytes[i] ^= 1;
        expect_refused_bytes(bytes, TTD_ERROR_NOT_A_TRACE, "magic");
    }
}

Test(header, is_corrupt_with_any_bit_flipped)
{
    struct ttd_header header = valid_header();
    uint8_t bytes[TTD_HEADER_SIZE];
    ttd_header_encode(&header, bytes);
    for (size_t bit = 8 * TTD_MAGIC_SIZE; bit < 8 * TTD_HEADER_SIZE; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        expect_refused_bytes(bytes, TTD_ERROR_CORRUPT, "header checksum");
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

Test(header, of_another_major_version_is_unsupported)
{
    struct ttd_header header = valid_header();
    uint8_t bytes[TTD_HEADER_SIZE];
    header.major++;
    header.flags = 0xFF; /* whatever that version makes of it */
    ttd_header_encode(&header, bytes);
    expect_refused_bytes(bytes, TTD_ERROR_UNSUPPORTED, "major version");
}

Test(header, may_be_of_a_kind_or_codec_that_is_not_known)
{
    struct ttd_header header = valid_header();
    header.kind = TTD_KIND_LAST + 1;
    header.codec = 200;
    expect_accepted(&header);
}

Test(header, must_have_reserved_bytes_of_zero)
{
    struct ttd_header header = valid_header();
    uint8_t bytes[TTD_HEADER_SIZE];
    ttd_header_encode(&header, bytes);
    bytes[TTD_HEADER_RESERVED + 2] = 1;
    ttd_put64(bytes + TTD_HEADER_HASH, ttd_hash(bytes, TTD_HEADER_HASH));
    expect_refused_bytes(bytes, TTD_ERROR_CORRUPT, "reserved field is not zero");
}

Test(header, must_not_have_unknown_flags)
{
    struct ttd_header header = valid_header();
    header.flags |= TTD_CHUNK_FLAGS_MASK + 1;
    expect_corrupt(&header, "unknown flags of a chunk");
}

Test(header, must_have_a_kind)
{
    struct ttd_header header = valid_header();
    header.kind = 0;
    expect_corrupt(&header, "kind 0");
}

Test(header, must_say_whether_its_kind_is_critical)
{
    struct ttd_header header = valid_header();
    header.flags = 0;
    expect_corrupt(&header, "critical flag of a chunk");
    header.kind = TTD_KIND_STRINGS;
    header.flags = TTD_CHUNK_CRITICAL;
    expect_corrupt(&header, "critical flag of a chunk");
}

Test(header, must_keep_the_limit_of_payloads)
{
    struct ttd_header header = valid_header();
    header.stored_size = header.raw_size = TTD_PAYLOAD_MAX;
    expect_accepted(&header);
    header.stored_size = TTD_PAYLOAD_MAX + 1;
    expect_corrupt(&header, "payload exceeds its limit");
    header.stored_size = TTD_PAYLOAD_MAX;
    header.raw_size = TTD_PAYLOAD_MAX + 1;
    expect_corrupt(&header, "payload exceeds its limit");
}

Test(header, of_a_raw_payload_has_one_size)
{
    struct ttd_header header = valid_header();
    header.codec = TTD_CODEC_RAW;
    expect_corrupt(&header, "stored size of a raw payload");
}

Test(header, must_not_promise_more_than_lz4_can_hold)
{
    struct ttd_header header = valid_header();
    header.stored_size = 8;
    header.raw_size = (uint32_t)TTD_LZ4_RAW_MAX(8);
    expect_accepted(&header);
    header.raw_size++;
    expect_corrupt(&header, "raw size of a compressed payload");
}

Test(header, must_not_have_more_items_than_bytes_or_than_the_limit)
{
    struct ttd_header header = valid_header();
    header.record_count = header.raw_size + 1;
    expect_corrupt(&header, "number of records");
    header.stored_size = header.raw_size = 2 * TTD_RECORDS_MAX;
    header.record_count = TTD_RECORDS_MAX;
    expect_accepted(&header);
    header.record_count = TTD_RECORDS_MAX + 1;
    expect_corrupt(&header, "number of records");
}

Test(header, must_not_number_items_beyond_64_bits)
{
    struct ttd_header header = valid_header();
    header.first_record = UINT64_MAX - header.record_count;
    expect_accepted(&header);
    header.first_record++;
    expect_corrupt(&header, "number of the first record");
}

Test(header, must_belong_to_a_trace)
{
    struct ttd_header header = valid_header();
    header.trace_id = 0;
    expect_corrupt(&header, "trace_id 0");
}

Test(header, must_be_aligned)
{
    struct ttd_header header = valid_header();
    header.offset++;
    expect_corrupt(&header, "offset of a chunk");
}

Test(header, must_have_valid_positions_in_order)
{
    struct ttd_header header = valid_header();
    header.first_position = header.last_position;
    expect_accepted(&header);
    header.first_position.steps++;
    expect_corrupt(&header, "positions of a chunk");
    header = valid_header();
    header.first_position = ttd_position_invalid();
    expect_corrupt(&header, "positions of a chunk");
    header = valid_header();
    header.last_position = ttd_position_invalid();
    expect_corrupt(&header, "positions of a chunk");
}

Test(header, tells_the_size_of_the_chunk_with_its_padding)
{
    struct ttd_header header = valid_header();
    header.stored_size = 16;
    cr_assert_eq(ttd_chunk_size(&header), TTD_HEADER_SIZE + 16);
    header.stored_size = 17;
    cr_assert_eq(ttd_chunk_size(&header), TTD_HEADER_SIZE + 24);
    header.stored_size = TTD_PAYLOAD_MAX;
    cr_assert_eq(ttd_chunk_size(&header), (uint64_t)TTD_HEADER_SIZE + TTD_PAYLOAD_MAX);
}
