/* SPDX-License-Identifier: MIT */
/* Pages of memory snapshots come back as they were, and what is the same is stored once. */
#include "api/fixture.h"
#include "snapshot/pages/page_store.h"

#include <stdlib.h>
#include <string.h>

enum { PAGES = 1000, BASE = 0x10000 };

static struct ttd_memory_output memory;
static struct ttd_writer *writer;
static struct page_store *store;
static unsigned char pages[PAGES][STORE_PAGE];

static void begin(void)
{
    struct ttd_trace trace = fixture_trace();
    writer = fixture_writer(&memory, &trace, NULL);
    store = page_store_new(writer);
    cr_assert(store);
    memset(pages, 0, sizeof pages);
}

static void end(void)
{
    page_store_free(store);
    ttd_memory_output_free(&memory);
}

TestSuite(page_store, .init = begin, .fini = end);

/* Page i holds the number i + seed in all its words; pages that are 0 modulo 7 are zeros. */
static void fill(uint64_t seed)
{
    for (uint64_t i = 0; i < PAGES; i++)
        for (size_t at = 0; at < STORE_PAGE; at += sizeof i) {
            uint64_t word = i % 7 ? i + seed : 0;
            memcpy(&pages[i][at], &word, sizeof word);
        }
}

static void add_all(uint32_t snapshot)
{
    page_store_begin(store, snapshot, (struct ttd_position){snapshot, 0});
    for (size_t i = 0; i < PAGES; i++)
        page_store_add(store, BASE + i * STORE_PAGE, pages[i], TTD_MEMORY_READ);
    cr_assert_eq(page_store_end(store), TTD_OK);
}

/* The pages that a reader finds: contents by id, and the ids of the pages of each snapshot. */
struct found {
    unsigned char *contents;
    uint64_t count;
    uint64_t ids[3][PAGES];
    size_t seen[3];
    bool has_last[3];
};

static void take_map(struct found *found, const struct ttd_memory_map *map)
{
    cr_assert_lt(map->snapshot, 3);
    found->has_last[map->snapshot] |= map->last;
    for (size_t i = 0; i < map->count; i++)
        for (uint64_t k = 0; k < map->runs[i].page_count; k++) {
            const struct ttd_memory_run *run = &map->runs[i];
            size_t number = (run->address - BASE) / STORE_PAGE + k;
            cr_assert_eq(number, found->seen[map->snapshot]++);
            cr_assert_lt(number, PAGES);
            cr_expect_eq(run->protection, TTD_MEMORY_READ);
            found->ids[map->snapshot][number] =
                run->page < TTD_PAGE_FIRST ? run->page : run->page + k;
        }
}

static void read_all(struct found *found)
{
    struct ttd_batch batch;
    fixture_close(writer);
    fixture_check_intact(memory.data, memory.size);
    struct ttd_reader *reader = fixture_reader(&memory, false);
    memset(found, 0, sizeof *found);
    while (ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
        if (batch.kind == TTD_KIND_MEMORY_MAP)
            take_map(found, batch.u.memory_map);
        if (batch.kind != TTD_KIND_PAGES)
            continue;
        cr_assert_eq(batch.u.pages->first_page, TTD_PAGE_FIRST + found->count);
        size_t size = (size_t)batch.u.pages->count * STORE_PAGE;
        found->contents = realloc(found->contents, found->count * STORE_PAGE + size);
        memcpy(found->contents + found->count * STORE_PAGE, batch.u.pages->data, size);
        found->count += batch.u.pages->count;
    }
    ttd_reader_close(reader);
}

static void check_snapshot(const struct found *found, uint32_t snapshot)
{
    static const unsigned char zeros[STORE_PAGE];
    cr_expect(found->has_last[snapshot]);
    cr_assert_eq(found->seen[snapshot], PAGES);
    for (size_t i = 0; i < PAGES; i++) {
        uint64_t id = found->ids[snapshot][i];
        const unsigned char *content =
            id == TTD_PAGE_ZERO ? zeros : found->contents + (id - TTD_PAGE_FIRST) * STORE_PAGE;
        cr_assert_eq(memcmp(content, pages[i], STORE_PAGE), 0, "page %zu", i);
    }
}

Test(page_store, contents)
{
    struct found found;
    fill(1);
    add_all(1);
    read_all(&found);
    check_snapshot(&found, 1);
    cr_expect_eq(found.count, PAGES - (PAGES + 6) / 7, "a page of zeros is not stored");
    free(found.contents);
}

Test(page_store, same_page_twice)
{
    struct found found;
    fill(1);
    for (size_t i = 1; i < PAGES; i += 2)
        memcpy(pages[i], pages[1], STORE_PAGE);
    add_all(1);
    read_all(&found);
    check_snapshot(&found, 1);
    cr_expect_eq(found.count, 1 + PAGES / 2 - (PAGES / 2 + 6) / 7);
    free(found.contents);
}

/* The second snapshot of unchanged memory adds a map, and no page. */
Test(page_store, two_snapshots)
{
    struct found found;
    fill(1);
    add_all(1);
    size_t once = memory.size;
    add_all(2);
    cr_expect_lt(memory.size - once, once / 100 + 4096);
    read_all(&found);
    check_snapshot(&found, 1);
    check_snapshot(&found, 2);
    cr_expect_eq(found.count, PAGES - (PAGES + 6) / 7);
    free(found.contents);
}

Test(page_store, changed_page)
{
    struct found found;
    fill(1);
    add_all(1);
    pages[500][STORE_PAGE - 1] = 0xFF;
    add_all(2);
    read_all(&found);
    check_snapshot(&found, 2);
    cr_expect_eq(found.count, PAGES - (PAGES + 6) / 7 + 1);
    cr_expect_neq(found.ids[1][500], found.ids[2][500]);
    free(found.contents);
}

/* Memory that was never touched costs a run, however much it is. */
Test(page_store, absent)
{
    page_store_begin(store, 1, (struct ttd_position){1, 0});
    page_store_add_absent(store, BASE, UINT64_C(1) << 28, TTD_PAGE_ZERO, TTD_MEMORY_READ);
    page_store_add_absent(store, BASE + (UINT64_C(1) << 40), 5, TTD_PAGE_UNREADABLE, 0);
    cr_assert_eq(page_store_end(store), TTD_OK);
    fixture_close(writer);
    fixture_check_intact(memory.data, memory.size);
    cr_expect_lt(memory.size, 4096);
}

/* A failure stays: pages that were to be written are not in the trace. */
Test(page_store, failed_writer)
{
    struct ttd_end last = {.reason = TTD_END_REASON_EXITED};
    fill(1);
    page_store_begin(store, 1, (struct ttd_position){TTD_SEQUENCE_INVALID, 0});
    for (size_t i = 0; i < PAGES; i++)
        page_store_add(store, BASE + i * STORE_PAGE, pages[i], TTD_MEMORY_READ);
    cr_expect_eq(page_store_end(store), TTD_ERROR_ARGUMENT);
    page_store_begin(store, 2, (struct ttd_position){1, 0});
    page_store_add(store, BASE, pages[1], TTD_MEMORY_READ);
    cr_expect_eq(page_store_end(store), TTD_ERROR_ARGUMENT);
    ttd_writer_close(writer, &last, NULL);
}
