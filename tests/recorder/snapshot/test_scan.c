/* SPDX-License-Identifier: MIT */
/* The words of this process's own memory that are found to point to blocks: those that a plain loop
 * finds. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "snapshot/search/scan.h"
#include "support/entropy.h"

enum { WORDS = 1 << 18, REGION = 7, BYTES = WORDS * 8 };

/* Blocks lie in some heap pages from here on. */
#define LOWEST UINT64_C(0x555500000000)

static uint64_t *words;
static struct heap_pages pages;
static struct ttd_reference *found;
static size_t found_count;

/* Keeps all references in one array. */
static bool keep(void *context, const struct ttd_reference *references, size_t count)
{
    (void)context;
    memcpy(&found[found_count], references, count * sizeof *found);
    found_count += count;
    return true;
}

static void ignore_variable(void *context, const struct region *region, uint64_t offset)
{
    (void)context, (void)region, (void)offset;
}

static void tick(void *context)
{
    (void)context;
}

static void begin(void)
{
    words = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    found = calloc(WORDS, sizeof *found);
    cr_assert(words != MAP_FAILED && found);
    for (uint64_t i = 0; i < 100; i++)
        heap_pages_add(&pages, LOWEST + i * i * HEAP_PAGE_SIZE, 64);
    heap_pages_add(&pages, UINT64_C(0x7fff00000000), 64);
}

static void finish(void)
{
    heap_pages_free(&pages);
    munmap(words, BYTES);
    free(found);
}

TestSuite(scan, .init = begin, .fini = finish);

static void search(const struct region *region)
{
    struct memory memory;
    struct tables tables = {.range_count = 0};
    struct snapshot_calls calls = {.references = keep, .variable = ignore_variable};
    struct scan_job job = {.memory = &memory,
                           .pages = &pages,
                           .tables = &tables,
                           .references_max = UINT64_MAX,
                           .calls = &calls,
                           .tick = tick};
    cr_assert(memory_open(&memory, (uint32_t)getpid(), (uint32_t)getpid()));
    found_count = 0;
    struct scan *scan = scan_open(&job);
    scan_region(scan, region, REGION);
    cr_assert(scan_close(scan).is_complete);
    memory_close(&memory);
}

/* Searches a part of the words, as heap and as roots. */
static void expect_same(size_t first, size_t end)
{
    unsigned kinds[] = {TTD_REGION_HEAP, TTD_REGION_STACK};
    for (size_t kind = 0; kind < 2; kind++) {
        size_t count = 0;
        search(&(struct region){
            .begin = (uintptr_t)&words[first], .end = (uintptr_t)&words[end], .kind = kinds[kind]});
        for (size_t i = first; i < end; i++) {
            if (!heap_pages_has(&pages, words[i]))
                continue;
            cr_assert_lt(count, found_count);
            cr_assert_eq(found[count].region, REGION);
            cr_assert_eq(found[count].offset, (i - first) * 8);
            cr_assert_eq(found[count++].value, words[i]);
        }
        cr_assert_eq(found_count, count);
    }
}

/* One word in each line, in every place of it. */
Test(scan, finds_a_word_wherever_it_is)
{
    for (size_t i = 0; i < WORDS; i += 8)
        words[i + i / 8 % 8] = LOWEST + i / 8 % 10;
    expect_same(0, WORDS);
}

/* Regions that neither begin nor end with a line. */
Test(scan, finds_the_first_and_the_last_word)
{
    for (size_t i = 0; i < WORDS; i++)
        words[i] = LOWEST + 8;
    for (size_t i = 1; i < 20; i++)
        expect_same(i, 512 + 2 * i);
}

Test(scan, finds_what_lies_in_the_pages_and_nothing_else)
{
    const uint64_t values[] = {0,
                               1,
                               UINT64_MAX,
                               LOWEST - 1,
                               LOWEST + 1,
                               pages.high,
                               pages.high - 1,
                               pages.high + 1,
                               LOWEST * 2,
                               UINT64_C(1) << 63,
                               LOWEST | UINT64_C(1) << 47};
    struct entropy entropy = entropy_of_seed(1);
    for (size_t i = 0; i < WORDS; i++) {
        uint64_t choice = entropy_next(&entropy);
        words[i] = choice % 3 == 0   ? LOWEST + choice / 3 % (20000 * HEAP_PAGE_SIZE)
                   : choice % 3 == 1 ? values[choice / 3 % (sizeof values / sizeof *values)]
                                     : choice;
    }
    expect_same(0, WORDS);
}

/* Of every four pages the second is said to be there; nothing is said of the last ones. */
static bool some_resident(void *context, struct memory_span span, unsigned char *resident)
{
    uint64_t end = *(const uint64_t *)context;
    for (uint64_t page = span.begin; page < span.end; page += MEMORY_PAGE)
        resident[(page - span.begin) / MEMORY_PAGE] =
            page / MEMORY_PAGE % 4 == 1 ? 0xff : 0xfe; /* only the lowest bit counts */
    return span.begin < end;
}

/* Untouched pages of shared memory that is larger than what may be made: those are searched that
 * are said to be there. */
Test(scan, searches_untouched_pages_that_are_there, .timeout = 60)
{
    enum { SHARED = 320 << 20 /* more than what is asked about at once */ };
    char *shared = mmap(NULL, SHARED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(shared != MAP_FAILED);
    uint64_t end = (uintptr_t)shared + (256u << 20), expected = 0;
    for (size_t at = 0; at < SHARED; at += 8 * MEMORY_PAGE + MEMORY_PAGE) {
        uint64_t value = LOWEST + 8, address = (uintptr_t)shared + at;
        memcpy(shared + at, &value, sizeof value);
        expected += address < end && address / MEMORY_PAGE % 4 == 1;
    }
    madvise(shared, SHARED, MADV_DONTNEED);
    struct memory memory;
    struct tables tables = {.range_count = 0};
    struct snapshot_calls calls = {.references = keep, .variable = ignore_variable};
    struct scan_job job = {.memory = &memory,
                           .pages = &pages,
                           .tables = &tables,
                           .references_max = UINT64_MAX,
                           .calls = &calls,
                           .resident = some_resident,
                           .tick = tick,
                           .context = &end};
    cr_assert(memory_open(&memory, (uint32_t)getpid(), (uint32_t)getpid()));
    struct scan *scan = scan_open(&job);
    struct region region = {.begin = (uintptr_t)shared,
                            .end = (uintptr_t)shared + SHARED,
                            .untouched = UNTOUCHED_RESIDENT,
                            .kind = TTD_REGION_FILE};
    scan_region(scan, &region, REGION);
    struct scan_result result = scan_close(scan);
    cr_assert_eq(found_count, expected, "%zu of %ju", found_count, (uintmax_t)expected);
    cr_assert_eq(result.missing, (uintptr_t)shared + SHARED - end);
    memory_close(&memory);
    munmap(shared, SHARED);
}

/* ---- Shared memory that several processes have in common ---- */

enum { COMMON = 8 << 20, COMMON_PAGES = COMMON / MEMORY_PAGE };

static uint64_t *common;
static struct shared_pages *common_pages;

static bool all_resident(void *context, struct memory_span span, unsigned char *resident)
{
    (void)context;
    memset(resident, 1, (span.end - span.begin) / MEMORY_PAGE);
    return true;
}

static uint64_t *word_of_page(size_t page)
{
    return &common[page * MEMORY_PAGE / 8];
}

/* Searches the shared memory for a process that has blocks in some heap pages, and stands still
 * since a moment. Returns the number of references. */
static size_t search_common(const struct heap_pages *blocks, uint64_t still_since, bool notes)
{
    struct memory memory;
    struct tables tables = {.range_count = 0};
    struct snapshot_calls calls = {.references = keep, .variable = ignore_variable};
    struct scan_job job = {.memory = &memory,
                           .pages = blocks,
                           .tables = &tables,
                           .references_max = UINT64_MAX,
                           .calls = &calls,
                           .resident = all_resident,
                           .shared = {common_pages, still_since, notes, 0},
                           .tick = tick};
    struct region region = {.begin = (uintptr_t)common,
                            .end = (uintptr_t)common + COMMON,
                            .untouched = UNTOUCHED_RESIDENT,
                            .shared_device = 1,
                            .shared_inode = 2,
                            .shared_shift = 4096 - (uintptr_t)common,
                            .kind = TTD_REGION_FILE};
    cr_assert(memory_open(&memory, (uint32_t)getpid(), (uint32_t)getpid()));
    found_count = 0;
    struct scan *scan = scan_open(&job);
    scan_region(scan, &region, REGION);
    cr_assert(scan_close(scan).is_complete);
    memory_close(&memory);
    return found_count;
}

static void begin_common(void)
{
    begin();
    common = mmap(NULL, COMMON, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    common_pages = shared_pages_new();
    cr_assert(common != MAP_FAILED && common_pages);
    for (size_t page = 0; page < COMMON_PAGES; page++)
        *word_of_page(page) = LOWEST + 7 * HEAP_PAGE_SIZE; /* no block is there */
}

static void finish_common(void)
{
    munmap(common, COMMON);
    shared_pages_free(common_pages);
    finish();
}

TestSuite(scan_shared, .init = begin_common, .fini = finish_common);

/* A page that was searched since the process stands still is not read: a word that is written
 * afterwards is not found there. Only those that notes were made of are such. */
Test(scan_shared, skips_pages_that_were_searched_for_another_process)
{
    uint64_t still = shared_pages_now();
    cr_assert_eq(search_common(&pages, 0, false), 0);
    *word_of_page(100) = LOWEST;
    cr_assert_eq(search_common(&pages, still, true), 1);
    *word_of_page(1000) = LOWEST;
    cr_assert_eq(search_common(&pages, still, true), 1);
    cr_assert_eq(search_common(&pages, 0, false), 2);
}

/* One that was still running when a search began may have written since. */
Test(scan_shared, reads_pages_that_were_searched_before_the_process_stood_still)
{
    cr_assert_eq(search_common(&pages, shared_pages_now(), true), 0);
    *word_of_page(1000) = LOWEST;
    uint64_t still = shared_pages_now();
    cr_assert_eq(search_common(&pages, still, true), 1);
    *word_of_page(2) = LOWEST;
    cr_assert_eq(search_common(&pages, still, false), 1);
    cr_assert_eq(search_common(&pages, shared_pages_now(), false), 2);
}

/* A process with blocks elsewhere has other references. */
Test(scan_shared, reads_pages_that_point_into_other_heaps)
{
    struct heap_pages other = {0};
    uint64_t still = shared_pages_now();
    heap_pages_add(&other, LOWEST + 7 * HEAP_PAGE_SIZE, 64);
    cr_assert_eq(search_common(&pages, still, true), 0);
    cr_assert_eq(search_common(&other, still, false), COMMON_PAGES);
    heap_pages_free(&other);
    other = (struct heap_pages){0};
    heap_pages_add(&other, LOWEST - 3 * HEAP_PAGE_SIZE, 64); /* lower than what was noted */
    *word_of_page(5) = LOWEST - 3 * HEAP_PAGE_SIZE;
    cr_assert_eq(search_common(&other, still, false), 1);
    heap_pages_free(&other);
}

/* Of a chunk whose words have too many values not all are known. */
Test(scan_shared, reads_chunks_with_many_values)
{
    uint64_t still = shared_pages_now();
    for (uint64_t i = 0; i <= SHARED_CHUNK_VALUES; i++)
        word_of_page(3)[i] = LOWEST + (1 << 20) * HEAP_PAGE_SIZE + i * HEAP_PAGE_SIZE;
    cr_assert_eq(search_common(&pages, still, true), 0);
    *word_of_page(4) = LOWEST;    /* in that chunk */
    *word_of_page(1000) = LOWEST; /* in another one */
    cr_assert_eq(search_common(&pages, still, true), 1);
}
