/* SPDX-License-Identifier: MIT */
/* Everything that a writer takes comes back from a reader, kind by kind. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <ttdtrace/ttdtrace.h>

typedef struct random_source {
    uint64_t state;
} random_source;

static uint64_t draw(random_source *source)
{
    source->state ^= source->state << 13;
    source->state ^= source->state >> 7;
    source->state ^= source->state << 17;
    return source->state;
}

static uint64_t below(random_source *source, uint64_t limit)
{
    return draw(source) % limit;
}

/** A number of any magnitude. */
static uint64_t any(random_source *source)
{
    return draw(source) >> below(source, 64);
}

static const ttd_trace sample_trace = {.trace_id = 0x1122334455667788,
                                       .start_time = 1700000000000000000,
                                       .time_unit = 1000,
                                       .process_id = 42,
                                       .pointer_size = 8,
                                       .architecture = TTD_ARCH_X86_64};

static ttd_writer *open_writer(ttd_memory *memory, const ttd_writer_options *options)
{
    ttd_output output;
    ttd_writer *writer;
    cr_assert_eq(ttd_output_memory(memory, NULL, &output), TTD_OK);
    cr_assert_eq(ttd_writer_open(&output, &sample_trace, options, NULL, &writer, NULL), TTD_OK);
    return writer;
}

static void close_writer(ttd_writer *writer)
{
    ttd_end end = {.reason = TTD_END_EXITED, .code = 3, .wall_time = 99};
    ttd_error error;
    ttd_status status = ttd_writer_close(writer, &end, &error);
    cr_assert_eq(status, TTD_OK);
}

static ttd_reader *open_reader(const ttd_memory *memory)
{
    /* In a block of its exact size, so that reading past the end is caught. */
    ttd_input input;
    ttd_reader *reader;
    cr_assert_eq(ttd_input_memory(memory->data, memory->size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_reader_open(&input, NULL, NULL, &reader, NULL), TTD_OK);
    return reader;
}

/** The next batch, which must be of `kind`. */
static ttd_batch expect(ttd_reader *reader, ttd_kind kind)
{
    ttd_batch batch;
    ttd_error error = {.what = ""};
    ttd_status status = ttd_reader_next(reader, &batch, &error);
    cr_assert_eq(status, TTD_OK, "%s: %s", ttd_status_text(status), error.what);
    cr_assert_eq(batch.kind, kind, "%s instead of %s", ttd_kind_name(batch.kind),
                 ttd_kind_name(kind));
    return batch;
}

static void expect_end(ttd_reader *reader)
{
    ttd_batch batch = expect(reader, TTD_KIND_END);
    cr_assert_eq(batch.u.end->code, 3);
    cr_assert_eq(ttd_reader_next(reader, &batch, NULL), TTD_END);
    ttd_end end;
    cr_assert_eq(ttd_reader_end(reader, &end), TTD_OK);
    cr_assert_eq(end.wall_time, 99);
}

static bool same_position(ttd_position a, ttd_position b)
{
    return ttd_position_compare(a, b) == 0;
}

static void check_event(const ttd_event *got, const ttd_event *want)
{
    cr_assert_eq(got->number, want->number);
    cr_assert(same_position(got->time_start, want->time_start));
    cr_assert(same_position(got->time_end, want->time_end));
    cr_assert_eq(got->wall_time, want->wall_time);
    cr_assert_eq(got->address, want->address);
    cr_assert_eq(got->previous_address, want->previous_address);
    cr_assert_eq(got->base_address, want->base_address);
    cr_assert_eq(got->size, want->size);
    cr_assert_eq(got->flags, want->flags);
    cr_assert_eq(got->result, want->result);
    cr_assert_eq(got->reserve_size, want->reserve_size);
    cr_assert_eq(got->commit_size, want->commit_size);
    cr_assert_eq(got->make_read_only, want->make_read_only);
    cr_assert_eq(got->thread, want->thread);
    cr_assert_eq(got->heap, want->heap);
    cr_assert_eq(got->stack, want->stack);
    cr_assert_eq(got->action, want->action);
    cr_assert_eq(got->api, want->api);
    cr_assert_eq(got->parameter_count, want->parameter_count);
    cr_assert_eq(got->parameters == NULL, want->parameters == NULL);
    for (uint32_t i = 0; i < want->parameter_count; i++)
        cr_assert_eq(got->parameters[i], want->parameters[i]);
}

#define THREADS   5
#define STACKS    400
#define ADDRESSES 300

/** Where a made-up program is. */
typedef struct program {
    random_source random;
    ttd_position effect;
    ttd_position ends[THREADS + 1];
    uint64_t addresses[ADDRESSES];
    uint64_t clock;
    ttd_id thread;
    uint64_t number;
} program;

static ttd_position later(program *p, ttd_position from)
{
    switch (below(&p->random, 8)) {
    case 0:
        return (ttd_position){from.sequence + 1 + below(&p->random, 3), below(&p->random, 5)};
    case 1:
        return (ttd_position){from.sequence, from.steps + any(&p->random) % 100000};
    default:
        return (ttd_position){from.sequence, from.steps + 1};
    }
}

static void make_times(program *p, ttd_event *event)
{
    if (below(&p->random, 4) == 0)
        p->thread = 1 + (ttd_id)below(&p->random, THREADS);
    event->thread = p->thread;
    ttd_position start = later(p, p->ends[p->thread]);
    if (ttd_position_compare(start, p->effect) < 0)
        start = below(&p->random, 2) ? (ttd_position){p->effect.sequence + 1, 0} : p->effect;
    ttd_position end = later(p, start);
    event->time_start = start;
    event->time_end = end;
    p->ends[p->thread] = end;
}

static void make_action(program *p, ttd_event *event)
{
    random_source *r = &p->random;
    uint64_t *slot = &p->addresses[below(r, below(r, 2) ? 20 : ADDRESSES)];
    event->result = below(r, 30) ? 1 : any(r);
    if (below(r, 200) == 0) {
        event->action = (uint8_t)(TTD_ACTION_CREATE + below(r, 5));
        event->api = (uint8_t)(TTD_API_HEAP_CREATE + event->action - TTD_ACTION_CREATE);
        event->reserve_size = event->action == TTD_ACTION_CREATE ? any(r) : 0;
        event->commit_size = event->action == TTD_ACTION_CREATE ? any(r) : 0;
        event->make_read_only = event->action == TTD_ACTION_PROTECT ? any(r) : 0;
        return;
    }
    event->size = below(r, 50) ? 16 * below(r, 40) : any(r);
    if (*slot == 0) {
        event->action = TTD_ACTION_ALLOC;
        event->api = below(r, 3) ? TTD_API_MALLOC : TTD_API_CALLOC;
        *slot = below(r, 9) ? 0x7f0000000000 + 16 * below(r, 100000) : any(r);
        event->address = event->result ? *slot : 0;
    } else if (below(r, 5) == 0) {
        event->action = TTD_ACTION_REALLOC;
        event->api = below(r, 3) ? TTD_API_REALLOC : TTD_API_REALLOCARRAY;
        event->base_address = *slot;
        event->previous_address = *slot;
        *slot = below(r, 2) ? *slot : 0x550000000000 + 16 * below(r, 1000);
        event->address = event->result ? *slot : 0;
    } else {
        event->action = TTD_ACTION_FREE;
        event->api = below(r, 3) ? TTD_API_FREE : TTD_API_DELETE_SIZED;
        event->size = event->api == TTD_API_FREE ? 0 : event->size;
        event->base_address = *slot;
        *slot = 0;
    }
}

static void make_parameters(program *p, ttd_event *event, uint64_t *parameters)
{
    random_source *r = &p->random;
    event->parameters = parameters;
    switch (below(r, 4)) {
    case 0:
        event->parameters = NULL;
        break;
    case 1:
        event->parameter_count = (uint32_t)below(r, TTD_PARAMETERS_MAX + 1);
        for (uint32_t i = 0; i < event->parameter_count; i++)
            parameters[i] = any(r);
        break;
    default:
        event->parameter_count = 2;
        parameters[0] = event->api == TTD_API_CALLOC ? 1 + below(r, 4) : event->base_address;
        parameters[1] = event->api == TTD_API_CALLOC ? event->size / parameters[0] : event->size;
        break;
    }
}

static void make_event(program *p, ttd_event *event, uint64_t *parameters)
{
    random_source *r = &p->random;
    memset(event, 0, sizeof *event);
    event->number = p->number++;
    p->clock += below(r, 20) ? 0 : any(r) % 1000;
    event->wall_time = p->clock * sample_trace.time_unit;
    event->heap = (ttd_id)below(r, 3);
    event->stack = (ttd_id)below(r, below(r, 4) ? 8 : STACKS);
    event->flags = below(r, 20) ? 0 : any(r);
    make_times(p, event);
    make_action(p, event);
    make_parameters(p, event, parameters);
    if (below(r, 300) == 0) {
        event->time_end = ttd_position_invalid();
        event->result = 0;
        event->address = 0;
        p->ends[p->thread] = event->time_start;
    }
    p->effect = ttd_event_position(event);
}

/** Defines all that made-up events refer to. */
static void define(ttd_writer *writer)
{
    ttd_id id;
    for (int i = 0; i < THREADS; i++) {
        ttd_thread thread = {.action = TTD_THREAD_BEGIN, .os_id = 1000};
        cr_assert_eq(ttd_writer_thread(writer, &thread, &id), TTD_OK);
    }
    for (int i = 0; i < 2; i++) {
        ttd_heap heap = {.handle = 7};
        cr_assert_eq(ttd_writer_heap(writer, &heap, &id), TTD_OK);
    }
    for (ttd_id i = 0; i < STACKS; i++)
        cr_assert_eq(ttd_writer_stack(writer, i / 2, 0, 0x1000 + i % 7, &id), TTD_OK);
}

static void round_trip(uint64_t seed, size_t count, uint32_t per_chunk, ttd_codec codec, int level)
{
    ttd_event *events = calloc(count, sizeof *events);
    uint64_t(*parameters)[TTD_PARAMETERS_MAX] = calloc(count, sizeof *parameters);
    cr_assert(events && parameters);
    program p = {.random = {seed}, .thread = 1};
    ttd_writer_options options = ttd_writer_options_default();
    options.codec = codec;
    options.level = level;
    options.events_per_chunk = per_chunk;
    ttd_memory memory;
    ttd_writer *writer = open_writer(&memory, &options);
    define(writer);
    for (size_t i = 0; i < count; i++) {
        make_event(&p, &events[i], parameters[i]);
        ttd_status status = ttd_writer_event(writer, &events[i]);
        cr_assert_eq(status, TTD_OK, "event %zu: %s", i, ttd_writer_error(writer).what);
    }
    close_writer(writer);

    ttd_reader *reader = open_reader(&memory);
    expect(reader, TTD_KIND_TRACE);
    expect(reader, TTD_KIND_THREADS);
    expect(reader, TTD_KIND_HEAPS);
    for (size_t seen = 0; seen < STACKS;)
        seen += expect(reader, TTD_KIND_STACKS).count;
    for (size_t seen = 0; seen < count;) {
        ttd_batch batch = expect(reader, TTD_KIND_EVENTS);
        for (size_t i = 0; i < batch.count; i++)
            check_event(&batch.u.events[i], &events[seen++]);
    }
    expect_end(reader);
    ttd_reader_close(reader);
    ttd_memory_free(&memory);
    free(events);
    free(parameters);
}

Test(roundtrip, events_one)
{
    round_trip(1, 1, 65536, TTD_CODEC_LZ4, 0);
}

Test(roundtrip, events_many)
{
    round_trip(2, 200000, 65536, TTD_CODEC_LZ4, 0);
}

Test(roundtrip, events_small_chunks)
{
    round_trip(3, 20000, 7, TTD_CODEC_LZ4, 0);
}

Test(roundtrip, events_raw_and_hc)
{
    round_trip(4, 30000, 1000, TTD_CODEC_RAW, 0);
    round_trip(5, 30000, 4096, TTD_CODEC_LZ4, 9);
}

Test(roundtrip, definitions)
{
    ttd_memory memory;
    ttd_writer *writer = open_writer(&memory, NULL);
    ttd_id path, id;
    cr_assert_eq(ttd_writer_string(writer, "a\0b", 3, &path), TTD_OK);
    cr_assert_eq(ttd_writer_string(writer, "", 0, &id), TTD_OK);
    ttd_module load = {.action = TTD_MODULE_LOAD,
                       .position = {5, 6},
                       .path = path,
                       .bias = 0x555500000000,
                       .begin = 0x555500001000,
                       .end = 0x555500002000,
                       .build_id = {1, 2, 3},
                       .build_id_size = 3};
    ttd_id module;
    cr_assert_eq(ttd_writer_module(writer, &load, &module), TTD_OK);
    ttd_module unload = {.action = TTD_MODULE_UNLOAD, .id = module, .position = {7, 8}};
    cr_assert_eq(ttd_writer_module(writer, &unload, NULL), TTD_OK);
    ttd_symbol_frame frames[2] = {{path, TTD_NONE, 0}, {path, id, 17}};
    ttd_symbol symbol = {module, 0x123, frames, 2};
    cr_assert_eq(ttd_writer_symbol(writer, &symbol), TTD_OK);
    ttd_thread begin = {.action = TTD_THREAD_BEGIN, .position = {1, 0}, .os_id = 77, .name = path};
    cr_assert_eq(ttd_writer_thread(writer, &begin, &id), TTD_OK);
    close_writer(writer);

    ttd_reader *reader = open_reader(&memory);
    cr_assert_eq(ttd_reader_trace(reader)->process_id, 42);
    expect(reader, TTD_KIND_TRACE);
    ttd_batch batch = expect(reader, TTD_KIND_STRINGS);
    cr_assert_eq(batch.count, 2);
    cr_assert_eq(batch.u.strings[0].id, 1);
    cr_assert_eq(batch.u.strings[0].text.size, 3);
    cr_assert_eq(memcmp(batch.u.strings[0].text.data, "a\0b", 3), 0);
    batch = expect(reader, TTD_KIND_MODULES);
    cr_assert_eq(batch.count, 2);
    load.id = module;
    cr_assert_eq(batch.u.modules[0].bias, load.bias);
    cr_assert_eq(batch.u.modules[0].end, load.end);
    cr_assert_eq(memcmp(batch.u.modules[0].build_id, load.build_id, sizeof load.build_id), 0);
    cr_assert_eq(batch.u.modules[1].action, TTD_MODULE_UNLOAD);
    cr_assert(same_position(batch.u.modules[1].position, unload.position));
    batch = expect(reader, TTD_KIND_THREADS);
    cr_assert_eq(batch.u.threads[0].os_id, 77);
    batch = expect(reader, TTD_KIND_SYMBOLS);
    cr_assert_eq(batch.u.symbols[0].offset, 0x123);
    cr_assert_eq(batch.u.symbols[0].frame_count, 2);
    cr_assert_eq(batch.u.symbols[0].frames[1].line, 17);
    expect_end(reader);
    ttd_reader_close(reader);
    ttd_memory_free(&memory);
}

Test(roundtrip, records)
{
    ttd_memory memory;
    ttd_writer *writer = open_writer(&memory, NULL);
    ttd_loss loss = {TTD_LOSS_OVERFLOW, TTD_NONE, TTD_UNKNOWN, {1, 2}, {3, 4}};
    cr_assert_eq(ttd_writer_loss(writer, &loss), TTD_OK);
    ttd_user_event user = {.client = "0123456789abcde",
                           .position = {9, 9},
                           .wall_time = 5,
                           .flags = TTD_USER_EVENT_KEYFRAME,
                           .data = (const uint8_t *)"data",
                           .size = 4};
    cr_assert_eq(ttd_writer_user_event(writer, &user), TTD_OK);
    ttd_metadata metadata = {{"command", 7}, {"ls", 2}};
    cr_assert_eq(ttd_writer_metadata(writer, &metadata), TTD_OK);
    ttd_block blocks[2] = {
        {.address = 0x1010, .size = 5, .event = TTD_UNKNOWN, .allocated = {1, 1}, .api = 1},
        {.address = 0x1027, .size = UINT64_MAX, .event = 7, .allocated = {2, 0}, .api = 200}};
    ttd_live_blocks list = {TTD_BLOCKS_SNAPSHOT, 1, true, {9, 9}, blocks, 2};
    cr_assert_eq(ttd_writer_live_blocks(writer, &list), TTD_OK);
    uint8_t content[3 * 4096] = {1, 2, 3};
    ttd_pages pages = {.page_size = 4096, .count = 3, .data = content};
    uint64_t first;
    cr_assert_eq(ttd_writer_pages(writer, &pages, &first), TTD_OK);
    cr_assert_eq(first, TTD_PAGE_FIRST);
    ttd_memory_run runs[2] = {{0x10000, 3, TTD_MEMORY_READ, first},
                              {0xfffffffffffff000, 1, TTD_MEMORY_SHARED, TTD_PAGE_UNREADABLE}};
    ttd_memory_map map = {1, true, {9, 9}, 4096, runs, 2};
    cr_assert_eq(ttd_writer_memory_map(writer, &map), TTD_OK);
    close_writer(writer);

    ttd_reader *reader = open_reader(&memory);
    expect(reader, TTD_KIND_TRACE);
    ttd_batch batch = expect(reader, TTD_KIND_METADATA);
    cr_assert_eq(memcmp(batch.u.metadata[0].value.data, "ls", 2), 0);
    batch = expect(reader, TTD_KIND_USER_EVENTS);
    cr_assert_eq(memcmp(batch.u.user_events[0].client, user.client, 16), 0);
    cr_assert_eq(batch.u.user_events[0].size, 4);
    batch = expect(reader, TTD_KIND_LOSSES);
    cr_assert_not(batch.made_up);
    cr_assert_eq(batch.u.losses[0].count, TTD_UNKNOWN);
    cr_assert(same_position(batch.u.losses[0].first_good, loss.first_good));
    batch = expect(reader, TTD_KIND_LIVE_BLOCKS);
    cr_assert_eq(batch.u.live_blocks->count, 2);
    cr_assert(batch.u.live_blocks->last);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(batch.u.live_blocks->blocks[i].address, blocks[i].address);
        cr_assert_eq(batch.u.live_blocks->blocks[i].size, blocks[i].size);
        cr_assert_eq(batch.u.live_blocks->blocks[i].event, blocks[i].event);
        cr_assert_eq(batch.u.live_blocks->blocks[i].api, blocks[i].api);
    }
    batch = expect(reader, TTD_KIND_PAGES);
    cr_assert_eq(batch.u.pages->count, 3);
    cr_assert_eq(memcmp(batch.u.pages->data, content, sizeof content), 0);
    batch = expect(reader, TTD_KIND_MEMORY_MAP);
    cr_assert_eq(batch.u.memory_map->count, 2);
    cr_assert_eq(batch.u.memory_map->runs[1].address, runs[1].address);
    cr_assert_eq(batch.u.memory_map->runs[0].page, first);
    expect_end(reader);
    ttd_reader_close(reader);
    ttd_memory_free(&memory);
}
