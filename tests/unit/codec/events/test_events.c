/* SPDX-License-Identifier: MIT */
/* Chunks of events: round trips, and what is refused. */
#include <string.h>

#include <criterion/criterion.h>

#include "codec/events/events.h"
#include "support/chaos.h"
#include "support/entropy.h"

#define EVENTS_MAX   1000
#define FIRST_NUMBER 700
#define TIME_UNIT    10
#define THREADS      3
#define ADDRESSES    40

static struct chaos_memory memory;
static struct ttd_allocator allocator;
static struct ttd_events_encoder encoder;
static struct ttd_events_decoder decoder;
static struct ttd_buffer payload;

static void begin(void)
{
    chaos_memory_init(&memory, CHAOS_NEVER);
    allocator = chaos_allocator(&memory);
    ttd_events_encoder_init(&encoder, &allocator, TIME_UNIT);
    ttd_events_decoder_init(&decoder, &allocator, 1);
    ttd_buffer_init(&payload, &allocator);
}

static void finish(void)
{
    ttd_events_encoder_free(&encoder);
    ttd_events_decoder_free(&decoder);
    ttd_buffer_free(&payload);
    cr_assert_eq(memory.blocks, 0, "nothing is left allocated");
}

TestSuite(events, .init = begin, .fini = finish, .timeout = 60);

/* Events of a chunk, and their parameters. */
struct chunk {
    struct ttd_event events[EVENTS_MAX];
    uint64_t parameters[EVENTS_MAX][TTD_PARAMETERS_MAX];
    size_t count;
};

/* ---- Events ---- */

static struct ttd_event allocation(uint64_t steps, uint64_t address, uint64_t size)
{
    return (struct ttd_event){.time_start = {1, steps},
                              .time_end = {1, steps + 1},
                              .thread = 1,
                              .stack = 4,
                              .address = address,
                              .size = size,
                              .result = 1,
                              .heap = 1,
                              .action = TTD_ACTION_ALLOC,
                              .api = TTD_API_MALLOC};
}

static struct ttd_event release(uint64_t steps, uint64_t address)
{
    return (struct ttd_event){.time_start = {1, steps},
                              .time_end = {1, steps + 1},
                              .thread = 1,
                              .stack = 5,
                              .base_address = address,
                              .result = 1,
                              .heap = 1,
                              .action = TTD_ACTION_FREE,
                              .api = TTD_API_FREE};
}

/* Adds an event with the parameters of its API, as a recorder does. */
static void add(struct chunk *chunk, struct ttd_event event)
{
    uint64_t *parameters = chunk->parameters[chunk->count];
    event.parameter_count = (uint32_t)ttd_event_parameters(&event, parameters);
    event.parameters = parameters;
    chunk->events[chunk->count++] = event;
}

/* An allocation, its release, and another allocation at the same address. */
static void fill_simply(struct chunk *chunk)
{
    chunk->count = 0;
    add(chunk, allocation(0, 0x1000, 24));
    add(chunk, release(2, 0x1000));
    add(chunk, allocation(4, 0x1000, UINT64_MAX));
}

static void choose_times(struct entropy *entropy, struct ttd_event *event,
                         struct ttd_position *position)
{
    bool acquires = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_CREATE;
    if (!entropy_pick(entropy, 4))
        *position = (struct ttd_position){position->sequence + 1 + entropy_pick(entropy, 3), 0};
    position->steps += entropy_pick(entropy, 3);
    event->time_start = *position;
    event->time_end = ttd_position_invalid();
    if (!entropy_pick(entropy, 10))
        return;
    position->steps += acquires;
    event->time_end = (struct ttd_position){position->sequence, position->steps + !acquires};
}

static void choose_properties(struct entropy *entropy, struct ttd_event *event)
{
    bool returned = ttd_event_returned(event);
    bool allocates = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
    bool releases = event->action == TTD_ACTION_FREE || event->action == TTD_ACTION_REALLOC;
    event->result = returned && entropy_pick(entropy, 8) ? 1 : 0;
    if (returned && !entropy_pick(entropy, 16))
        event->result = entropy_value(entropy);
    if (allocates && event->result)
        event->address = 0x1000 + 16 * entropy_below(entropy, ADDRESSES);
    if (releases)
        event->base_address = 0x1000 + 16 * entropy_below(entropy, ADDRESSES);
    if (event->action == TTD_ACTION_REALLOC)
        event->previous_address = event->base_address;
    if (allocates || releases)
        event->size =
            entropy_pick(entropy, 4) ? 8 * entropy_below(entropy, 4) : entropy_value(entropy);
    if (event->action == TTD_ACTION_CREATE) {
        event->reserve_size = entropy_value(entropy);
        event->commit_size = entropy_value(entropy);
    }
    if (event->action == TTD_ACTION_PROTECT)
        event->make_read_only = entropy_value(entropy);
    event->flags = entropy_pick(entropy, 8) ? 0 : entropy_value(entropy);
}

static void choose_parameters(struct entropy *entropy, struct ttd_event *event,
                              uint64_t parameters[TTD_PARAMETERS_MAX])
{
    if (entropy_pick(entropy, 3))
        return;
    event->parameter_count = (uint32_t)ttd_event_parameters(event, parameters);
    if (!entropy_pick(entropy, 4)) {
        event->parameter_count = 1 + entropy_pick(entropy, TTD_PARAMETERS_MAX);
        for (uint32_t i = 0; i < event->parameter_count; i++)
            parameters[i] = entropy_value(entropy);
    }
    event->parameters = event->parameter_count ? parameters : NULL;
}

/* Valid events of all kinds, from few call sites, at few addresses. */
static void fill_at_random(struct chunk *chunk, uint64_t seed)
{
    struct entropy entropy = entropy_of_seed(seed);
    struct ttd_position position = {1, 0};
    uint64_t clock = 0;
    chunk->count = 1 + entropy_pick(&entropy, EVENTS_MAX);
    for (size_t i = 0; i < chunk->count; i++) {
        struct ttd_event event = {.thread = 1 + entropy_pick(&entropy, THREADS)};
        event.action = (uint8_t)(1 + entropy_pick(&entropy, TTD_ACTION_DESTROY));
        event.api = (uint8_t)entropy_pick(&entropy, TTD_API_COUNT + 2);
        event.stack = entropy_pick(&entropy, 6);
        event.heap = entropy_pick(&entropy, 3);
        choose_times(&entropy, &event, &position);
        choose_properties(&entropy, &event);
        choose_parameters(&entropy, &event, chunk->parameters[i]);
        clock += entropy_pick(&entropy, 8) ? 0 : entropy_below(&entropy, 1000);
        event.wall_time = clock * TIME_UNIT;
        chunk->events[i] = event;
    }
}

/* ---- Encoding and decoding ---- */

static void encode(const struct chunk *chunk)
{
    ttd_events_encoder_clear(&encoder);
    ttd_buffer_clear(&payload);
    for (size_t i = 0; i < chunk->count; i++)
        cr_assert(ttd_events_encoder_add(&encoder, &chunk->events[i]));
    ttd_events_encoder_finish(&encoder, &payload);
    cr_assert_not(payload.failed);
}

static enum ttd_status begin_decoding(const struct chunk *chunk, const uint8_t *bytes, size_t size)
{
    struct ttd_header header = {
        .first_record = FIRST_NUMBER,
        .record_count = (uint32_t)chunk->count,
        .first_position = ttd_event_position(&chunk->events[0]),
        .last_position = ttd_event_position(&chunk->events[chunk->count - 1]),
    };
    return ttd_events_decoder_begin(&decoder, &header, ttd_cursor_of(bytes, size), TIME_UNIT);
}

/* Decodes all batches of those bytes; TTD_END if there was nothing wrong with them. */
static enum ttd_status decode_all(const struct chunk *chunk, const uint8_t *bytes, size_t size)
{
    size_t count;
    enum ttd_status status = begin_decoding(chunk, bytes, size);
    while (status == TTD_OK)
        status = ttd_events_decoder_next(&decoder, &count);
    return status;
}

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

static void expect_round_trip(const struct chunk *chunk)
{
    size_t next = 0;
    size_t count = 0;
    enum ttd_status status;
    encode(chunk);
    cr_assert_eq(begin_decoding(chunk, payload.data, payload.size), TTD_OK, "%s", decoder.error);
    while ((status = ttd_events_decoder_next(&decoder, &count)) == TTD_OK) {
        cr_assert_leq(next + count, chunk->count);
        for (size_t i = 0; i < count; i++, next++) {
            cr_assert_eq(decoder.batch->events[i].number, FIRST_NUMBER + next);
            expect_event(&decoder.batch->events[i], &chunk->events[next]);
        }
    }
    cr_assert_eq(status, TTD_END, "%s", decoder.error);
    cr_assert_eq(next, chunk->count);
}

Test(events, come_back_as_they_were)
{
    static struct chunk chunk;
    fill_simply(&chunk);
    expect_round_trip(&chunk);
}

Test(events, of_every_kind_come_back_as_they_were)
{
    static struct chunk chunk;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        fill_at_random(&chunk, seed);
        expect_round_trip(&chunk);
    }
}

Test(events, at_the_limits_of_positions_come_back_as_they_were)
{
    static struct chunk chunk;
    struct ttd_event event = allocation(0, UINT64_MAX, 0);
    chunk.count = 0;
    event.thread = UINT32_MAX;
    event.time_start = (struct ttd_position){0, 0};
    event.time_end = (struct ttd_position){TTD_SEQUENCE_MAX, UINT64_MAX - 1};
    add(&chunk, event);
    event.time_end.steps = UINT64_MAX;
    add(&chunk, event);
    expect_round_trip(&chunk);
}

Test(events, that_are_as_predicted_take_less_than_three_bytes)
{
    static struct chunk chunk;
    chunk.count = 0;
    for (size_t i = 0; i < EVENTS_MAX / 2; i++) {
        add(&chunk, allocation(4 * i, 0x1000, 24));
        add(&chunk, release(4 * i + 2, 0x1000));
    }
    expect_round_trip(&chunk);
    cr_assert_lt(payload.size, 3 * chunk.count);
}

/* The quick way must not be seen in the bytes. */
/* Encodes the quick way whatever can be; returns how many events that were. */
static size_t encode_quickly(const struct chunk *chunk)
{
    size_t quick_count = 0;
    ttd_events_encoder_clear(&encoder);
    ttd_buffer_clear(&payload);
    for (size_t i = 0; i < chunk->count; i++) {
        if (ttd_events_encoder_add_usual(&encoder, &chunk->events[i]))
            quick_count++;
        else
            cr_assert(ttd_events_encoder_add(&encoder, &chunk->events[i]));
    }
    ttd_events_encoder_finish(&encoder, &payload);
    return quick_count;
}

Test(events, are_encoded_the_same_when_they_are_added_quickly)
{
    static struct chunk chunk;
    struct ttd_buffer expected;
    chunk.count = 0;
    for (size_t i = 0; i < EVENTS_MAX / 2; i++) {
        add(&chunk, allocation(4 * i, 0x1000 + i % 7 * 16, 24 + i % 3));
        add(&chunk, release(4 * i + 2, 0x1000 + i % 7 * 16));
    }
    ttd_buffer_init(&expected, &allocator);
    encode(&chunk);
    ttd_buffer_put(&expected, payload.data, payload.size);

    size_t quick_count = encode_quickly(&chunk);

    cr_assert_gt(quick_count, chunk.count / 2);
    cr_assert_eq(payload.size, expected.size);
    cr_assert_eq(memcmp(payload.data, expected.data, expected.size), 0);
    ttd_buffer_free(&expected);
}

/* ---- Ordinals ---- */

Test(events, repeat_an_address_by_its_ordinal)
{
    static struct chunk chunk;
    size_t count;
    fill_simply(&chunk);
    encode(&chunk);

    cr_assert_eq(begin_decoding(&chunk, payload.data, payload.size), TTD_OK);
    cr_assert_eq(ttd_events_decoder_next(&decoder, &count), TTD_OK);

    cr_assert_eq(count, 3);
    cr_assert_eq(decoder.batch->address_count, 1);
    cr_assert_eq(decoder.batch->addresses[0], 0x1000);
    cr_assert_eq(decoder.batch->events[0].address_ordinal, 0);
    cr_assert_eq(decoder.batch->events[1].base_ordinal, 0);
    cr_assert_eq(decoder.batch->events[2].address_ordinal, 0);
}

/* ---- What is refused ---- */

Test(events, are_refused_where_they_are_truncated)
{
    static struct chunk chunk;
    fill_simply(&chunk);
    encode(&chunk);
    for (size_t size = 0; size < payload.size; size++) {
        cr_assert_eq(decode_all(&chunk, payload.data, size), TTD_ERROR_CORRUPT);
        cr_assert_not_null(decoder.error);
    }
}

Test(events, are_refused_with_a_byte_behind_them)
{
    static struct chunk chunk;
    fill_simply(&chunk);
    encode(&chunk);
    ttd_buffer_put8(&payload, 0);
    cr_assert_eq(decode_all(&chunk, payload.data, payload.size), TTD_ERROR_CORRUPT);
}

Test(events, must_be_as_many_as_the_header_says)
{
    static struct chunk chunk;
    fill_simply(&chunk);
    encode(&chunk);
    chunk.count = 2;
    cr_assert_eq(decode_all(&chunk, payload.data, payload.size), TTD_ERROR_CORRUPT);
    chunk.count = 4;
    chunk.events[3] = chunk.events[2];
    cr_assert_eq(decode_all(&chunk, payload.data, payload.size), TTD_ERROR_CORRUPT);
}

Test(events, must_begin_and_end_where_the_header_says)
{
    static struct chunk chunk;
    fill_simply(&chunk);
    encode(&chunk);
    chunk.events[2].time_end.steps++;
    cr_assert_eq(decode_all(&chunk, payload.data, payload.size), TTD_ERROR_CORRUPT);
    fill_simply(&chunk);
    chunk.events[0].time_end.steps--;
    cr_assert_eq(decode_all(&chunk, payload.data, payload.size), TTD_ERROR_CORRUPT);
}

/* The bytes of a column of the payload. */
static uint8_t *column_bytes(enum ttd_column column)
{
    uint8_t *bytes = payload.data + TTD_EVENTS_COLUMNS;
    for (int i = 0; i < (int)column; i++)
        bytes += ttd_get32(payload.data + TTD_EVENTS_LENGTHS + 4 * i);
    return bytes;
}

/* Encodes three simple events, and changes one byte of a column. */
static void expect_refused_with(enum ttd_column column, size_t at, uint8_t byte, const char *error)
{
    static struct chunk chunk;
    fill_simply(&chunk);
    encode(&chunk);
    column_bytes(column)[at] = byte;
    cr_assert_eq(decode_all(&chunk, payload.data, payload.size), TTD_ERROR_CORRUPT);
    cr_assert_str_eq(decoder.error, error);
}

Test(events, must_have_a_shape_of_the_table)
{
    static struct chunk chunk;
    fill_simply(&chunk);
    encode(&chunk);
    uint32_t shapes = ttd_get32(payload.data + TTD_EVENTS_SHAPE_COUNT);
    cr_assert_eq(shapes, 2, "an allocation and a release");
    expect_refused_with(TTD_COLUMN_SHAPES_FIRST, 2, (uint8_t)(shapes + 1), "shape of an event");
}

Test(events, must_have_an_action)
{
    expect_refused_with(TTD_COLUMN_CLASSES, 0, 0, "action of an event");
}

Test(events, must_have_a_known_form_of_times)
{
    expect_refused_with(TTD_COLUMN_TIME_FORMS, 0, 0xFF, "form of an event's times");
}

Test(events, must_have_addresses_within_their_list)
{
    expect_refused_with(TTD_COLUMN_RELEASED, 0, 2, "place of an address");
}

/* Each damage is refused, or makes other valid events. */
static void expect_refused_or_valid(const struct chunk *chunk, const uint8_t *bytes, size_t size)
{
    size_t count;
    struct ttd_position position = {0, 0};
    enum ttd_status status = begin_decoding(chunk, bytes, size);
    while (status == TTD_OK && (status = ttd_events_decoder_next(&decoder, &count)) == TTD_OK) {
        for (size_t i = 0; i < count; i++) {
            const struct ttd_event *event = &decoder.batch->events[i];
            cr_assert_leq(ttd_position_compare(position, ttd_event_position(event)), 0);
            cr_assert(!ttd_event_returned(event) ||
                      ttd_position_compare(event->time_start, event->time_end) <= 0);
            cr_assert_leq(event->parameter_count, TTD_PARAMETERS_MAX);
            cr_assert(event->action >= TTD_ACTION_ALLOC && event->action <= TTD_ACTION_DESTROY);
            cr_assert(event->address == 0 || event->result != 0);
            position = ttd_event_position(event);
        }
    }
    cr_assert(status == TTD_END || (status == TTD_ERROR_CORRUPT && decoder.error));
}

Test(events, are_refused_or_valid_with_any_byte_changed)
{
    static struct chunk chunk;
    struct entropy entropy = entropy_of_seed(3);
    fill_at_random(&chunk, 3);
    chunk.count = chunk.count < 60 ? chunk.count : 60;
    encode(&chunk);
    for (size_t at = 0; at < payload.size; at++) {
        for (unsigned i = 0; i < 20; i++) {
            uint8_t kept = payload.data[at];
            payload.data[at] = (uint8_t)entropy_pick(&entropy, 256);
            expect_refused_or_valid(&chunk, payload.data, payload.size);
            payload.data[at] = kept;
        }
    }
}

/* ---- Memory ---- */

Test(events, say_where_the_decoder_has_no_memory)
{
    static struct chunk chunk;
    fill_at_random(&chunk, 5);
    encode(&chunk);
    for (uint64_t call = 0;; call++) {
        ttd_events_decoder_free(&decoder);
        ttd_events_decoder_init(&decoder, &allocator, 1);
        memory.counter = (struct chaos_counter){.fail_at = call};
        enum ttd_status status = decode_all(&chunk, payload.data, payload.size);
        if (memory.counter.calls <= call) {
            cr_assert_eq(status, TTD_END);
            cr_assert_gt(call, 3);
            return;
        }
        cr_assert_eq(status, TTD_ERROR_NO_MEMORY, "call %u", (unsigned)call);
    }
}
