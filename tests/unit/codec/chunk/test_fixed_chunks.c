/* SPDX-License-Identifier: MIT */
/* Payloads of a fixed size: the first and the last chunk's. */
#include <string.h>

#include "codec/chunk/header.h"
#include "layout.h"
#include "support/fixtures/buffer.h"

TestSuite(fixed, .init = buffer_begin, .fini = buffer_finish);

static struct ttd_trace valid_trace(void)
{
    return (struct ttd_trace){.trace_id = 1,
                              .group = {.bytes = {1, [15] = 16}},
                              .parent_trace_id = 2,
                              .parent_position = {3, 4},
                              .start_time = -5,
                              .time_unit = 6,
                              .process_id = 7,
                              .parent_process_id = 8,
                              .flags = TTD_TRACE_ATTACHED,
                              .architecture = 9,
                              .pointer_size = 4,
                              .source_trace_id = 10,
                              .source_size = 11,
                              .source_hash = 12};
}

Test(fixed, trace_comes_back_as_it_was)
{
    struct ttd_trace trace = valid_trace();
    struct ttd_trace decoded;
    ttd_encode_trace(&buffer, &trace);
    struct ttd_cursor cursor = ttd_cursor_of(buffer.data, buffer.size);

    ttd_decode_trace(&cursor, &decoded);

    cr_assert_eq(buffer.size, TTD_TRACE_SIZE);
    cr_assert_null(cursor.error);
    cr_assert_eq(ttd_cursor_left(&cursor), 0);
    cr_assert_eq(memcmp(decoded.group.bytes, trace.group.bytes, sizeof trace.group.bytes), 0);
    cr_assert_eq(decoded.parent_trace_id, 2);
    cr_assert_eq(decoded.parent_position.sequence, 3);
    cr_assert_eq(decoded.parent_position.steps, 4);
    cr_assert_eq(decoded.start_time, -5);
    cr_assert_eq(decoded.time_unit, 6);
    cr_assert_eq(decoded.process_id, 7);
    cr_assert_eq(decoded.parent_process_id, 8);
    cr_assert_eq(decoded.flags, TTD_TRACE_ATTACHED);
    cr_assert_eq(decoded.architecture, 9);
    cr_assert_eq(decoded.pointer_size, 4);
    cr_assert_eq(decoded.source_trace_id, 10);
    cr_assert_eq(decoded.source_size, 11);
    cr_assert_eq(decoded.source_hash, 12);
}

Test(fixed, trace_is_refused_where_it_is_truncated)
{
    struct ttd_trace trace = valid_trace();
    ttd_encode_trace(&buffer, &trace);
    for (size_t size = 0; size < buffer.size; size++) {
        struct ttd_cursor cursor = ttd_cursor_of(buffer.data, size);
        ttd_decode_trace(&cursor, &trace);
        cr_assert_not_null(cursor.error);
    }
}

Test(fixed, trace_must_have_reserved_bytes_of_zero)
{
    struct ttd_trace trace = valid_trace();
    ttd_encode_trace(&buffer, &trace);
    buffer.data[TTD_TRACE_RESERVED] = 1;
    struct ttd_cursor cursor = ttd_cursor_of(buffer.data, buffer.size);
    ttd_decode_trace(&cursor, &trace);
    cr_assert_str_eq(cursor.error, "reserved field is not zero");
}

Test(fixed, trace_is_right_as_it_is)
{
    struct ttd_trace trace = valid_trace();
    cr_assert_null(ttd_check_trace(&trace));
}

Test(fixed, trace_must_have_an_id)
{
    struct ttd_trace trace = valid_trace();
    trace.trace_id = 0;
    cr_assert_str_eq(ttd_check_trace(&trace), "trace_id 0");
}

Test(fixed, trace_needs_a_time_unit_unless_it_was_recovered)
{
    struct ttd_trace trace = valid_trace();
    trace.time_unit = 0;
    cr_assert_str_eq(ttd_check_trace(&trace), "time_unit 0");
    trace.flags |= TTD_TRACE_RECOVERED;
    cr_assert_null(ttd_check_trace(&trace));
}

Test(fixed, trace_must_have_the_one_form_of_no_parent_position)
{
    struct ttd_trace trace = valid_trace();
    trace.parent_position = ttd_position_invalid();
    cr_assert_null(ttd_check_trace(&trace));
    trace.parent_position.steps = 0;
    cr_assert_str_eq(ttd_check_trace(&trace), "parent_position");
}

Test(fixed, trace_must_have_pointers_of_4_or_8_bytes)
{
    struct ttd_trace trace = valid_trace();
    trace.pointer_size = 8;
    cr_assert_null(ttd_check_trace(&trace));
    trace.pointer_size = 16;
    cr_assert_str_eq(ttd_check_trace(&trace), "pointer_size");
}

Test(fixed, trace_must_not_have_unknown_flags)
{
    struct ttd_trace trace = valid_trace();
    trace.flags = TTD_TRACE_FLAGS_MASK + 1;
    cr_assert_str_eq(ttd_check_trace(&trace), "unknown flags of the trace");
}

static struct ttd_end valid_end(void)
{
    return (struct ttd_end){.reason = TTD_END_REASON_EXITED,
                            .code = 3,
                            .wall_time = 4,
                            .events = 5,
                            .lost_events = TTD_UNKNOWN,
                            .chunks = 6,
                            .index_offset = 112};
}

static struct ttd_cursor decode_end(struct ttd_end *end)
{
    struct ttd_cursor cursor = ttd_cursor_of(buffer.data, buffer.size);
    ttd_decode_end(&cursor, end);
    return cursor;
}

Test(fixed, end_comes_back_as_it_was)
{
    struct ttd_end end = valid_end();
    ttd_encode_end(&buffer, &end);
    end = (struct ttd_end){.code = 0};

    struct ttd_cursor cursor = decode_end(&end);

    cr_assert_eq(buffer.size, TTD_END_PAYLOAD_SIZE);
    cr_assert_null(cursor.error);
    cr_assert_eq(ttd_cursor_left(&cursor), 0);
    cr_assert_eq(end.reason, TTD_END_REASON_EXITED);
    cr_assert_eq(end.code, 3);
    cr_assert_eq(end.wall_time, 4);
    cr_assert_eq(end.events, 5);
    cr_assert_eq(end.lost_events, TTD_UNKNOWN);
    cr_assert_eq(end.chunks, 6);
    cr_assert_eq(end.index_offset, 112);
}

Test(fixed, end_must_have_a_reason_that_is_a_number)
{
    struct ttd_end end = valid_end();
    ttd_encode_end(&buffer, &end);
    ttd_put32(buffer.data + TTD_END_PAYLOAD_REASON, UINT32_MAX);
    cr_assert_str_eq(decode_end(&end).error, "reason of the end");
}

Test(fixed, end_must_know_the_number_of_events)
{
    struct ttd_end end = valid_end();
    end.events = UINT64_MAX;
    ttd_encode_end(&buffer, &end);
    cr_assert_str_eq(decode_end(&end).error, "events of the end");
}
