/* SPDX-License-Identifier: MIT */
#include "vectors/vectors.h"

#include <string.h>

#include "support/chunk_edit.h"
#include "support/records/model.h"

static void write_empty(struct ttd_memory_output *memory)
{
    vector_close(vector_writer(memory, NULL));
}

static void write_unclosed(struct ttd_memory_output *memory)
{
    struct ttd_writer *writer = vector_writer(memory, NULL);
    vector_string(writer, "what was written before the recorder died");
    vector_check(ttd_writer_close(writer, NULL, NULL));
}

static struct ttd_event event_of(enum ttd_action action, enum ttd_api api, uint64_t step)
{
    return (struct ttd_event){.action = (uint8_t)action,
                              .api = (uint8_t)api,
                              .time_start = {0x1A, step},
                              .time_end = {0x1A, step + 1},
                              .wall_time = step * 10,
                              .result = 1,
                              .thread = 1,
                              .heap = 1,
                              .stack = 2};
}

/** One event of each action, with each property that it has. */
static void write_actions(struct ttd_writer *writer)
{
    struct ttd_event create = event_of(TTD_ACTION_CREATE, TTD_API_HEAP_CREATE, 1);
    create.flags = 4;
    create.reserve_size = 0x100000;
    create.commit_size = 0x1000;
    create.result = 0x2000000;
    vector_event(writer, create);
    struct ttd_event alloc = event_of(TTD_ACTION_ALLOC, TTD_API_CALLOC, 3);
    alloc.address = 0x2000040;
    alloc.size = 96;
    uint64_t parameters[] = {8, 12};
    alloc.parameters = parameters;
    alloc.parameter_count = 2;
    vector_event(writer, alloc);
    struct ttd_event protect = event_of(TTD_ACTION_PROTECT, TTD_API_HEAP_PROTECT, 5);
    protect.make_read_only = 1;
    vector_event(writer, protect);
    vector_event(writer, event_of(TTD_ACTION_LOCK, TTD_API_HEAP_LOCK, 7));
    struct ttd_event again = event_of(TTD_ACTION_REALLOC, TTD_API_REALLOC, 9);
    again.base_address = again.previous_address = alloc.address;
    again.address = 0x2000100;
    again.size = 200;
    vector_event(writer, again);
    vector_event(writer, event_of(TTD_ACTION_UNLOCK, TTD_API_HEAP_UNLOCK, 11));
    struct ttd_event release = event_of(TTD_ACTION_FREE, TTD_API_FREE_SIZED, 13);
    release.base_address = again.address;
    release.size = 200;
    vector_event(writer, release);
    struct ttd_event destroy = event_of(TTD_ACTION_DESTROY, TTD_API_HEAP_DESTROY, 15);
    destroy.time_end = ttd_position_invalid();
    destroy.result = 0;
    vector_event(writer, destroy);
}

static void write_definitions(struct ttd_writer *writer)
{
    ttd_id id;
    ttd_id path = vector_string(writer, "/usr/bin/example");
    ttd_id name = vector_string(writer, "main");
    vector_string(writer, "");
    struct ttd_module module = {.action = TTD_MODULE_LOAD,
                                .position = {1, 2},
                                .path = path,
                                .bias = 0x555555554000,
                                .begin = 0x555555554000,
                                .end = 0x555555558000,
                                .build_id = {0xDE, 0xAD, 0xBE, 0xEF},
                                .build_id_size = 4};
    vector_check(ttd_writer_module(writer, &module, &id));
    struct ttd_module unload = {.action = TTD_MODULE_UNLOAD, .id = id, .position = {0x1A, 16}};
    vector_check(ttd_writer_module(writer, &unload, NULL));
    struct ttd_thread thread = {
        .action = TTD_THREAD_BEGIN, .position = {1, 0}, .os_id = 77, .name = name};
    vector_check(ttd_writer_thread(writer, &thread, &id));
    struct ttd_thread end = {
        .action = TTD_THREAD_END, .id = id, .position = {0x1A, 17}, .name = name};
    vector_check(ttd_writer_thread(writer, &end, NULL));
    vector_check(ttd_writer_heap(
        writer, &(struct ttd_heap){.id = 0, .handle = 0x2000000, .name = name}, &id));
    ttd_id outer;
    vector_check(ttd_writer_stack(writer, TTD_NONE, 1, 0x1180, &outer));
    vector_check(ttd_writer_stack(writer, outer, 1, 0x1136, &id));
    struct ttd_symbol_frame frame = {.function = name, .file = path, .line = 12};
    vector_check(ttd_writer_symbol(
        writer,
        &(struct ttd_symbol){.module = 1, .offset = 0x1136, .frames = &frame, .frame_count = 1}));
}

static void write_records(struct ttd_writer *writer)
{
    struct ttd_user_event user = {.client = {9, 9, [6] = 0x40, [8] = 0x80},
                                  .position = {0x1A, 4},
                                  .wall_time = 40,
                                  .thread = 1};
    user.flags = TTD_USER_EVENT_KEYFRAME;
    user.data = (const uint8_t *)"mark";
    user.size = 4;
    vector_check(ttd_writer_user_event(writer, &user));
    struct ttd_loss loss = {.reason = TTD_LOSS_OVERFLOW,
                            .thread = 1,
                            .count = 12,
                            .last_good = {0x1A, 13},
                            .first_good = {0x1A, 15}};
    vector_check(ttd_writer_loss(writer, &loss));
    struct ttd_metadata metadata = {{"command", 7}, {"example -x", 10}};
    vector_check(ttd_writer_metadata(writer, &metadata));
    struct ttd_block block = {.address = 0x2000040,
                              .size = 96,
                              .event = 1,
                              .allocated = {0x1A, 4},
                              .thread = 1,
                              .heap = 1,
                              .stack = 2,
                              .api = TTD_API_CALLOC};
    struct ttd_live_blocks blocks = {.list = TTD_BLOCKS_SNAPSHOT,
                                     .list_id = 1,
                                     .last = true,
                                     .position = {0x1A, 8},
                                     .blocks = &block,
                                     .count = 1};
    vector_check(ttd_writer_live_blocks(writer, &blocks));
    uint8_t page[512] = {1, 2, 3};
    uint64_t first;
    vector_check(ttd_writer_pages(
        writer,
        &(struct ttd_pages){.first_page = 0, .page_size = sizeof page, .count = 1, .data = page},
        &first));
    struct ttd_memory_run runs[] = {
        {0x2000000, 1, TTD_MEMORY_READ | TTD_MEMORY_WRITE, TTD_PAGE_FIRST},
        {0x2000200, 7, TTD_MEMORY_READ, TTD_PAGE_ZERO}};
    struct ttd_memory_map map = {.snapshot = 1,
                                 .last = true,
                                 .position = {0x1A, 16},
                                 .page_size = sizeof page,
                                 .runs = runs,
                                 .count = 2};
    vector_check(ttd_writer_memory_map(writer, &map));
}

static void write_kinds(struct ttd_memory_output *memory, enum ttd_codec codec)
{
    struct ttd_writer_options options = ttd_writer_options_default();
    options.codec = codec;
    struct ttd_writer *writer = vector_writer(memory, &options);
    write_definitions(writer);
    write_actions(writer);
    write_records(writer);
    vector_close(writer);
}

static void write_kinds_raw(struct ttd_memory_output *memory)
{
    write_kinds(memory, TTD_CODEC_RAW);
}

static void write_kinds_lz4(struct ttd_memory_output *memory)
{
    write_kinds(memory, TTD_CODEC_LZ4);
}

static void write_model(struct ttd_memory_output *memory, enum model_style style, uint64_t seed,
                        int steps, uint32_t events_per_chunk)
{
    struct model m;
    struct ttd_trace trace = model_begin(&m, entropy_of_seed(seed), style);
    struct ttd_writer_options options = ttd_writer_options_default();
    options.events_per_chunk = events_per_chunk;
    struct ttd_output output;
    struct ttd_writer *writer = NULL;
    vector_check(ttd_output_memory(memory, NULL, &output));
    vector_check(ttd_writer_open(&output, &trace, &options, NULL, &writer, NULL));
    for (int i = 0; i < steps; i++)
        vector_check(model_step(&m, writer));
    vector_close(writer);
    model_free(&m);
}

static void write_program(struct ttd_memory_output *memory)
{
    write_model(memory, MODEL_REALISTIC, 1, 600, 256);
}

static void write_extremes(struct ttd_memory_output *memory)
{
    write_model(memory, MODEL_ANYTHING, 2, 150, 64);
}

/** Events of good-chunks, three in a chunk. */
#define CHUNKS_EVENTS 66

static void write_chunks(struct ttd_memory_output *memory)
{
    write_model(memory, MODEL_REALISTIC, 3, 120, 3);
}

/** A reason of a loss that nobody knows yet, and lists without blocks and runs. */
static void write_odd_records(struct ttd_memory_output *memory)
{
    struct ttd_writer *writer = vector_writer(memory, NULL);
    struct ttd_loss loss = {.reason = (enum ttd_loss_reason)77,
                            .thread = TTD_NONE,
                            .count = 3,
                            .last_good = {1, 0},
                            .first_good = {1, 4}};
    vector_check(ttd_writer_loss(writer, &loss));
    struct ttd_live_blocks blocks = {.list = TTD_BLOCKS_SNAPSHOT,
                                     .list_id = 1,
                                     .last = true,
                                     .position = {1, 8},
                                     .blocks = NULL,
                                     .count = 0};
    vector_check(ttd_writer_live_blocks(writer, &blocks));
    struct ttd_memory_map map = {.snapshot = 1,
                                 .last = true,
                                 .position = {1, 9},
                                 .page_size = 4096,
                                 .runs = NULL,
                                 .count = 0};
    vector_check(ttd_writer_memory_map(writer, &map));
    vector_close(writer);
}

/** Values that a later minor version may give a name to: all are kept. */
static void write_later_values(struct ttd_memory_output *memory)
{
    struct ttd_trace trace = {.trace_id = 7, .time_unit = 1, .architecture = 99, .pointer_size = 8};
    struct ttd_output output;
    struct ttd_writer *writer = NULL;
    vector_check(ttd_output_memory(memory, NULL, &output));
    vector_check(ttd_writer_open(&output, &trace, NULL, NULL, &writer, NULL));
    vector_event(writer, (struct ttd_event){.action = TTD_ACTION_LOCK,
                                            .api = 200,
                                            .time_start = {1, 0},
                                            .time_end = {1, 1},
                                            .result = 1});
    struct ttd_loss loss = {.reason = (enum ttd_loss_reason)77,
                            .thread = TTD_NONE,
                            .count = 3,
                            .last_good = {1, 0},
                            .first_good = {1, 4}};
    vector_check(ttd_writer_loss(writer, &loss));
    struct ttd_end end = {.reason = (enum ttd_end_reason)77, .code = UINT32_MAX, .wall_time = 5};
    vector_check(ttd_writer_close(writer, &end, NULL));
}

/** Names that come twice: for a frame, and for a thread when it ends. The later ones count. */
static void write_names(struct ttd_memory_output *memory)
{
    struct ttd_writer *writer = vector_writer(memory, NULL);
    ttd_id id;
    ttd_id worse = vector_string(writer, "early guess");
    ttd_id better = vector_string(writer, "main");
    struct ttd_thread thread = {
        .action = TTD_THREAD_BEGIN, .position = {1, 0}, .os_id = 7, .name = worse};
    vector_check(ttd_writer_thread(writer, &thread, &id));
    struct ttd_thread end = {
        .action = TTD_THREAD_END, .id = id, .position = {1, 9}, .name = better};
    vector_check(ttd_writer_thread(writer, &end, NULL));
    struct ttd_module module = {
        .action = TTD_MODULE_LOAD, .position = {1, 0}, .path = worse, .begin = 1, .end = 4096};
    vector_check(ttd_writer_module(writer, &module, &id));
    vector_check(ttd_writer_stack(writer, TTD_NONE, id, 0x136, &id));
    struct ttd_symbol_frame first = {.function = worse, .file = TTD_NONE, .line = 0};
    struct ttd_symbol_frame second = {.function = better, .file = TTD_NONE, .line = 12};
    vector_check(ttd_writer_symbol(
        writer,
        &(struct ttd_symbol){.module = 1, .offset = 0x136, .frames = &first, .frame_count = 1}));
    vector_check(ttd_writer_symbol(
        writer,
        &(struct ttd_symbol){.module = 1, .offset = 0x136, .frames = &second, .frame_count = 1}));
    vector_close(writer);
}

/** The file that recover makes of the base file if the first chunk is lost. */
static void lose_first(struct vector_file *file)
{
    struct ttd_input input;
    struct ttd_output output;
    struct ttd_memory_output memory;
    struct ttd_verdict verdict;
    file->data[TTD_HEADER_NUMBER] ^= 1;
    vector_check(ttd_input_memory(file->data, file->size, NULL, &input));
    vector_check(ttd_output_memory(&memory, NULL, &output));
    vector_check(ttd_recover(&input, &output, NULL, NULL, &verdict, NULL));
    vector_resize(file, memory.size);
    memcpy(file->data, memory.data, memory.size);
    ttd_memory_output_free(&memory);
}

/** A summary of the state, whose block does not end; and the peak. */
static void write_summary(struct ttd_writer *writer, const struct ttd_state *keyframe)
{
    struct ttd_state summary = *keyframe;
    summary.form = TTD_STATE_SUMMARY;
    summary.blocks = 0;
    summary.sums = 4;
    summary.end = ttd_position_invalid();
    vector_check(ttd_writer_state(writer, &summary));
    for (int table = TTD_SUMS_BY_STACK; table <= TTD_SUMS_BY_SIZE; table++) {
        struct ttd_sum sum = {.table = (enum ttd_sum_table)table,
                              .key = 1,
                              .api = TTD_API_MALLOC,
                              .blocks = 1,
                              .bytes = 24,
                              .first = {1, 1},
                              .last = {1, 1}};
        sum.key = table == TTD_SUMS_BY_SIZE ? 5 : 1; /* 24 has five binary digits */
        vector_check(ttd_writer_sum(writer, &sum));
    }
    struct ttd_state peak = {.form = TTD_STATE_PEAK, .position = {1, 1}, .blocks = 1, .bytes = 24};
    vector_check(ttd_writer_state(writer, &peak));
}

/** A derived file of good-base: what was live after the first event. `more` is added to the size
 * of the source: then it is tied to no file that there is. */
static void write_tied(struct ttd_memory_output *memory, uint64_t more)
{
    struct ttd_memory_output base;
    vector_write_base(&base);
    const uint8_t *end = base.data + base.size - TTD_END_CHUNK_SIZE;
    struct ttd_trace trace = {.trace_id = UINT64_C(0x99AABBCCDDEEFF00),
                              .time_unit = 10,
                              .flags = TTD_TRACE_DERIVED,
                              .pointer_size = 8,
                              .source_trace_id = ttd_get64(base.data + TTD_HEADER_TRACE_ID),
                              .source_size = base.size + more,
                              .source_hash = ttd_get64(end + TTD_HEADER_HASH)};
    ttd_memory_output_free(&base);
    struct ttd_output output;
    struct ttd_writer *writer = NULL;
    vector_check(ttd_output_memory(memory, NULL, &output));
    vector_check(ttd_writer_open(&output, &trace, NULL, NULL, &writer, NULL));
    struct ttd_state state = {.form = TTD_STATE_KEYFRAME,
                              .position = {1, 1},
                              .blocks = 1,
                              .next_event = 1,
                              .events = 1,
                              .actions = {[TTD_ACTION_ALLOC] = 1}};
    vector_check(ttd_writer_state(writer, &state));
    struct ttd_block block = {.address = 0x602010,
                              .size = 24,
                              .event = 0,
                              .allocated = {1, 1},
                              .thread = 1,
                              .heap = 1,
                              .stack = 1,
                              .api = TTD_API_MALLOC};
    struct ttd_live_blocks blocks = {.list = TTD_BLOCKS_KEYFRAME,
                                     .list_id = 1,
                                     .last = true,
                                     .position = {1, 1},
                                     .blocks = &block,
                                     .count = 1};
    vector_check(ttd_writer_live_blocks(writer, &blocks));
    write_summary(writer, &state);
    struct ttd_end closing = {.reason = TTD_END_REASON_NOT_RECORDED};
    vector_check(ttd_writer_close(writer, &closing, NULL));
}

static void write_derived(struct ttd_memory_output *memory)
{
    write_tied(memory, 0);
}

static void write_stale(struct ttd_memory_output *memory)
{
    write_tied(memory, 8);
}

static void add_minor_version(struct vector_file *file)
{
    size_t at = chunk_edit_find_kind(file->data, file->size, TTD_KIND_STRINGS);
    ttd_put16(file->data + at + TTD_HEADER_MINOR, 7);
    chunk_edit_seal_header(file->data + at);
    size_t index = chunk_edit_find_kind(file->data, file->size, TTD_KIND_INDEX);
    uint8_t *entry = file->data + index + TTD_HEADER_SIZE + TTD_INDEX_LINKS + TTD_LINK_SIZE;
    memcpy(entry + TTD_HEADER_SIZE, file->data + at, TTD_HEADER_SIZE);
    chunk_edit_seal(file->data + index, file->size - index);
}

/** Makes the strings chunk one of a private kind. Events refer to a heap whose name is lost. */
static void add_private_kind(struct vector_file *file)
{
    size_t at = chunk_edit_find_kind(file->data, file->size, TTD_KIND_METADATA);
    size_t number = ttd_get64(file->data + at + TTD_HEADER_NUMBER);
    ttd_put16(file->data + at + TTD_HEADER_KIND, TTD_KIND_PRIVATE + 1);
    chunk_edit_seal_header(file->data + at);
    size_t index = chunk_edit_find_kind(file->data, file->size, TTD_KIND_INDEX);
    uint8_t *entry = file->data + index + TTD_HEADER_SIZE + TTD_INDEX_LINKS + TTD_LINK_SIZE;
    memcpy(entry + number * TTD_HEADER_SIZE, file->data + at, TTD_HEADER_SIZE);
    chunk_edit_seal(file->data + index, file->size - index);
}

const struct vector vectors_good[] = {
    {.name = "good-empty",
     .requirements = "R-24 R-54 R-57",
     .purpose = "nothing but trace, index and End",
     .write = write_empty},
    {.name = "good-base",
     .requirements = "R-4 R-5 R-38",
     .purpose = "four events in two chunks; most bad files are made of it"},
    {.name = "good-example",
     .requirements = "R-4 R-5 R-19 R-22 R-44 R-56",
     .purpose = "two threads, a ReAlloc, stacks, LZ4 and an index: spec/example.md explains it",
     .write = vector_write_example,
     .tolerant_events = 6},
    {.name = "good-kinds-raw",
     .requirements = "R-6 R-22 R-36 R-37 R-51 R-52 R-53",
     .purpose = "every kind of chunk, every action with each of its properties, uncompressed",
     .write = write_kinds_raw},
    {.name = "good-kinds-lz4",
     .requirements = "R-19",
     .purpose = "the same, compressed",
     .write = write_kinds_lz4},
    {.name = "good-program",
     .requirements = "R-38 R-44",
     .purpose = "as a recorder writes: threads in turn, blocks allocated and freed, LZ4",
     .write = write_program},
    {.name = "good-extremes",
     .requirements = "R-44 R-47 R-59",
     .purpose = "values and positions that no program has, but that a trace can",
     .write = write_extremes},
    {.name = "good-chunks",
     .requirements = "R-16 R-17",
     .purpose = "many chunks of few events",
     .write = write_chunks,
     .tolerant_events = CHUNKS_EVENTS},
    {.name = "good-minor-version",
     .requirements = "R-61",
     .purpose = "a chunk of a later minor version is read as any other",
     .damage = add_minor_version},
    {.name = "good-private-kind",
     .requirements = "R-25",
     .purpose = "a chunk of a private kind that is not critical is skipped",
     .write = write_kinds_raw,
     .damage = add_private_kind},
    {.name = "good-odd-records",
     .requirements = "R-21 R-50",
     .purpose = "a loss of a reason that nobody knows, and lists without blocks and runs",
     .write = write_odd_records},
    {.name = "good-recovered",
     .requirements = "R-54",
     .purpose = "recovered without the first chunk: time_unit 0, so that wall times are unknown",
     .damage = lose_first},
    {.name = "good-derived",
     .requirements = "R-58 R-76 R-77",
     .purpose =
         "a keyframe, a summary and the peak of good-base, which it is tied to; of no other file",
     .write = write_derived},
    {.name = "good-derived-stale",
     .requirements = "R-58",
     .purpose = "the same of another state of good-base: intact, but to be ignored beside it",
     .write = write_stale},
    {.name = "good-later-values",
     .requirements = "R-50 R-59 R-70",
     .purpose = "architecture, api and reasons that nobody knows yet",
     .write = write_later_values,
     .tolerant_events = 1},
    {.name = "good-names",
     .requirements = "R-37 R-71",
     .purpose = "a thread's end with a name, and a frame that is named twice",
     .write = write_names},
    {.name = "good-snapshots",
     .requirements = "R-78 R-79 R-81 R-82 R-83 R-84 R-85 R-86 R-87 R-88",
     .purpose = "two snapshots with parts of every kind, and a fatal signal",
     .write = vector_write_snapshots},
    {.name = "good-snapshot-cut",
     .requirements = "R-79 R-80",
     .purpose = "parts of a snapshot that has no end, which are not to be used, and one that has",
     .write = vector_write_snapshot_cut},
    {.name = "good-nested-heaps",
     .requirements = "R-51 R-89 R-90",
     .purpose = "a pool in a block of malloc, with a block at the same address; all eight actions",
     .write = vector_write_nested_heaps},
    {.name = "good-unclosed",
     .requirements = "R-26",
     .purpose = "the recorder died: no End chunk; reads well, but verify says so",
     .write = write_unclosed,
     .verify_status = TTD_ERROR_TRUNCATED,
     .verify_what = "not closed cleanly"},
    {.name = NULL},
};
