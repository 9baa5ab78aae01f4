/* SPDX-License-Identifier: MIT */
/* Memory maps: round trips, and what is refused. */
#include "codec/heap_state/heap_states.h"
#include "layout.h"
#include "support/fixtures/buffer.h"

TestSuite(memory_map, .init = buffer_begin, .fini = buffer_finish);

static const struct ttd_memory_run runs[] = {
    {.address = 0x1000, .page_count = 2, .protection = 3, .page = TTD_PAGE_FIRST},
    {.address = 0x8000, .page_count = 1, .protection = TTD_MEMORY_MASK, .page = 0}};
#define RUNS (sizeof runs / sizeof *runs)

static struct ttd_memory_map map_of_runs(void)
{
    return (struct ttd_memory_map){.snapshot = 5,
                                   .last = true,
                                   .position = {7, 8},
                                   .page_size = 4096,
                                   .runs = runs,
                                   .count = RUNS};
}

static struct ttd_cursor decode_map(struct ttd_memory_map *map, struct ttd_memory_run *decoded,
                                    size_t size)
{
    struct ttd_cursor cursor = ttd_cursor_of(buffer.data, size);
    *map = (struct ttd_memory_map){.count = RUNS};
    ttd_decode_memory_map(&cursor, map, decoded);
    return cursor;
}

static void expect_map_refused(const char *error)
{
    struct ttd_memory_map map;
    struct ttd_memory_run decoded[RUNS];
    struct ttd_cursor cursor = decode_map(&map, decoded, buffer.size);
    expect_error(&cursor, error);
}

Test(memory_map, memory_map_comes_back_as_it_was)
{
    struct ttd_memory_map map = map_of_runs();
    struct ttd_memory_run decoded[RUNS];
    ttd_encode_memory_map(&buffer, &map);

    struct ttd_cursor cursor = decode_map(&map, decoded, buffer.size);

    cr_assert_null(cursor.error, "%s", cursor.error);
    cr_assert_eq(map.snapshot, 5);
    cr_assert(map.last);
    cr_assert_eq(map.position.sequence, 7);
    cr_assert_eq(map.position.steps, 8);
    cr_assert_eq(map.page_size, 4096);
    for (size_t i = 0; i < RUNS; i++) {
        cr_assert_eq(decoded[i].address, runs[i].address);
        cr_assert_eq(decoded[i].page_count, runs[i].page_count);
        cr_assert_eq(decoded[i].protection, runs[i].protection);
        cr_assert_eq(decoded[i].page, runs[i].page);
    }
}

Test(memory_map, memory_map_is_refused_where_it_is_truncated)
{
    struct ttd_memory_map map = map_of_runs();
    struct ttd_memory_run decoded[RUNS];
    ttd_encode_memory_map(&buffer, &map);
    for (size_t size = 0; size < buffer.size; size++) {
        struct ttd_cursor cursor = decode_map(&map, decoded, size);
        cr_assert_not_null(cursor.error);
    }
}

static void expect_run_refused(struct ttd_memory_run run, const char *error)
{
    struct ttd_memory_run changed[RUNS] = {runs[0], run};
    struct ttd_memory_map map = map_of_runs();
    map.runs = changed;
    ttd_encode_memory_map(&buffer, &map);
    expect_map_refused(error);
}

Test(memory_map, memory_map_must_not_have_a_run_without_pages)
{
    expect_run_refused((struct ttd_memory_run){.address = 0x8000}, "run without pages");
}

Test(memory_map, memory_map_must_not_reach_beyond_64_bits)
{
    expect_run_refused((struct ttd_memory_run){.address = UINT64_C(0) - 4096, .page_count = 2},
                       "value out of range");
}

Test(memory_map, memory_map_must_not_have_unknown_protection)
{
    expect_run_refused((struct ttd_memory_run){.address = 0x8000,
                                               .page_count = 1,
                                               .protection = TTD_MEMORY_MASK + 1},
                       "value out of range");
}

Test(memory_map, memory_map_must_not_number_pages_beyond_64_bits)
{
    expect_run_refused(
        (struct ttd_memory_run){.address = 0x8000, .page_count = 2, .page = UINT64_MAX - 1},
        "page of a run");
}

Test(memory_map, memory_map_must_belong_to_a_snapshot)
{
    struct ttd_memory_map map = map_of_runs();
    map.snapshot = 0;
    ttd_encode_memory_map(&buffer, &map);
    expect_map_refused("number of a snapshot");
}

Test(memory_map, memory_map_must_have_a_page_size_of_the_format)
{
    struct ttd_memory_map map = map_of_runs();
    ttd_encode_memory_map(&buffer, &map);
    ttd_put32(buffer.data + TTD_MAP_PAGE_SIZE, 4097);
    expect_map_refused("page size");
}
