/* SPDX-License-Identifier: MIT */
/* The writer refuses wrong arguments. A refusal changes nothing: the file is as if the call had not
 * been. */
#include "api/fixture.h"

#include <string.h>

#include <ttdtrace/advanced.h>

static struct ttd_memory_output memory;
static struct ttd_writer *writer;

static void begin(void)
{
    struct ttd_trace trace = fixture_trace();
    ttd_id id;
    writer = fixture_writer(&memory, &trace, NULL);
    struct ttd_thread thread = {.action = TTD_THREAD_BEGIN};
    cr_assert_eq(ttd_writer_string(writer, "a", 1, &id), TTD_OK);
    cr_assert_eq(ttd_writer_thread(writer, &thread, &id), TTD_OK);
    cr_assert_eq(ttd_writer_heap(writer, &(struct ttd_heap){.name = 1}, &id), TTD_OK);
    cr_assert_eq(ttd_writer_stack(writer, TTD_NONE, TTD_NONE, 1, &id), TTD_OK);
}

static void finish(void)
{
    fixture_close(writer);
    fixture_check_intact(memory.data, memory.size);
    ttd_memory_output_free(&memory);
}

TestSuite(arguments, .init = begin, .fini = finish);

static struct ttd_event good_event(void)
{
    return (struct ttd_event){.action = TTD_ACTION_REALLOC,
                              .api = TTD_API_REALLOC,
                              .time_start = {5, 1},
                              .time_end = {5, 2},
                              .result = 1,
                              .address = 16,
                              .base_address = 32,
                              .previous_address = 32,
                              .size = 8,
                              .thread = 1,
                              .heap = 1,
                              .stack = 1};
}

/** The writer refuses the event, says what is wrong, and takes a good one after it. */
static void refuse(struct ttd_event event, const char *what)
{
    cr_assert_eq(ttd_writer_event(writer, &event), TTD_ERROR_ARGUMENT, "%s", what);
    cr_assert_str_eq(ttd_writer_error(writer).what, what);
    cr_assert_eq(ttd_writer_error(writer).status, TTD_ERROR_ARGUMENT);
}

#define REFUSE(what, change)                                                                       \
    do {                                                                                           \
        struct ttd_event event = good_event();                                                     \
        change;                                                                                    \
        refuse(event, what);                                                                       \
    } while (0)

Test(arguments, events)
{
    struct ttd_event good = good_event();
    cr_assert_eq(ttd_writer_event(writer, &good), TTD_OK);
    REFUSE("action", event.action = 0);
    REFUSE("action", event.action = 9);
    REFUSE("thread", event.thread = 2);
    REFUSE("heap", event.heap = 2);
    REFUSE("stack", event.stack = 2);
    REFUSE("address", event.result = 0);
    REFUSE("address", event.action = TTD_ACTION_FREE);
    REFUSE("base_address", event.action = TTD_ACTION_ALLOC);
    REFUSE("previous_address", event.previous_address = 1);
    REFUSE("reserve_size or commit_size", event.reserve_size = 1);
    REFUSE("reserve_size or commit_size", event.commit_size = 1);
    REFUSE("make_read_only", event.make_read_only = 1);
    REFUSE("parameter_count", event.parameter_count = 1);
    REFUSE("time_start", event.time_start = ttd_position_invalid());
    REFUSE("time_end", event.time_end.sequence = 4);
    REFUSE("order of events", event.time_start.sequence = 4);
    uint64_t parameters[TTD_PARAMETERS_MAX + 1] = {0};
    REFUSE("parameter_count", (event.parameters = parameters, event.parameter_count = 9));
    REFUSE("result of a call that never returned",
           (event.time_end = ttd_position_invalid(), event.address = 0));
    struct ttd_event size = {.action = TTD_ACTION_LOCK, .size = 1, .time_start = {5, 1}};
    refuse(size, "size");
    cr_assert_eq(ttd_writer_event(writer, &good), TTD_OK);
}

Test(arguments, wall_time_is_in_units)
{
    struct ttd_memory_output other;
    struct ttd_trace trace = fixture_trace();
    trace.time_unit = 10;
    struct ttd_writer *in_units = fixture_writer(&other, &trace, NULL);
    struct ttd_event event = {.action = TTD_ACTION_LOCK, .time_end = {0, 1}, .wall_time = 15};
    cr_assert_eq(ttd_writer_event(in_units, &event), TTD_ERROR_ARGUMENT);
    event.wall_time = 20;
    cr_assert_eq(ttd_writer_event(in_units, &event), TTD_OK);
    fixture_close(in_units);
    ttd_memory_output_free(&other);
}

Test(arguments, definitions)
{
    ttd_id id = 77;
    static char large[65537];
    cr_assert_eq(ttd_writer_string(writer, NULL, 1, &id), TTD_ERROR_ARGUMENT);
    cr_assert_eq(ttd_writer_string(writer, "a", 1, NULL), TTD_ERROR_ARGUMENT);
    cr_assert_eq(ttd_writer_string(writer, large, sizeof large, &id), TTD_ERROR_LIMIT);
    cr_assert_eq(ttd_writer_stack(writer, 2, TTD_NONE, 0, &id), TTD_ERROR_ARGUMENT);
    cr_assert_eq(ttd_writer_stack(writer, 1, 1, 0, &id), TTD_ERROR_ARGUMENT);
    cr_assert_eq(ttd_writer_heap(writer, &(struct ttd_heap){.name = 2}, &id), TTD_ERROR_ARGUMENT);
    struct ttd_heap_parent parent = {.heap = 2, .parent = 1};
    cr_assert_eq(ttd_writer_heap_parent(writer, &parent), TTD_ERROR_ARGUMENT);
    cr_assert_eq(ttd_writer_heap(writer, &(struct ttd_heap){.name = 1}, &id), TTD_OK);
    cr_assert_eq(ttd_writer_heap_parent(writer, &(struct ttd_heap_parent){.heap = 2, .parent = 2}),
                 TTD_ERROR_ARGUMENT);
    cr_assert_eq(ttd_writer_heap_parent(writer, &parent), TTD_OK);
    cr_assert_eq(ttd_writer_heap_parent(writer, &parent), TTD_ERROR_ARGUMENT, "told twice");
    cr_assert_eq(ttd_writer_heap(writer, &(struct ttd_heap){.name = 1}, &id), TTD_OK);
    struct ttd_event event = {
        .action = TTD_ACTION_LOCK, .time_end = {0, 1}, .heap = id, .result = 1};
    cr_assert_eq(ttd_writer_event(writer, &event), TTD_OK);
    cr_assert_eq(ttd_writer_heap_parent(writer, &(struct ttd_heap_parent){.heap = id, .parent = 1}),
                 TTD_ERROR_ARGUMENT, "told after an event");
    id = 77;
    struct ttd_module module = {.action = TTD_MODULE_UNLOAD, .id = 1};
    cr_assert_eq(ttd_writer_module(writer, &module, &id), TTD_ERROR_ARGUMENT);
    module = (struct ttd_module){.action = TTD_MODULE_LOAD, .build_id_size = TTD_BUILD_ID_MAX + 1};
    cr_assert_eq(ttd_writer_module(writer, &module, &id), TTD_ERROR_ARGUMENT);
    module = (struct ttd_module){.action = TTD_MODULE_LOAD, .path = 2};
    cr_assert_eq(ttd_writer_module(writer, &module, &id), TTD_ERROR_ARGUMENT);
    struct ttd_thread thread = {.action = TTD_THREAD_END, .id = 2};
    cr_assert_eq(ttd_writer_thread(writer, &thread, &id), TTD_ERROR_ARGUMENT);
    thread = (struct ttd_thread){.action = (enum ttd_thread_action)3, .id = 1};
    cr_assert_eq(ttd_writer_thread(writer, &thread, &id), TTD_ERROR_ARGUMENT);
    struct ttd_symbol symbol = {.module = 1};
    cr_assert_eq(ttd_writer_symbol(writer, &symbol), TTD_ERROR_ARGUMENT);
    symbol = (struct ttd_symbol){.frame_count = 1};
    cr_assert_eq(ttd_writer_symbol(writer, &symbol), TTD_ERROR_ARGUMENT);
    cr_assert_eq(id, 77, "an id was set by a refusal");
    cr_assert_eq(ttd_writer_string(writer, large, sizeof large - 1, &id), TTD_OK);
    cr_assert_eq(id, 2);
}

Test(arguments, records)
{
    uint64_t first = 77;
    uint8_t page[512] = {0};
    struct ttd_block blocks[2] = {{.address = 8}, {.address = 8}};
    struct ttd_live_blocks list = {
        .list = TTD_BLOCKS_SNAPSHOT, .list_id = 1, .last = true, .blocks = blocks, .count = 2};
    cr_assert_eq(ttd_writer_live_blocks(writer, &list), TTD_ERROR_ARGUMENT);
    blocks[1] = (struct ttd_block){.address = 9, .stack = 2};
    cr_assert_eq(ttd_writer_live_blocks(writer, &list), TTD_ERROR_ARGUMENT);
    blocks[1].stack = 1;
    cr_assert_eq(ttd_writer_live_blocks(writer, &list), TTD_OK);
    struct ttd_pages pages = {.first_page = 0, .page_size = 500, .count = 1, .data = page};
    cr_assert_eq(ttd_writer_pages(writer, &pages, &first), TTD_ERROR_ARGUMENT);
    pages.page_size = 512;
    cr_assert_eq(ttd_writer_pages(writer, &pages, &first), TTD_OK);
    cr_assert_eq(first, TTD_PAGE_FIRST);
    struct ttd_memory_run runs[2] = {
        {.address = 0, .page_count = 1, .protection = 0, .page = TTD_PAGE_FIRST + 1},
        {.address = 0, .page_count = 1, .protection = 0, .page = TTD_PAGE_ZERO}};
    struct ttd_memory_map map = {.snapshot = 1,
                                 .last = true,
                                 .position = {0, 0},
                                 .page_size = 512,
                                 .runs = runs,
                                 .count = 1};
    cr_assert_eq(ttd_writer_memory_map(writer, &map), TTD_ERROR_ARGUMENT, "page not defined");
    runs[0].page = TTD_PAGE_FIRST;
    runs[0].page_count = 2;
    cr_assert_eq(ttd_writer_memory_map(writer, &map), TTD_ERROR_ARGUMENT, "run of pages too long");
    runs[0].page_count = 1;
    map.count = 2;
    cr_assert_eq(ttd_writer_memory_map(writer, &map), TTD_ERROR_ARGUMENT, "runs overlap");
    runs[1] = (struct ttd_memory_run){
        .address = UINT64_MAX - 511, .page_count = 2, .protection = 0, .page = TTD_PAGE_ZERO};
    cr_assert_eq(ttd_writer_memory_map(writer, &map), TTD_ERROR_ARGUMENT, "run wraps around");
    runs[1].page_count = 1;
    runs[1].protection = 16;
    cr_assert_eq(ttd_writer_memory_map(writer, &map), TTD_ERROR_ARGUMENT, "protection");
    runs[1].protection = 15;
    cr_assert_eq(ttd_writer_memory_map(writer, &map), TTD_OK);
    struct ttd_user_event user = {.position = ttd_position_invalid()};
    cr_assert_eq(ttd_writer_user_event(writer, &user), TTD_ERROR_ARGUMENT);
    cr_assert_eq(ttd_writer_loss(writer, &(struct ttd_loss){.thread = 2}), TTD_ERROR_ARGUMENT);
}

/** An output whose close is counted. */
static int closed;

static int never_write(void *context, const void *data, size_t size)
{
    (void)context;
    (void)data;
    (void)size;
    cr_assert_fail("written to");
    return 0;
}

static int count_close(void *context)
{
    (void)context;
    closed++;
    return 0;
}

static void refuse_open(const struct ttd_trace *trace, const struct ttd_writer_options *options)
{
    struct ttd_output output = {.context = NULL, .write = never_write, .close = count_close};
    struct ttd_writer *none = NULL;
    struct ttd_error error = {.status = TTD_OK};
    closed = 0;
    cr_assert_eq(ttd_writer_open(&output, trace, options, NULL, &none, &error), TTD_ERROR_ARGUMENT);
    cr_assert_eq(error.status, TTD_ERROR_ARGUMENT);
    cr_assert_null(none);
    cr_assert_eq(closed, 1);
}

Test(arguments, open)
{
    struct ttd_trace trace = fixture_trace();
    struct ttd_writer_options options = ttd_writer_options_default();
    refuse_open(NULL, NULL);
    trace.trace_id = 0;
    refuse_open(&trace, NULL);
    trace = fixture_trace();
    trace.time_unit = 0;
    refuse_open(&trace, NULL);
    trace.flags = TTD_TRACE_RECOVERED;
    refuse_open(&trace, NULL);
    trace = fixture_trace();
    trace.pointer_size = 5;
    refuse_open(&trace, NULL);
    trace = fixture_trace();
    trace.flags = 0x10;
    refuse_open(&trace, NULL);
    trace = fixture_trace();
    options.size--;
    refuse_open(&trace, &options);
    options = fixture_options(TTD_CODEC_ZSTD, 0, 1);
    refuse_open(&trace, &options);
    options = fixture_options(TTD_CODEC_LZ4, 13, 1);
    refuse_open(&trace, &options);
    options = fixture_options(TTD_CODEC_LZ4, 0, 0);
    refuse_open(&trace, &options);
    options = fixture_options(TTD_CODEC_LZ4, 0, 65537);
    refuse_open(&trace, &options);
}

Test(arguments, event_batches)
{
    static const uint32_t wrong[] = {0, TTD_EVENT_BATCHES_MAX + 1, UINT32_MAX};
    struct ttd_trace trace = fixture_trace();
    struct ttd_memory_output made;
    fixture_close(fixture_writer(&made, &trace, NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct ttd_reader_options options = ttd_reader_options_default();
        struct ttd_input input;
        struct ttd_reader *reader;
        options.event_batches = wrong[i];
        cr_assert_eq(ttd_input_memory(made.data, made.size, NULL, &input), TTD_OK);
        cr_assert_eq(ttd_reader_open(&input, &options, NULL, &reader, NULL), TTD_ERROR_ARGUMENT);
    }
    ttd_memory_output_free(&made);
}

Test(arguments, kept_batches)
{
    struct ttd_trace trace = fixture_trace();
    struct ttd_memory_output made;
    struct ttd_input input;
    struct ttd_reader *reader;
    struct ttd_reader_options options = ttd_reader_options_default();
    options.event_batches = 3;
    fixture_close(fixture_writer(&made, &trace, NULL));
    cr_assert_eq(ttd_input_memory(made.data, made.size, NULL, &input), TTD_OK);
    cr_assert_eq(ttd_reader_open(&input, &options, NULL, &reader, NULL), TTD_OK);
    cr_assert_eq(ttd_reader_keep_batches(reader, 0), TTD_ERROR_ARGUMENT);
    cr_assert_eq(ttd_reader_keep_batches(reader, 4), TTD_ERROR_ARGUMENT);
    cr_assert_eq(ttd_reader_keep_batches(reader, 1), TTD_OK);
    cr_assert_eq(ttd_reader_keep_batches(reader, 3), TTD_OK);
    cr_assert_eq(ttd_reader_event_batches(reader), 3);
    ttd_reader_close(reader);
    ttd_memory_output_free(&made);
}

Test(arguments, nothing_to_close)
{
    cr_assert_eq(ttd_writer_close(NULL, NULL, NULL), TTD_OK);
    ttd_reader_close(NULL);
    ttd_memory_output_free(NULL);
}
