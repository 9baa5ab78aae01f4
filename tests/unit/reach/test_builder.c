/* SPDX-License-Identifier: MIT */
/* Edges from references whose regions are not in the order of addresses. */
#include <criterion/criterion.h>

#include "reach/builder.h"

#define BLOCKS 1000
#define STEP   48
#define LARGE  UINT64_C(0x7f0000000000)
/* Words of the large block. */
#define WORDS 100

static struct heap_live live;
static struct heap_reach reach;
static struct reach_builder builder;
static struct ttd_region regions[] = {
    {.kind = TTD_REGION_ANONYMOUS, .begin = LARGE, .size = WORDS * 8},
    {.kind = TTD_REGION_HEAP, .begin = 0, .size = (BLOCKS + 1) * STEP}};

static void acquire(uint64_t address, uint64_t size, uint64_t event)
{
    uint32_t record;
    struct heap_block replaced;
    struct heap_block block = {.address = address, .size = size, .heap = 1, .event = event};
    cr_assert_eq(heap_live_record(&live, address, heap_live_hash(&live, address), &record), TTD_OK);
    cr_assert_eq(heap_live_acquire(&live, &record, &block, &replaced), TTD_OK);
}

/* Node i is the small block at (i + 1) * STEP; the last node is the large block. */
static void begin(void)
{
    reach = (struct heap_reach){.regions = regions, .region_count = 2};
    cr_assert_eq(heap_live_init(&live), TTD_OK);
    for (uint64_t i = 1; i <= BLOCKS; i++)
        acquire(i * STEP, STEP, i);
    acquire(LARGE, WORDS * 8, BLOCKS + 1);
    cr_assert_eq(heap_nodes_copy(&reach.nodes, &live), TTD_OK);
}

static void finish(void)
{
    reach_builder_free(&builder);
    graph_free(&reach.graph);
    edge_offsets_free(&reach.offsets);
    heap_nodes_free(&reach.nodes);
    heap_live_free(&live);
}

TestSuite(builder, .init = begin, .fini = finish);

static void add(ttd_id region, uint64_t offset, uint64_t value)
{
    struct ttd_reference reference = {.region = region, .offset = offset, .value = value};
    uint32_t target = heap_nodes_at(&reach.nodes, value);
    cr_assert_eq(reach_builder_add(&builder, &reference, target), TTD_OK);
}

static void add_large(void)
{
    for (uint64_t i = 0; i < WORDS; i++)
        add(1, i * 8, (i + 1) * STEP + i % 3);
}

/* Each small block points at the one before it. */
static void add_small(uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++)
        add(2, (i + 1) * STEP + i % 5 * 8, i * STEP + i % 7);
}

static void open_builder(uint64_t references)
{
    struct heap_reach_options options = {.keeps_offsets = true};
    reach.snapshot.references = references;
    cr_assert_eq(reach_builder_init(&builder, &reach, &options), TTD_OK);
}

static void expect_edge(uint64_t edge, uint32_t target, uint64_t in_source, uint32_t in_target)
{
    cr_assert_eq(reach.graph.targets[edge], target, "edge %llu", (unsigned long long)edge);
    cr_assert_eq(edge_offset_in_source(&reach.offsets, edge), in_source);
    cr_assert_eq(edge_offset_in_target(&reach.offsets, edge), in_target);
}

/* The large block's edges were added so many times. */
static void expect_all(uint64_t times)
{
    const struct graph *graph = &reach.graph;
    cr_assert_eq(reach_builder_finish(&builder), TTD_OK);
    cr_assert_eq(graph->edge_count, BLOCKS - 1 + times * WORDS);
    for (uint32_t i = 1; i < BLOCKS; i++) {
        cr_assert_eq(graph->first[i + 1], i);
        expect_edge(graph->first[i], i - 1, i % 5 * 8, i % 7);
    }
    for (uint64_t i = 0; i < WORDS && times == 1; i++)
        expect_edge(graph->first[BLOCKS] + i, (uint32_t)i, i * 8, (uint32_t)(i % 3));
}

Test(builder, few_edges_before_many_are_put_off)
{
    open_builder(WORDS + BLOCKS - 1);
    add_large();
    add_small(1, BLOCKS);
    cr_assert_eq(builder.late_count, WORDS);
    expect_all(1);
}

Test(builder, few_edges_behind_many_are_put_off)
{
    open_builder(BLOCKS - 1 + WORDS);
    add_small(BLOCKS / 10, BLOCKS);
    add_small(1, BLOCKS / 10);
    cr_assert_eq(builder.late_count, BLOCKS / 10 - 1);
    add_large();
    expect_all(1);
}

Test(builder, a_count_of_references_that_is_wrong_changes_no_edge)
{
    open_builder(0);
    add_large();
    add_small(1, BLOCKS);
    cr_assert_eq(builder.late_count, BLOCKS - 1);
    expect_all(1);
}

Test(builder, all_edges_are_put_off_a_few_times_only)
{
    enum { TIMES = 10 };
    open_builder(UINT64_MAX);
    for (uint64_t i = 0; i < TIMES; i++) {
        add_large();
        add_small(i ? i * BLOCKS / TIMES : 1, (i + 1) * BLOCKS / TIMES);
    }
    cr_assert_lt(builder.late_rounds, TIMES);
    expect_all(TIMES);
}
