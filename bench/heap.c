/* SPDX-License-Identifier: MIT */
/*
 * Writes the trace of a program that ends with a large heap: heap BLOCKS FILE. Four blocks are an
 * entry: its record, which points at a key, a value, a list and another entry, and these, which
 * point back, at entries that many point at, and at each other: three references a block. Every
 * second entry is as old as its address, the others are in memory that others had before. Nobody
 * holds one entry in a hundred. A snapshot of references is taken at the end.
 */
#include <stdio.h>
#include <stdlib.h>

#include <ttdtrace/ttdtrace.h>

#define PROGRAM "heap"
#include "generator.h"

#define PARTS  4
#define STACKS 4000
#define FIRST  UINT64_C(0x7f1200000000)
#define DATA   UINT64_C(0x555500000000)
#define STEP   48
#define SIZE   40
#define BATCH  4096

struct generator {
    struct ttd_writer *writer;
    uint64_t random;
    uint64_t entries;
    uint64_t steps;
    struct ttd_reference references[BATCH];
    size_t count;
};

/* One of the entries, each once. */
static uint64_t shuffled(const struct generator *generator, uint64_t entry)
{
    return (entry + 1) * 7919 % generator->entries;
}

static struct ttd_event call(struct generator *generator, enum ttd_action action, enum ttd_api api)
{
    generator->steps += 2;
    return (struct ttd_event){.time_start = {1, generator->steps - 1},
                              .time_end = {1, generator->steps},
                              .wall_time = generator->steps / 2048 * 100000,
                              .result = 1,
                              .thread = 1,
                              .heap = 1,
                              .action = (uint8_t)action,
                              .api = (uint8_t)api};
}

static void allocate(struct generator *generator, uint64_t entry, bool is_released)
{
    for (unsigned part = 0; part < PARTS; part++) {
        uint64_t address = FIRST + (entry * PARTS + part) * STEP;
        struct ttd_event event = call(generator, TTD_ACTION_ALLOC, TTD_API_MALLOC);
        event.address = address;
        event.size = SIZE;
        event.stack = (ttd_id)(1 + (entry / 1000 * 31 + part * 1000) % STACKS);
        require(ttd_writer_event(generator->writer, &event) == TTD_OK, "cannot write");
        if (!is_released)
            continue;
        event = call(generator, TTD_ACTION_FREE, TTD_API_FREE);
        event.base_address = address;
        event.stack = 1;
        require(ttd_writer_event(generator->writer, &event) == TTD_OK, "cannot write");
    }
}

static void flush(struct generator *generator)
{
    struct ttd_references references = {
        .snapshot = 1, .references = generator->references, .count = generator->count};
    require(ttd_writer_references(generator->writer, &references) == TTD_OK, "cannot write");
    generator->count = 0;
}

static void refer(struct generator *generator, uint32_t region, uint64_t offset, uint64_t block)
{
    generator->references[generator->count++] =
        (struct ttd_reference){region, offset, FIRST + block * STEP};
    if (generator->count == BATCH)
        flush(generator);
}

static void refer_from(struct generator *generator, uint64_t entry)
{
    uint64_t block = entry * PARTS;
    uint64_t next = shuffled(generator, entry);
    for (uint64_t part = 0; part < PARTS; part++) {
        uint64_t offset = (block + part) * STEP;
        if (part == 0) {
            for (uint64_t i = 1; i < PARTS; i++)
                refer(generator, 1, offset + 8 * i - 8, block + i);
            if (next % 100)
                refer(generator, 1, offset + 24, next * PARTS);
            continue;
        }
        refer(generator, 1, offset, block);
        refer(generator, 1, offset + 8,
              draw(&generator->random, generator->entries / 100 + 1) * PARTS);
        if (part + 1 < PARTS)
            refer(generator, 1, offset + 16, block + part + 1);
    }
}

static void take_snapshot(struct generator *generator)
{
    struct ttd_region regions[] = {
        {.kind = TTD_REGION_HEAP, .begin = FIRST, .size = generator->entries * PARTS * STEP},
        {.kind = TTD_REGION_ANONYMOUS, .begin = DATA, .size = generator->entries * 8}};
    struct ttd_regions written = {.snapshot = 1, .first = 1, .regions = regions, .count = 2};
    struct ttd_snapshot snapshot = {.number = 1,
                                    .position = {2, 0},
                                    .contents = TTD_SNAPSHOT_REFERENCES,
                                    .reason = TTD_SNAPSHOT_EXIT,
                                    .flags = TTD_SNAPSHOT_STOPPED,
                                    .thread = 1};
    require(ttd_writer_regions(generator->writer, &written) == TTD_OK, "cannot write");
    for (uint64_t entry = 0; entry < generator->entries; entry++)
        refer_from(generator, entry);
    for (uint64_t entry = 1; entry < generator->entries; entry += 100)
        refer(generator, 2, entry * 8, entry * PARTS);
    flush(generator);
    require(ttd_writer_snapshot(generator->writer, &snapshot) == TTD_OK, "cannot write");
}

int main(int count, char **arguments)
{
    static struct generator generator = {.random = 88172645463325252};
    require(count == 3, "usage: heap BLOCKS FILE");
    generator.entries = strtoull(arguments[1], NULL, 10) / PARTS;
    struct ttd_output output;
    struct ttd_trace trace = {.trace_id = 1, .time_unit = 1, .pointer_size = 8};
    struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .os_id = 1000};
    struct ttd_heap heap = {.handle = 0};
    ttd_id id;
    require(generator.entries && ttd_output_file(arguments[2], NULL, &output, NULL) == TTD_OK &&
                ttd_writer_open(&output, &trace, NULL, NULL, &generator.writer, NULL) == TTD_OK &&
                ttd_writer_thread(generator.writer, &thread, &id) == TTD_OK &&
                ttd_writer_heap(generator.writer, &heap, &id) == TTD_OK,
            "cannot write");
    for (uint64_t i = 0; i < STACKS; i++)
        require(ttd_writer_stack(generator.writer, (ttd_id)(i / 3), TTD_NONE, 0x401000 + i * 37,
                                 &id) == TTD_OK,
                "cannot write");
    for (uint64_t entry = 0; entry < generator.entries; entry += 2)
        allocate(&generator, entry, false);
    for (uint64_t entry = 0; entry < generator.entries; entry++) {
        uint64_t odd = shuffled(&generator, entry) | 1;
        if (shuffled(&generator, entry) % 2 && odd < generator.entries)
            allocate(&generator, odd, true);
        if (shuffled(&generator, entry) % 2 && odd < generator.entries)
            allocate(&generator, odd, false);
    }
    take_snapshot(&generator);
    struct ttd_end end = {.reason = TTD_END_REASON_EXITED};
    require(ttd_writer_close(generator.writer, &end, NULL) == TTD_OK, "cannot write");
    return 0;
}
