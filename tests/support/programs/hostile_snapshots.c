/* SPDX-License-Identifier: MIT */
/* Traces with snapshots of a heap of blocks side by side. */
#include "support/programs/hostile.h"

#include <stdbool.h>

#define HEAP_BEGIN UINT64_C(0x20000)
#define PART       65536

static uint64_t node_address(uint64_t node)
{
    return HEAP_BEGIN + node * HOSTILE_STEP;
}

static void write_words(struct ttd_reference *words, size_t count)
{
    struct ttd_references references = {.snapshot = 1, .references = words, .count = count};
    check(ttd_writer_references(writer, &references));
}

static void end_snapshot(uint32_t number)
{
    struct ttd_snapshot snapshot = {.number = number,
                                    .position = tick(),
                                    .contents = TTD_SNAPSHOT_REFERENCES,
                                    .reason = TTD_SNAPSHOT_EXIT,
                                    .flags = TTD_SNAPSHOT_STOPPED};
    check(ttd_writer_snapshot(writer, &snapshot));
}

/* A snapshot of `count` blocks, each of which points at the one that `target` tells, if any. A root
 * points at the first one if `is_held`. */
static void connect_blocks(uint64_t count, uint64_t (*target)(uint64_t node, uint64_t count),
                           bool is_held)
{
    static struct ttd_reference words[PART];
    struct ttd_region all[] = {
        {.kind = TTD_REGION_MODULE, .begin = 0x1000, .size = 0x1000, .module = HOSTILE_MODULE},
        {.kind = TTD_REGION_HEAP, .begin = HEAP_BEGIN, .size = count * HOSTILE_STEP}};
    struct ttd_regions regions = {.snapshot = 1, .first = 1, .regions = all, .count = 2};
    check(ttd_writer_regions(writer, &regions));
    size_t used = 0;
    if (is_held)
        words[used++] = (struct ttd_reference){1, 0, node_address(0)};
    for (uint64_t i = 0; i < count; i++) {
        words[used++] = (struct ttd_reference){2, i * HOSTILE_STEP, node_address(target(i, count))};
        if (used == PART || i + 1 == count)
            write_words(words, used);
        used = used == PART ? 0 : used;
    }
    end_snapshot(1);
}

static void graph(uint64_t count, uint64_t (*target)(uint64_t node, uint64_t count), bool is_held)
{
    ttd_id id = stack(0, 1);
    next_address = HEAP_BEGIN;
    for (uint64_t i = 0; i < count; i++)
        allocate(id);
    connect_blocks(count, target, is_held);
}

static uint64_t first_node(uint64_t node, uint64_t count)
{
    (void)node, (void)count;
    return 0;
}

static uint64_t next_node(uint64_t node, uint64_t count)
{
    return (node + 1) % count;
}

static uint64_t node_before(uint64_t node, uint64_t count)
{
    (void)count;
    return node ? node - 1 : 0;
}

static void star(uint64_t count)
{
    graph(count, first_node, true);
}

static void ring(uint64_t count)
{
    graph(count, next_node, true);
}

static void lost_ring(uint64_t count)
{
    graph(count, next_node, false);
}

/* From the last block to the first. */
static void lost_chain(uint64_t count)
{
    graph(count, node_before, false);
}

/* One large block, each word of which points at another block; `count` of them. */
static void sheaf(uint64_t count)
{
    static struct ttd_reference words[PART];
    uint64_t large = HEAP_BEGIN + 2 * HOSTILE_STEP;
    ttd_id id = stack(0, 1);
    next_address = HEAP_BEGIN;
    allocate(id);
    struct ttd_event event = {.time_start = tick(),
                              .time_end = tick(),
                              .action = TTD_ACTION_ALLOC,
                              .result = 1,
                              .thread = 1,
                              .heap = 1,
                              .stack = id,
                              .address = large,
                              .size = count * 8};
    check(ttd_writer_event(writer, &event));
    struct ttd_region all[] = {
        {.kind = TTD_REGION_MODULE, .begin = 0x1000, .size = 0x1000, .module = HOSTILE_MODULE},
        {.kind = TTD_REGION_HEAP, .begin = HEAP_BEGIN, .size = 2 * HOSTILE_STEP + count * 8}};
    struct ttd_regions regions = {.snapshot = 1, .first = 1, .regions = all, .count = 2};
    check(ttd_writer_regions(writer, &regions));
    size_t used = 0;
    words[used++] = (struct ttd_reference){1, 0, large};
    for (uint64_t i = 0; i < count; i++) {
        words[used++] = (struct ttd_reference){2, 2 * HOSTILE_STEP + i * 8, HEAP_BEGIN};
        if (used == PART || i + 1 == count)
            write_words(words, used);
        used = used == PART ? 0 : used;
    }
    end_snapshot(1);
}

/* A chain of blocks, to each of which a region of its own points. */
static void roots(uint64_t count)
{
    static struct ttd_reference words[PART];
    static struct ttd_region some[PART];
    ttd_id id = stack(0, 1);
    next_address = HEAP_BEGIN;
    for (uint64_t i = 0; i < count; i++)
        allocate(id);
    for (uint64_t i = 0; i <= count; i += PART) {
        size_t used = 0;
        for (uint64_t j = i; j <= count && used < PART; j++)
            some[used++] = j ? (struct ttd_region){.kind = TTD_REGION_ANONYMOUS,
                                                   .begin = UINT64_C(0x7f0000000000) + j * 0x2000,
                                                   .size = 0x1000}
                             : (struct ttd_region){.kind = TTD_REGION_HEAP,
                                                   .begin = HEAP_BEGIN,
                                                   .size = count * HOSTILE_STEP};
        struct ttd_regions regions = {
            .snapshot = 1, .first = (uint32_t)i + 1, .regions = some, .count = used};
        check(ttd_writer_regions(writer, &regions));
    }
    for (int is_root = 0; is_root < 2; is_root++) {
        size_t used = 0;
        for (uint64_t i = 0; i < count; i++) {
            words[used++] = is_root ? (struct ttd_reference){(uint32_t)i + 2, 0, node_address(i)}
                                    : (struct ttd_reference){1, i * HOSTILE_STEP,
                                                             node_address((i + 1) % count)};
            if (used == PART || i + 1 == count)
                write_words(words, used);
            used = used == PART ? 0 : used;
        }
    }
    end_snapshot(1);
}

/* A ring of blocks, each of a call site of its own. */
static void sites(uint64_t count)
{
    next_address = HEAP_BEGIN;
    for (uint64_t i = 0; i < count; i++)
        allocate(stack(0, i + 1));
    connect_blocks(count, next_node, true);
}

/* Snapshots of nothing. */
static void snapshots(uint64_t count)
{
    allocate(stack(0, 1));
    for (uint32_t i = 1; i <= count; i++)
        end_snapshot(i);
}

const struct hostile_shape hostile_snapshot_shapes[] = {
    {"star", star},   {"ring", ring},   {"lost-ring", lost_ring}, {"lost-chain", lost_chain},
    {"sheaf", sheaf}, {"roots", roots}, {"sites", sites},         {"snapshots", snapshots},
    {NULL, NULL},
};
