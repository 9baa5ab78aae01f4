/* SPDX-License-Identifier: MIT */
/* Contents of a live child: each page is stored as it is, or as absent; none is made up. */
#include "api/fixture.h"
#include "child.h"
#include "snapshot/pages/page_contents.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGES = 600, WORDS = MEMORY_PAGE / 8 };

/* Page i of the child is gone, untouched, or full of words that tell its address. */
static bool is_gone(size_t i)
{
    return i % 50 == 7;
}

static bool is_touched(size_t i)
{
    return !is_gone(i) && i % 3 != 0;
}

static void fill(volatile struct child_shared *shared)
{
    uint64_t *memory = mmap(NULL, PAGES * MEMORY_PAGE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    shared->values[0] = (uintptr_t)memory;
    for (size_t i = 0; i < PAGES; i++) {
        uint64_t *page = memory + i * WORDS;
        if (is_gone(i))
            munmap(page, MEMORY_PAGE);
        for (size_t k = 0; is_touched(i) && k < WORDS; k++)
            page[k] = (uintptr_t)page;
    }
    child_wait(shared);
}

static struct ttd_memory_output output;
static uint64_t ids[PAGES]; /* of the pages, as the map says; 0 at first is the page of zeros */
static unsigned ticks;

static void tick(void *context)
{
    (void)context;
    ticks++;
}

/* Copies the child's memory, and reads back what ids the pages have. Returns what is missing. */
static uint64_t copy(struct contents_job *job, uint64_t base)
{
    struct ttd_trace trace = fixture_trace();
    struct ttd_writer *writer = fixture_writer(&output, &trace, NULL);
    struct heap_pages pages = {0};
    struct region region = {
        .begin = base, .end = base + PAGES * MEMORY_PAGE, .kind = TTD_REGION_ANONYMOUS};
    struct regions regions = {.items = &region, .count = 1};
    heap_pages_add(&pages, base, PAGES * MEMORY_PAGE);
    job->pages = &pages;
    job->tick = tick;
    job->store = page_store_new(writer);
    page_store_begin(job->store, 1, (struct ttd_position){1, 0});
    uint64_t missing = contents_copy(job, &regions);
    cr_assert_eq(page_store_end(job->store), TTD_OK);
    page_store_free(job->store);
    heap_pages_free(&pages);
    fixture_close(writer);
    fixture_check_intact(output.data, output.size);
    return missing;
}

static void take_pages(const struct ttd_pages *pages, uint64_t base)
{
    for (size_t i = 0; i < PAGES; i++) {
        uint64_t word = 0;
        if (ids[i] < pages->first_page || ids[i] >= pages->first_page + pages->count)
            continue;
        for (size_t k = 0; k < WORDS; k++) {
            memcpy(&word, pages->data + (ids[i] - pages->first_page) * MEMORY_PAGE + k * 8, 8);
            cr_assert_eq(word, base + i * MEMORY_PAGE, "page %zu", i);
        }
    }
}

static void take_map(const struct ttd_memory_map *map, uint64_t base)
{
    for (size_t i = 0; i < map->count; i++)
        for (uint64_t k = 0; k < map->runs[i].page_count; k++) {
            size_t page = (map->runs[i].address - base) / MEMORY_PAGE + k;
            cr_assert_lt(page, PAGES);
            ids[page] = map->runs[i].page + (map->runs[i].page < TTD_PAGE_FIRST ? 0 : k);
        }
}

/* Reads the trace, and checks the contents of all pages. Maps come behind pages: two passes. */
static void read_back(uint64_t base)
{
    for (int pass = 0; pass < 2; pass++) {
        struct ttd_reader *reader = fixture_reader(&output, false);
        struct ttd_batch batch;
        while (ttd_reader_next(reader, &batch, NULL) == TTD_OK)
            if (pass == 0 && batch.kind == TTD_KIND_MEMORY_MAP)
                take_map(batch.u.memory_map, base);
            else if (pass == 1 && batch.kind == TTD_KIND_PAGES)
                take_pages(batch.u.pages, base);
        ttd_reader_close(reader);
    }
    ttd_memory_output_free(&output);
}

/* Copies the memory of a child, until a deadline. */
static uint64_t copy_child(struct contents_job *job, uint64_t deadline)
{
    struct child child = child_start(fill);
    struct memory memory;
    uint64_t base = child.shared->values[0];
    cr_assert(memory_open(&memory, (uint32_t)child.pid, (uint32_t)child.pid));
    job->memory = &memory;
    memory.deadline = deadline;
    uint64_t missing = copy(job, base);
    memory_close(&memory);
    cr_assert_eq(child_end(&child), 0);
    read_back(base);
    return missing;
}

Test(contents, of_a_stopped_process, .timeout = 30)
{
    struct contents_job job = {.is_stopped = true};
    cr_expect_eq(copy_child(&job, 0), 0);
    cr_expect_gt(ticks, 0);
    for (size_t i = 0; i < PAGES; i++)
        cr_assert_eq(ids[i] >= TTD_PAGE_FIRST, is_touched(i), "page %zu", i);
}

/* Nothing is said of untouched pages, which may be gone by now. */
Test(contents, of_a_running_process, .timeout = 30)
{
    struct contents_job job = {.is_stopped = false};
    cr_expect_eq(copy_child(&job, 0), 0);
    for (size_t i = 0; i < PAGES; i++)
        if (is_touched(i))
            cr_assert_geq(ids[i], TTD_PAGE_FIRST, "page %zu", i);
        else
            cr_assert_eq(ids[i], TTD_PAGE_NOT_CAPTURED, "page %zu", i);
}

Test(contents, too_late, .timeout = 30)
{
    struct contents_job job = {.is_stopped = true};
    cr_expect_gt(copy_child(&job, 1), 0);
    cr_expect_eq(ids[PAGES - 1], TTD_PAGE_NOT_CAPTURED);
}

/* The process ends between the look at its pages and their copy: nothing is taken for its memory.
 */
Test(contents, of_a_process_that_is_gone, .timeout = 30)
{
    struct child child = child_start(fill);
    struct memory memory;
    struct memory_batch *batch = malloc(sizeof *batch);
    uint64_t base = child.shared->values[0];
    cr_assert(memory_open(&memory, (uint32_t)child.pid, (uint32_t)child.pid));
    batch->missing = 0;
    batch->is_gone = false;
    memory_batch_clear(batch);
    cr_assert_eq(memory_batch_add(batch, base + MEMORY_PAGE, 2 * MEMORY_PAGE, 0), 2 * MEMORY_PAGE);
    cr_assert_eq(child_end(&child), 0);
    memory_batch_read(batch, &memory);
    cr_expect(memory_batch_has_hole(batch, 0));
    cr_expect(memory_batch_has_hole(batch, MEMORY_PAGE));
    memory_close(&memory);
    free(batch);
}

/* A page goes away after it was seen. */
Test(contents, hole, .timeout = 30)
{
    struct child child = child_start(fill);
    struct memory memory;
    struct memory_batch *batch = malloc(sizeof *batch);
    uint64_t base = child.shared->values[0];
    cr_assert(memory_open(&memory, (uint32_t)child.pid, (uint32_t)child.pid));
    batch->missing = 0;
    batch->is_gone = false;
    memory_batch_clear(batch);
    memory_batch_add(batch, base + 5 * MEMORY_PAGE, 4 * MEMORY_PAGE, 0); /* page 7 is gone */
    memory_batch_read(batch, &memory);
    for (uint32_t i = 0; i < 4; i++)
        cr_expect_eq(memory_batch_has_hole(batch, i * MEMORY_PAGE), is_gone(5 + i), "page %u", i);
    memory_close(&memory);
    cr_assert_eq(child_end(&child), 0);
    free(batch);
}
