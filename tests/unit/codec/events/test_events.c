/* SPDX-License-Identifier: MIT */
/* Chunks of events come back as they were written. */
#include <string.h>

#include <criterion/criterion.h>

#include "support/fixtures/event_chunk.h"

TestSuite(events, .init = event_fixture_begin, .fini = event_fixture_finish, .timeout = 60);

static void expect_event(const struct ttd_event *event, const struct ttd_event *expected)
{
    cr_assert_eq(ttd_position_compare(event->time_start, expected->time_start), 0);
    cr_assert_eq(ttd_position_compare(event->time_end, expected->time_end), 0);
    cr_assert_eq(event->wall_time, expected->wall_time);
    cr_assert_eq(event->thread, expected->thread);
    cr_assert_eq(event->stack, expected->stack);
    cr_assert_eq(event->address, expected->address);
    cr_assert_eq(event->previous_address, expected->previous_address);
    cr_assert_eq(event->base_address, expected->base_address);
    cr_assert_eq(event->size, expected->size);
    cr_assert_eq(event->flags, expected->flags);
    cr_assert_eq(event->result, expected->result);
    cr_assert_eq(event->reserve_size, expected->reserve_size);
    cr_assert_eq(event->commit_size, expected->commit_size);
    cr_assert_eq(event->make_read_only, expected->make_read_only);
    cr_assert_eq(event->heap, expected->heap);
    cr_assert_eq(event->action, expected->action);
    cr_assert_eq(event->api, expected->api);
    cr_assert_eq(event->parameter_count, expected->parameter_count);
    for (uint32_t i = 0; i < expected->parameter_count; i++)
        cr_assert_eq(event->parameters[i], expected->parameters[i]);
}

static void expect_round_trip(const struct event_chunk *chunk)
{
    size_t next = 0;
    size_t count = 0;
    enum ttd_status status;
    event_chunk_encode(chunk);
    cr_assert_eq(event_chunk_begin_decoding(chunk, fixture.payload.data, fixture.payload.size),
                 TTD_OK, "%s", fixture.decoder.error);
    while ((status = ttd_events_decoder_next(&fixture.decoder, &count)) == TTD_OK) {
        cr_assert_leq(next + count, chunk->count);
        for (size_t i = 0; i < count; i++, next++) {
            cr_assert_eq(fixture.decoder.batch->events[i].number, EVENT_NUMBER + next);
            expect_event(&fixture.decoder.batch->events[i], &chunk->events[next]);
        }
    }
    cr_assert_eq(status, TTD_END, "%s", fixture.decoder.error);
    cr_assert_eq(next, chunk->count);
}

Test(events, come_back_as_they_were)
{
    static struct event_chunk chunk;
    event_chunk_fill_simply(&chunk);
    expect_round_trip(&chunk);
}

Test(events, of_every_kind_come_back_as_they_were)
{
    static struct event_chunk chunk;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        event_chunk_fill_at_random(&chunk, seed);
        expect_round_trip(&chunk);
    }
}

Test(events, at_the_limits_of_positions_come_back_as_they_were)
{
    static struct event_chunk chunk;
    struct ttd_event event = event_allocation(0, UINT64_MAX, 0);
    chunk.count = 0;
    event.thread = UINT32_MAX;
    event.time_start = (struct ttd_position){0, 0};
    event.time_end = (struct ttd_position){TTD_SEQUENCE_MAX, UINT64_MAX - 1};
    event_chunk_add(&chunk, event);
    event.time_end.steps = UINT64_MAX;
    event_chunk_add(&chunk, event);
    expect_round_trip(&chunk);
}

Test(events, that_are_as_predicted_take_less_than_three_bytes)
{
    static struct event_chunk chunk;
    chunk.count = 0;
    for (size_t i = 0; i < EVENT_CHUNK_MAX / 2; i++) {
        event_chunk_add(&chunk, event_allocation(4 * i, 0x1000, 24));
        event_chunk_add(&chunk, event_release(4 * i + 2, 0x1000));
    }
    expect_round_trip(&chunk);
    cr_assert_lt(fixture.payload.size, 3 * chunk.count);
}

/* Encodes the quick way whatever can be; returns how many events that were. */
static size_t encode_quickly(const struct event_chunk *chunk)
{
    size_t quick_count = 0;
    ttd_events_encoder_clear(&fixture.encoder);
    ttd_buffer_clear(&fixture.payload);
    for (size_t i = 0; i < chunk->count; i++) {
        if (ttd_events_encoder_add_usual(&fixture.encoder, &chunk->events[i]))
            quick_count++;
        else
            cr_assert(ttd_events_encoder_add(&fixture.encoder, &chunk->events[i]));
    }
    ttd_events_encoder_finish(&fixture.encoder, &fixture.payload);
    return quick_count;
}

Test(events, are_encoded_the_same_when_they_are_added_quickly)
{
    static struct event_chunk chunk;
    struct ttd_buffer expected;
    chunk.count = 0;
    for (size_t i = 0; i < EVENT_CHUNK_MAX / 2; i++) {
        event_chunk_add(&chunk, event_allocation(4 * i, 0x1000 + i % 7 * 16, 24 + i % 3));
        event_chunk_add(&chunk, event_release(4 * i + 2, 0x1000 + i % 7 * 16));
    }
    ttd_buffer_init(&expected, &fixture.allocator);
    event_chunk_encode(&chunk);
    ttd_buffer_put(&expected, fixture.payload.data, fixture.payload.size);

    size_t quick_count = encode_quickly(&chunk);

    cr_assert_gt(quick_count, chunk.count / 2);
    cr_assert_eq(fixture.payload.size, expected.size);
    cr_assert_eq(memcmp(fixture.payload.data, expected.data, expected.size), 0);
    ttd_buffer_free(&expected);
}

Test(events, repeat_an_address_by_its_ordinal)
{
    static struct event_chunk chunk;
    size_t count;
    event_chunk_fill_simply(&chunk);
    event_chunk_encode(&chunk);

    cr_assert_eq(event_chunk_begin_decoding(&chunk, fixture.payload.data, fixture.payload.size),
                 TTD_OK);
    cr_assert_eq(ttd_events_decoder_next(&fixture.decoder, &count), TTD_OK);

    cr_assert_eq(count, 3);
    cr_assert_eq(fixture.decoder.batch->address_count, 1);
    cr_assert_eq(fixture.decoder.batch->addresses[0], 0x1000);
    cr_assert_eq(fixture.decoder.batch->events[0].address_ordinal, 0);
    cr_assert_eq(fixture.decoder.batch->events[1].base_ordinal, 0);
    cr_assert_eq(fixture.decoder.batch->events[2].address_ordinal, 0);
}
