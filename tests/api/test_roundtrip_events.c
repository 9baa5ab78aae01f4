/* SPDX-License-Identifier: MIT */
/* Events and blocks at their limits, in every kind and in large numbers, come back as they were. */
#include "api/fixture.h"

#include <ttdtrace/advanced.h>

#include "support/address_book.h"

/* Writes events of one action with all that it can have; all outcomes; all kinds of parameters. */
static void check_action(enum ttd_action action)
{
    static const uint64_t values[] = {0, 1, 0x10, 0x7fffffffffff, INT64_MAX, UINT64_MAX};
    struct model m;
    struct ttd_memory_output memory;
    struct ttd_trace trace = model_begin(&m, entropy_of_seed(1), MODEL_ANYTHING);
    struct ttd_writer *writer = fixture_writer(&memory, &trace, NULL);
    bool allocates = action == TTD_ACTION_ALLOC || action == TTD_ACTION_REALLOC;
    bool releases = action == TTD_ACTION_FREE || action == TTD_ACTION_REALLOC;
    for (unsigned api = 0; api < 256; api++) {
        for (size_t v = 0; v < 6; v++) {
            uint64_t value = values[v];
            uint64_t all[TTD_PARAMETERS_MAX] = {value, 1, 2, 3, 4, 5, 6, UINT64_MAX};
            struct ttd_event event = {.action = (uint8_t)action,
                                      .api = (uint8_t)api,
                                      .time_start = {api, 2 * v},
                                      .time_end = {api, 2 * v + 1},
                                      .result = v == 4 ? 0 : value,
                                      .flags = value,
                                      .parameters = v % 2 ? all : NULL,
                                      .parameter_count = v % 2 ? (uint32_t)api % 9 : 0};
            if (v == 0 && api % 2)
                event.time_end = ttd_position_invalid();
            event.address = allocates && event.result ? value : 0;
            event.base_address = releases ? value : 0;
            event.previous_address = action == TTD_ACTION_REALLOC ? value : 0;
            event.size = allocates || releases ? value : 0;
            event.reserve_size = action == TTD_ACTION_CREATE ? value : 0;
            event.commit_size = action == TTD_ACTION_CREATE ? value / 2 : 0;
            event.make_read_only = action == TTD_ACTION_PROTECT ? value : 0;
            if (event.parameter_count == 0)
                event.parameters = NULL;
            enum ttd_status status = model_write_event(&m, writer, &event);
            cr_assert_eq(status, TTD_OK, "api %u: %s", api, ttd_writer_error(writer).what);
        }
    }
    fixture_close(writer);
    fixture_check_model(&m, &memory);
    ttd_memory_output_free(&memory);
    model_free(&m);
}

Test(roundtrip_events, every_action)
{
    for (enum ttd_action action = TTD_ACTION_ALLOC; action <= TTD_ACTION_DESTROY; action++)
        check_action(action);
}

/* A chunk of events of which each has a stack that is far from the one before. Only a derived trace
 * can have such stacks without those between. */
Test(roundtrip_events, stacks_far_apart)
{
    enum { EVENTS = 256 };
    static const ttd_id stacks[] = {UINT32_MAX, 1u << 28};
    struct ttd_memory_output memory;
    struct ttd_trace trace = fixture_trace();
    trace.flags = TTD_TRACE_DERIVED;
    struct ttd_writer *writer = fixture_writer(&memory, &trace, NULL);
    for (uint64_t i = 0; i < EVENTS; i++) {
        struct ttd_event event = {.action = TTD_ACTION_ALLOC,
                                  .api = TTD_API_MALLOC,
                                  .stack = stacks[i % 2] - (ttd_id)i,
                                  .result = 1,
                                  .address = 0x1000 + i * 16,
                                  .size = i,
                                  .time_start = {1, 2 * i},
                                  .time_end = {1, 2 * i + 1}};
        cr_assert_eq(ttd_writer_event(writer, &event), TTD_OK, "%s", ttd_writer_error(writer).what);
    }
    fixture_close(writer);
    struct ttd_reader *reader = fixture_reader(&memory, false);
    struct ttd_batch batch;
    struct ttd_error error;
    uint64_t count = 0;
    while (ttd_reader_next(reader, &batch, &error) == TTD_OK)
        for (size_t i = 0; batch.kind == TTD_KIND_EVENTS && i < batch.count; i++, count++)
            cr_assert_eq(batch.u.events[i].stack, stacks[count % 2] - (ttd_id)count);
    cr_assert_eq(count, EVENTS);
    ttd_reader_close(reader);
    ttd_memory_output_free(&memory);
}

/* No parameters, though the API's template has some; and nothing but such events in a chunk. */
Test(roundtrip_events, no_parameters)
{
    struct model m;
    struct ttd_memory_output memory;
    uint64_t none;
    struct ttd_trace trace = model_begin(&m, entropy_of_seed(1), MODEL_ANYTHING);
    struct ttd_writer *writer = fixture_writer(&memory, &trace, NULL);
    for (uint64_t i = 0; i < 3; i++) {
        struct ttd_event event = {.action = TTD_ACTION_ALLOC,
                                  .api = TTD_API_MALLOC,
                                  .parameters = &none,
                                  .time_start = {1, 2 * i},
                                  .time_end = {1, 2 * i + 1}};
        cr_assert_eq(model_write_event(&m, writer, &event), TTD_OK);
    }
    fixture_close(writer);
    fixture_check_model(&m, &memory);
    ttd_memory_output_free(&memory);
    model_free(&m);
}

/* The parameters that an API's template gives are those of the reference. */
Test(roundtrip_events, parameters_by_template)
{
    struct ttd_event event = {.action = TTD_ACTION_CREATE,
                              .api = TTD_API_HEAP_CREATE,
                              .flags = 4,
                              .reserve_size = 0x1000,
                              .commit_size = 0x100};
    uint64_t parameters[TTD_PARAMETERS_MAX];
    cr_assert_eq(ttd_event_parameters(&event, parameters), 3);
    cr_assert_eq(parameters[0], 4);
    cr_assert_eq(parameters[1], 0x100);
    cr_assert_eq(parameters[2], 0x1000);
    event = (struct ttd_event){.action = TTD_ACTION_REALLOC,
                               .api = TTD_API_REALLOC,
                               .size = 5,
                               .base_address = 6,
                               .previous_address = 6};
    cr_assert_eq(ttd_event_parameters(&event, parameters), 2);
    cr_assert_eq(parameters[0], 6);
    cr_assert_eq(parameters[1], 5);
    event.api = 255;
    cr_assert_eq(ttd_event_parameters(&event, parameters), 0);
}

/* Positions and clocks at both ends of their ranges, and addresses that wrap around. */
Test(roundtrip_events, extremes)
{
    static const struct ttd_position positions[] = {{0, 0},
                                                    {0, UINT64_MAX - 1},
                                                    {0, UINT64_MAX},
                                                    {1, 0},
                                                    {INT64_MAX, UINT64_MAX},
                                                    {TTD_SEQUENCE_MAX, 0},
                                                    {TTD_SEQUENCE_MAX, UINT64_MAX}};
    static const uint64_t addresses[] = {UINT64_MAX, 1, UINT64_C(1) << 63, 15, UINT64_MAX - 15, 2};
    for (uint32_t per_chunk = 1; per_chunk < 9; per_chunk++) {
        struct ttd_writer_options options = fixture_options(TTD_CODEC_RAW, 0, per_chunk);
        struct model m;
        struct ttd_memory_output memory;
        struct ttd_trace trace = model_begin(&m, entropy_of_seed(1), MODEL_ANYTHING);
        trace.time_unit = 1;
        struct ttd_writer *writer = fixture_writer(&memory, &trace, &options);
        text_table_free(&m.expected);
        struct ttd_batch first = {.kind = TTD_KIND_TRACE, .count = 1, .u.trace = &trace};
        text_of_batch(text_table_at(&m.expected, TTD_KIND_TRACE), &first);
        for (size_t i = 0; i < 7 * 6; i++) {
            struct ttd_event event = {.action =
                                          (uint8_t)(i % 2 ? TTD_ACTION_FREE : TTD_ACTION_ALLOC),
                                      .api = TTD_API_MALLOC,
                                      .time_start = positions[i / 6],
                                      .time_end = positions[i / 6],
                                      .wall_time = i % 3 ? UINT64_MAX - 1 : 0,
                                      .result = 1};
            if (event.action == TTD_ACTION_ALLOC)
                event.address = addresses[i % 6];
            else
                event.base_address = addresses[i % 6];
            cr_assert_eq(model_write_event(&m, writer, &event), TTD_OK, "event %zu: %s", i,
                         ttd_writer_error(writer).what);
        }
        fixture_close(writer);
        fixture_check_model(&m, &memory);
        ttd_memory_output_free(&memory);
        model_free(&m);
    }
}

/* Many call sites: symbols of one, two and three bytes. */
Test(roundtrip_events, many_shapes)
{
    struct model m;
    struct ttd_memory_output memory;
    struct ttd_trace trace = model_begin(&m, entropy_of_seed(5), MODEL_ANYTHING);
    struct ttd_writer *writer = fixture_writer(&memory, &trace, NULL);
    for (uint32_t i = 0; i < 20000; i++) {
        ttd_id id;
        cr_assert_eq(ttd_writer_stack(writer, i / 2, TTD_NONE, i, &id), TTD_OK);
    }
    m.stacks = 20000;
    for (uint64_t i = 0; i < 60000; i++) {
        struct ttd_event event = {.action = TTD_ACTION_LOCK,
                                  .api = TTD_API_HEAP_LOCK,
                                  .time_start = {i, 0},
                                  .time_end = {i, 1},
                                  .stack = (ttd_id)(i * i % 20001)};
        cr_assert_eq(model_write_event(&m, writer, &event), TTD_OK);
    }
    fixture_close(writer);
    struct text_table found = {0};
    struct ttd_reader *reader = fixture_reader(&memory, false);
    cr_assert_eq(ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_EVENTS)), TTD_OK);
    cr_assert_eq(model_read(reader, &found), TTD_END);
    ttd_reader_close(reader);
    struct text *expected = text_table_at(&m.expected, TTD_KIND_EVENTS);
    struct text *events = text_table_at(&found, TTD_KIND_EVENTS);
    cr_assert_eq(expected->size, events->size);
    cr_assert(memcmp(expected->data, events->data, events->size) == 0);
    fixture_check_intact(memory.data, memory.size);
    text_table_free(&found);
    ttd_memory_output_free(&memory);
    model_free(&m);
}

enum { KEPT_BATCHES = 5, OPENED_BATCHES = 8 };

/* A batch, and what it was when it came. */
struct kept {
    struct ttd_batch batch;
    struct text text;
};

static void check_kept(const struct kept *batches, size_t count)
{
    for (size_t i = count < KEPT_BATCHES ? 0 : count - KEPT_BATCHES; i < count; i++) {
        struct text now = {0};
        text_of_batch(&now, &batches[i % KEPT_BATCHES].batch);
        cr_assert_str_eq(now.data, batches[i % KEPT_BATCHES].text.data);
        text_free(&now);
    }
}

/* A trace in memory that is read in batches. */
struct batched {
    struct model model;
    struct ttd_memory_output memory;
    struct ttd_input input;
    struct ttd_reader *reader;
};

static void batched_open(struct batched *batched, uint64_t seed, uint32_t event_batches)
{
    struct ttd_writer_options written = fixture_options(TTD_CODEC_LZ4, 0, 150);
    struct ttd_reader_options options = ttd_reader_options_default();
    options.event_batches = event_batches;
    fixture_write_model(&batched->model, entropy_of_seed(seed), MODEL_ANYTHING, &written, 4000,
                        &batched->memory);
    cr_assert_eq(
        ttd_input_memory(batched->memory.data, batched->memory.size, NULL, &batched->input),
        TTD_OK);
    cr_assert_eq(ttd_reader_open(&batched->input, &options, NULL, &batched->reader, NULL), TTD_OK);
}

static void batched_close(struct batched *batched)
{
    ttd_reader_close(batched->reader);
    ttd_memory_output_free(&batched->memory);
    model_free(&batched->model);
}

/* Events stay as they are for as many batches as was asked for. */
static void check_batches(uint32_t opened)
{
    struct batched batched;
    batched_open(&batched, 11, opened);
    struct ttd_reader *reader = batched.reader;
    cr_assert_eq(ttd_reader_event_batches(reader), opened);
    cr_assert_eq(ttd_reader_keep_batches(reader, KEPT_BATCHES), TTD_OK);
    struct kept batches[KEPT_BATCHES] = {0};
    struct address_book book = {.items = NULL};
    size_t count = 0;
    struct ttd_batch batch;
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
        if (batch.kind == TTD_KIND_EVENTS) {
            struct kept *next = &batches[count++ % KEPT_BATCHES];
            next->batch = batch;
            next->text.size = 0;
            text_of_batch(&next->text, &batch);
            const char *wrong = address_book_add(&book, &batch);
            cr_assert_null(wrong, "%s", wrong);
        }
        check_kept(batches, count);
    }
    address_book_free(&book);
    cr_assert_gt(count, 4 * KEPT_BATCHES);
    for (size_t i = 0; i < KEPT_BATCHES; i++)
        text_free(&batches[i].text);
    batched_close(&batched);
}

Test(roundtrip_events, kept_batches)
{
    check_batches(KEPT_BATCHES);
    check_batches(OPENED_BATCHES);
}

/* Reads batches of events while so many are kept. Returns the number of places that they took. */
static size_t count_places(struct ttd_reader *reader, uint32_t kept, size_t batches)
{
    const struct ttd_event *places[OPENED_BATCHES] = {NULL};
    size_t count = 0;
    struct ttd_batch batch;
    cr_assert_eq(ttd_reader_keep_batches(reader, kept), TTD_OK);
    while (batches) {
        size_t i = 0;
        cr_assert_eq(ttd_reader_next(reader, &batch, NULL), TTD_OK);
        if (batch.kind != TTD_KIND_EVENTS)
            continue;
        while (i < count && places[i] != batch.u.events)
            i++;
        if (i == count)
            places[count++] = batch.u.events;
        batches--;
    }
    return count;
}

/* Fewer batches take less memory, so that it stays in the cache; more can be asked for again. */
Test(roundtrip_events, batches_take_turns_in_the_memory_of_those_that_are_kept)
{
    struct batched batched;
    batched_open(&batched, 12, OPENED_BATCHES);
    struct ttd_reader *reader = batched.reader;
    cr_assert_eq(count_places(reader, 1, 3), 1);
    cr_assert_eq(count_places(reader, 3, 3), 3);
    cr_assert_leq(count_places(reader, 1, 3), 2);
    cr_assert_eq(count_places(reader, OPENED_BATCHES, OPENED_BATCHES), OPENED_BATCHES);
    batched_close(&batched);
}

/* Which of 3000 blocks is allocated or freed next: at random, last in first out, or in a ring. */
static uint64_t choose_block(uint64_t i)
{
    switch (i / 8000 % 3) {
    case 0:
        return i * i * 7919 / 13 % 3000;
    case 1:
        return i / 2000 % 2 ? i % 2000 : 1999 - i % 2000;
    default:
        return i % 1500;
    }
}

/* More blocks in one chunk than can be named, in orders that leave few and many gaps. */
Test(roundtrip_events, many_blocks)
{
    struct model m;
    struct ttd_memory_output memory;
    bool live[3000] = {false};
    struct ttd_trace trace = model_begin(&m, entropy_of_seed(5), MODEL_ANYTHING);
    struct ttd_writer *writer = fixture_writer(&memory, &trace, NULL);
    for (uint64_t i = 0; i < 60000; i++) {
        uint64_t block = choose_block(i), address = 0x10000 + block * 16;
        bool frees = live[block];
        struct ttd_event event = {.action = frees ? TTD_ACTION_FREE : TTD_ACTION_ALLOC,
                                  .api = frees ? TTD_API_FREE : TTD_API_MALLOC,
                                  .time_start = {1, 2 * i},
                                  .time_end = {1, 2 * i + 1},
                                  .address = frees ? 0 : address,
                                  .base_address = frees ? address : 0,
                                  .result = 1};
        live[block] = !frees;
        cr_assert_eq(model_write_event(&m, writer, &event), TTD_OK);
    }
    fixture_close(writer);
    fixture_check_model(&m, &memory);
    ttd_memory_output_free(&memory);
    model_free(&m);
}
