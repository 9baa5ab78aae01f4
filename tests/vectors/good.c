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

static void write_kinds_raw(struct ttd_memory_output *memory)
{
    vector_write_kinds(memory, TTD_CODEC_RAW);
}

static void write_kinds_lz4(struct ttd_memory_output *memory)
{
    vector_write_kinds(memory, TTD_CODEC_LZ4);
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
#define CHUNKS_EVENTS 67

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

static void write_derived(struct ttd_memory_output *memory)
{
    vector_write_tied(memory, 0);
}

static void write_stale(struct ttd_memory_output *memory)
{
    vector_write_tied(memory, 8);
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
    size_t number = (size_t)ttd_get64(file->data + at + TTD_HEADER_NUMBER);
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
     .purpose = "chunks of kinds 1 to 16, every action with each of its properties, uncompressed",
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
     .requirements = "R-78 R-79 R-81 R-82 R-84 R-85 R-86 R-87 R-88 R-92 R-93",
     .purpose = "two snapshots with parts of every kind, and a fatal signal",
     .write = vector_write_snapshots},
    {.name = "good-references",
     .requirements = "R-83 R-84",
     .purpose = "the same, with references of the older kind",
     .write = vector_write_snapshots,
     .damage = vector_make_references_older},
    {.name = "good-references-of-both-kinds",
     .requirements = "R-79 R-83 R-84 R-92",
     .purpose = "the same, with references of both kinds",
     .write = vector_write_snapshots,
     .damage = vector_make_last_references_older},
    {.name = "good-reference-outside",
     .requirements = "R-84",
     .purpose = "a word that reaches out of its region, and one behind it: not to be used",
     .write = vector_write_reference_outside},
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
