/* SPDX-License-Identifier: MIT */
/* Chunks of events that are refused, and a decoder without memory. */
#include <criterion/criterion.h>

#include "support/fixtures/event_chunk.h"
#include "support/entropy.h"

TestSuite(events_refused, .init = event_fixture_begin, .fini = event_fixture_finish, .timeout = 60);

Test(events_refused, are_refused_where_they_are_truncated)
{
    static struct event_chunk chunk;
    event_chunk_fill_simply(&chunk);
    event_chunk_encode(&chunk);
    for (size_t size = 0; size < fixture.payload.size; size++) {
        cr_assert_eq(event_chunk_decode(&chunk, fixture.payload.data, size), TTD_ERROR_CORRUPT);
        cr_assert_not_null(fixture.decoder.error);
    }
}

Test(events_refused, are_refused_with_a_byte_behind_them)
{
    static struct event_chunk chunk;
    event_chunk_fill_simply(&chunk);
    event_chunk_encode(&chunk);
    ttd_buffer_put8(&fixture.payload, 0);
    cr_assert_eq(event_chunk_decode(&chunk, fixture.payload.data, fixture.payload.size),
                 TTD_ERROR_CORRUPT);
}

Test(events_refused, must_be_as_many_as_the_header_says)
{
    static struct event_chunk chunk;
    event_chunk_fill_simply(&chunk);
    event_chunk_encode(&chunk);
    chunk.count = 2;
    cr_assert_eq(event_chunk_decode(&chunk, fixture.payload.data, fixture.payload.size),
                 TTD_ERROR_CORRUPT);
    chunk.count = 4;
    chunk.events[3] = chunk.events[2];
    cr_assert_eq(event_chunk_decode(&chunk, fixture.payload.data, fixture.payload.size),
                 TTD_ERROR_CORRUPT);
}

Test(events_refused, must_begin_and_end_where_the_header_says)
{
    static struct event_chunk chunk;
    event_chunk_fill_simply(&chunk);
    event_chunk_encode(&chunk);
    chunk.events[2].time_end.steps++;
    cr_assert_eq(event_chunk_decode(&chunk, fixture.payload.data, fixture.payload.size),
                 TTD_ERROR_CORRUPT);
    event_chunk_fill_simply(&chunk);
    chunk.events[0].time_end.steps--;
    cr_assert_eq(event_chunk_decode(&chunk, fixture.payload.data, fixture.payload.size),
                 TTD_ERROR_CORRUPT);
}

/* The bytes of a column of the fixture.payload. */
static uint8_t *column_bytes(enum ttd_column column)
{
    uint8_t *bytes = fixture.payload.data + TTD_EVENTS_COLUMNS;
    for (int i = 0; i < (int)column; i++)
        bytes += ttd_get32(fixture.payload.data + TTD_EVENTS_LENGTHS + 4 * i);
    return bytes;
}

/* Encodes three simple events, and changes one byte of a column. */
static void expect_refused_with(enum ttd_column column, size_t at, uint8_t byte, const char *error)
{
    static struct event_chunk chunk;
    event_chunk_fill_simply(&chunk);
    event_chunk_encode(&chunk);
    column_bytes(column)[at] = byte;
    cr_assert_eq(event_chunk_decode(&chunk, fixture.payload.data, fixture.payload.size),
                 TTD_ERROR_CORRUPT);
    cr_assert_str_eq(fixture.decoder.error, error);
}

Test(events_refused, must_have_a_shape_of_the_table)
{
    static struct event_chunk chunk;
    event_chunk_fill_simply(&chunk);
    event_chunk_encode(&chunk);
    uint32_t shapes = ttd_get32(fixture.payload.data + TTD_EVENTS_SHAPE_COUNT);
    cr_assert_eq(shapes, 2, "an allocation and a release");
    expect_refused_with(TTD_COLUMN_SHAPES_FIRST, 2, (uint8_t)(shapes + 1), "shape of an event");
}

Test(events_refused, must_have_an_action)
{
    expect_refused_with(TTD_COLUMN_CLASSES, 0, 0, "action of an event");
}

Test(events_refused, must_have_a_known_form_of_times)
{
    expect_refused_with(TTD_COLUMN_TIME_FORMS, 0, 0xFF, "form of an event's times");
}

Test(events_refused, must_have_addresses_within_their_list)
{
    expect_refused_with(TTD_COLUMN_RELEASED, 0, 2, "place of an address");
}

/* Each damage is refused, or makes other valid events. */
static void expect_refused_or_valid(const struct event_chunk *chunk, const uint8_t *bytes,
                                    size_t size)
{
    size_t count;
    struct ttd_position position = {0, 0};
    enum ttd_status status = event_chunk_begin_decoding(chunk, bytes, size);
    while (status == TTD_OK &&
           (status = ttd_events_decoder_next(&fixture.decoder, &count)) == TTD_OK) {
        for (size_t i = 0; i < count; i++) {
            const struct ttd_event *event = &fixture.decoder.batch->events[i];
            cr_assert_leq(ttd_position_compare(position, ttd_event_position(event)), 0);
            cr_assert(!ttd_event_returned(event) ||
                      ttd_position_compare(event->time_start, event->time_end) <= 0);
            cr_assert_leq(event->parameter_count, TTD_PARAMETERS_MAX);
            cr_assert(event->action >= TTD_ACTION_ALLOC && event->action <= TTD_ACTION_DESTROY);
            cr_assert(event->address == 0 || event->result != 0);
            position = ttd_event_position(event);
        }
    }
    cr_assert(status == TTD_END || (status == TTD_ERROR_CORRUPT && fixture.decoder.error));
}

Test(events_refused, are_refused_or_valid_with_any_byte_changed)
{
    static struct event_chunk chunk;
    struct entropy entropy = entropy_of_seed(3);
    event_chunk_fill_at_random(&chunk, 3);
    chunk.count = chunk.count < 60 ? chunk.count : 60;
    event_chunk_encode(&chunk);
    for (size_t at = 0; at < fixture.payload.size; at++) {
        for (unsigned i = 0; i < 20; i++) {
            uint8_t kept = fixture.payload.data[at];
            fixture.payload.data[at] = (uint8_t)entropy_pick(&entropy, 256);
            expect_refused_or_valid(&chunk, fixture.payload.data, fixture.payload.size);
            fixture.payload.data[at] = kept;
        }
    }
}

Test(events_refused, say_where_the_decoder_has_no_memory)
{
    static struct event_chunk chunk;
    event_chunk_fill_at_random(&chunk, 5);
    event_chunk_encode(&chunk);
    for (uint64_t call = 0;; call++) {
        ttd_events_decoder_free(&fixture.decoder);
        ttd_events_decoder_init(&fixture.decoder, &fixture.allocator, 1);
        fixture.memory.counter = (struct chaos_counter){.fail_at = call};
        enum ttd_status status =
            event_chunk_decode(&chunk, fixture.payload.data, fixture.payload.size);
        if (fixture.memory.counter.calls <= call) {
            cr_assert_eq(status, TTD_END);
            cr_assert_gt(call, 3);
            return;
        }
        cr_assert_eq(status, TTD_ERROR_NO_MEMORY, "call %u", (unsigned)call);
    }
}
