/* SPDX-License-Identifier: MIT */
#include "vectors/edit.h"

#include "support/older_references.h"

static struct ttd_writer *begin(struct ttd_memory_output *memory)
{
    struct ttd_writer_options options = ttd_writer_options_default();
    options.codec = TTD_CODEC_RAW;
    struct ttd_writer *writer = vector_writer(memory, &options);
    ttd_id id;
    struct ttd_module module = {.action = TTD_MODULE_LOAD,
                                .position = {1, 0},
                                .path = vector_string(writer, "/usr/bin/server"),
                                .bias = 0x555555554000,
                                .begin = 0x555555554000,
                                .end = 0x555555559000};
    vector_check(ttd_writer_module(writer, &module, &id));
    struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .position = {1, 0}, .os_id = 77};
    vector_check(ttd_writer_thread(writer, &thread, &id));
    vector_check(ttd_writer_stack(writer, TTD_NONE, 1, 0x1180, &id));
    vector_check(ttd_writer_stack(writer, id, 1, 0x1136, &id));
    return writer;
}

static const struct ttd_reference heap[] = {{.region = 1, .offset = 0x10, .value = 0x555555557D48},
                                            {.region = 1, .offset = 0x18, .value = 0x602010}};
static const struct ttd_reference roots[] = {
    {.region = 2, .offset = 0x1F8, .value = 0x602010},
    {.region = 3, .offset = 3 * sizeof(uint64_t), .value = 0x602010},
    {.region = 4, .offset = 0x48, .value = 0x602011},
    {.region = 4, .offset = 0x51, .value = 0x602010},
    {.region = 4, .offset = 0x58, .value = 0x601FF8}};

/** A block at 0x602010 begins with a pointer to a table of virtual functions. It is held by .bss,
 * by itself, by the stack and by a register, rbx. */
static void write_references(struct ttd_writer *writer, uint32_t snapshot)
{
    struct ttd_region first[] = {
        {TTD_REGION_HEAP, 0x602000, 0x21000, TTD_NONE, TTD_NONE, vector_string(writer, "[heap]")},
        {TTD_REGION_MODULE, 0x555555558040, 0x200, TTD_NONE, 1, vector_string(writer, ".bss")}};
    vector_check(ttd_writer_regions(
        writer,
        &(struct ttd_regions){.snapshot = snapshot, .first = 1, .regions = first, .count = 2}));
    struct ttd_region more[] = {
        {TTD_REGION_REGISTERS, 0, 17 * sizeof(uint64_t), 1, TTD_NONE, TTD_NONE},
        {TTD_REGION_STACK, 0x7FFFFFFDE000, 0x1000, 1, TTD_NONE, TTD_NONE},
        {TTD_REGION_TLS, 0x7FFFF7D8A740, 0x80, 1, 1, TTD_NONE},
        {TTD_REGION_ANONYMOUS, 0x7FFFF7000000, 0x200000, TTD_NONE, TTD_NONE, TTD_NONE},
        {TTD_REGION_FILE, UINT64_MAX - 0xFFF, 0x1000, TTD_NONE, TTD_NONE, TTD_NONE}};
    vector_check(ttd_writer_regions(
        writer,
        &(struct ttd_regions){.snapshot = snapshot, .first = 3, .regions = more, .count = 5}));
    vector_check(ttd_writer_references(
        writer, &(struct ttd_references){.snapshot = snapshot, .references = heap, .count = 2}));
    vector_check(ttd_writer_references(
        writer, &(struct ttd_references){.snapshot = snapshot, .references = roots, .count = 5}));
}

static void write_names(struct ttd_writer *writer, uint32_t snapshot)
{
    struct ttd_variable server = {
        .module = 1, .offset = 0x4100, .size = 0x180, .name = vector_string(writer, "server")};
    vector_check(ttd_writer_variable(writer, &server));
    struct ttd_variable earlier = {.module = 1,
                                   .offset = 0x4040,
                                   .size = 8,
                                   .name = vector_string(writer, "_ZN6Server4selfE")};
    vector_check(ttd_writer_variable(writer, &earlier));
    uint64_t addresses[] = {0x7FFFFFFDE080, 0x7FFFFFFDE0C0};
    vector_check(ttd_writer_frames(
        writer,
        &(struct ttd_frames){
            .snapshot = snapshot, .thread = 1, .stack = 2, .addresses = addresses, .count = 2}));
    vector_check(ttd_writer_frames(writer, &(struct ttd_frames){.snapshot = snapshot}));
    struct ttd_class classes[] = {
        {.address = 0x555555557D48, .name = vector_string(writer, "6Server")},
        {.address = 0x555555557D20, .name = TTD_NONE}};
    vector_check(ttd_writer_classes(
        writer, &(struct ttd_classes){.snapshot = snapshot, .classes = classes, .count = 2}));
    uint64_t headers[] = {0x291, 0x21, 0x4141414141414141};
    vector_check(
        ttd_writer_block_headers(writer, &(struct ttd_block_headers){.snapshot = snapshot,
                                                                     .flags = TTD_HEADERS_BROKEN,
                                                                     .begin = 0x555555559008,
                                                                     .headers = headers,
                                                                     .count = 3}));
}

static void write_end(struct ttd_writer *writer, uint32_t number, uint64_t sequence)
{
    struct ttd_snapshot snapshot = {.number = number,
                                    .position = {sequence, 0},
                                    .wall_time = 1000 * sequence,
                                    .duration = 300000,
                                    .contents = TTD_SNAPSHOT_REFERENCES,
                                    .reason = TTD_SNAPSHOT_REQUESTED,
                                    .flags = TTD_SNAPSHOT_STOPPED,
                                    .thread = 1};
    vector_check(ttd_writer_snapshot(writer, &snapshot));
}

static void write_memory(struct ttd_writer *writer)
{
    uint8_t page[512] = {1, 2, 3};
    uint64_t first;
    vector_check(ttd_writer_pages(
        writer,
        &(struct ttd_pages){.first_page = 0, .page_size = sizeof page, .count = 1, .data = page},
        &first));
    struct ttd_memory_run run = {.address = 0x602000,
                                 .page_count = 1,
                                 .protection = TTD_MEMORY_READ | TTD_MEMORY_WRITE,
                                 .page = first};
    struct ttd_memory_map map = {.snapshot = 7,
                                 .last = true,
                                 .position = {0x2A, 0},
                                 .page_size = sizeof page,
                                 .runs = &run,
                                 .count = 1};
    vector_check(ttd_writer_memory_map(writer, &map));
    /* With a reason that nobody knows. */
    struct ttd_snapshot snapshot = {.number = 7,
                                    .position = {0x2A, 0},
                                    .contents = TTD_SNAPSHOT_BLOCKS | TTD_SNAPSHOT_MEMORY,
                                    .reason = INT32_MAX,
                                    .flags = TTD_SNAPSHOT_INCOMPLETE,
                                    .missing = 0x3000};
    vector_check(ttd_writer_snapshot(writer, &snapshot));
}

void vector_write_snapshots(struct ttd_memory_output *memory)
{
    struct ttd_writer *writer = begin(memory);
    write_references(writer, 1);
    write_names(writer, 1);
    write_end(writer, 1, 0x1A);
    write_memory(writer);
    struct ttd_register registers[] = {{.number = 0, .value = 0},
                                       {.number = 7, .value = 0x7FFFFFFDE040},
                                       {.number = 16, .value = 0x555555555136}};
    struct ttd_fatal_signal signal = {.position = {0x2A, 1},
                                      .wall_time = 42000,
                                      .thread = 1,
                                      .stack = 2,
                                      .signal = 11,
                                      .code = -6,
                                      .address = 0x602038,
                                      .snapshot = 7,
                                      .registers = registers,
                                      .count = 3};
    vector_check(ttd_writer_fatal_signal(writer, &signal));
    vector_close(writer);
}

void vector_write_snapshot_cut(struct ttd_memory_output *memory)
{
    struct ttd_writer *writer = begin(memory);
    write_references(writer, 1);
    write_references(writer, 2);
    write_end(writer, 2, 0x1A);
    vector_close(writer);
}

static void make_older(struct vector_file *file, size_t number, const struct ttd_references *list)
{
    uint8_t payload[OLDER_REFERENCES_SIZE(8)];
    ttd_put16(vector_chunk(file, number) + TTD_HEADER_KIND, TTD_KIND_REFERENCES);
    vector_set_payload(file, number, payload, older_references(list, payload));
}

/* The place of the next chunk of packed references. */
static size_t find_packed(struct vector_file *file, size_t number)
{
    while (ttd_get16(vector_chunk(file, number) + TTD_HEADER_KIND) != TTD_KIND_PACKED_REFERENCES)
        number++;
    return number;
}

void vector_make_last_references_older(struct vector_file *file)
{
    const struct ttd_references last = {1, roots, sizeof roots / sizeof *roots};
    make_older(file, find_packed(file, find_packed(file, 0) + 1), &last);
}

void vector_make_references_older(struct vector_file *file)
{
    const struct ttd_references first = {1, heap, sizeof heap / sizeof *heap};
    vector_make_last_references_older(file);
    make_older(file, find_packed(file, 0), &first);
}

void vector_write_reference_outside(struct ttd_memory_output *memory)
{
    struct ttd_writer *writer = begin(memory);
    struct ttd_region region = {TTD_REGION_HEAP, 0x602000, 0x20,
                                TTD_NONE,        TTD_NONE, vector_string(writer, "[heap]")};
    struct ttd_reference references[] = {{.region = 1, .offset = 0x18, .value = 0x602010},
                                         {.region = 1, .offset = 0x1C, .value = 0x602010},
                                         {.region = 1, .offset = 0x20, .value = 0x602010}};
    vector_check(ttd_writer_regions(
        writer, &(struct ttd_regions){.snapshot = 1, .first = 1, .regions = &region, .count = 1}));
    vector_check(ttd_writer_references(
        writer, &(struct ttd_references){.snapshot = 1, .references = references, .count = 3}));
    write_end(writer, 1, 0x1A);
    vector_close(writer);
}
