/* SPDX-License-Identifier: MIT */
/* Memory of a live child: what is there is read, what is not is neither read nor made. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child.h"
#include "snapshot/process_memory.h"

#define RESERVATION (UINT64_C(1) << 40)
#define FAR         (UINT64_C(1) << 39)

static unsigned char *map(uint64_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Resident pages of a process. */
static unsigned long resident(pid_t pid)
{
    char path[64];
    unsigned long size = 0, pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "r");
    cr_assert(file && fscanf(file, "%lu %lu", &size, &pages) == 2);
    fclose(file);
    return pages;
}

/* A terabyte of which three pages were touched, two of them neighbours. */
static void reserve(volatile struct child_shared *shared)
{
    unsigned char *memory = map(RESERVATION);
    shared->values[0] = (uintptr_t)memory;
    memory[0] = 1;
    memory[FAR] = 2;
    memory[FAR + MEMORY_PAGE] = 3;
    child_wait(shared);
}

static void check_reservation(bool has_scan)
{
    struct child child = child_start(reserve);
    struct memory memory;
    struct memory_span spans[MEMORY_SPANS], seen[8];
    size_t count = 0;
    cr_assert(memory_open(&memory, (uint32_t)child.pid, (uint32_t)child.pid));
    memory.has_scan &= has_scan;
    unsigned long before = resident(child.pid);
    uint64_t begin = child.shared->values[0], at = begin, end = begin + RESERVATION;
    /* Without the system's help only the beginning is looked at: the rest takes a second. */
    uint64_t stop = has_scan ? end : begin + (UINT64_C(1) << 30);
    while (at < stop) {
        size_t found = memory_touched(&memory, &at, stop, spans);
        for (size_t i = 0; i < found; i++) {
            cr_assert(count < 8);
            seen[count++] = spans[i];
        }
    }
    cr_assert(count == (stop == end ? 2 : 1), "%zu", count);
    cr_assert(seen[0].begin == begin && seen[0].end == begin + MEMORY_PAGE);
    if (stop == end)
        cr_assert(seen[1].begin == begin + FAR && seen[1].end == begin + FAR + 2 * MEMORY_PAGE);
    cr_assert(resident(child.pid) == before);
    memory_close(&memory);
    cr_assert(child_end(&child) == 0);
}

Test(memory, untouched_pages_are_not_found, .timeout = 30)
{
    struct child child = child_start(reserve);
    struct memory memory;
    cr_assert(memory_open(&memory, (uint32_t)child.pid, (uint32_t)child.pid));
    struct memory_span spans[MEMORY_SPANS];
    uint64_t at = child.shared->values[0];
    memory_touched(&memory, &at, at + RESERVATION, spans);
    bool has_scan = memory.has_scan;
    memory_close(&memory);
    child_end(&child);
    if (has_scan)
        check_reservation(true);
}

Test(memory, untouched_pages_are_not_found_in_the_page_map, .timeout = 30)
{
    check_reservation(false);
}

/* Pages, and those of a range that fits into a batch. */
enum { PAGES = 3000, RANGE = MEMORY_BATCH / MEMORY_PAGE };

/* Pages with their numbers in them, every other one of which is unmapped. */
static void punch(volatile struct child_shared *shared)
{
    unsigned char *memory = map((uint64_t)PAGES * MEMORY_PAGE);
    for (uint64_t i = 0; i < PAGES; i++)
        *(volatile uint64_t *)(memory + i * MEMORY_PAGE + 8) = i;
    for (uint64_t i = 1; i < PAGES; i += 2)
        munmap(memory + i * MEMORY_PAGE, MEMORY_PAGE);
    shared->values[0] = (uintptr_t)memory;
    child_wait(shared);
}

static uint64_t word_at(const struct memory_batch *batch, uint64_t at)
{
    uint64_t value;
    memcpy(&value, batch->bytes + at, sizeof value);
    return value;
}

Test(memory, reading_goes_on_behind_holes)
{
    struct child child = child_start(punch);
    struct memory memory;
    struct memory_batch *batch = calloc(1, sizeof *batch);
    uint64_t begin = child.shared->values[0], read = 0;
    cr_assert(memory_open(&memory, (uint32_t)child.pid, (uint32_t)child.pid));
    /* One range, holes and all; it ends in one. */
    cr_assert(memory_batch_add(batch, begin, RANGE * MEMORY_PAGE, 0) == RANGE * MEMORY_PAGE);
    memory_batch_read(batch, &memory);
    cr_assert(batch->missing == RANGE / 2 * MEMORY_PAGE, "%lu", (unsigned long)batch->missing);
    for (uint64_t i = 0; i < RANGE; i++)
        cr_assert(word_at(batch, i * MEMORY_PAGE + 8) == (i % 2 == 0 ? i : 0));
    /* The largest number of ranges, small ones, across the holes. */
    memory_batch_clear(batch);
    batch->missing = 0;
    for (uint64_t i = 0; memory_batch_add(batch, begin + i * MEMORY_PAGE + 8, 8, 0) == 8; i++)
        read++;
    cr_assert(read == MEMORY_SPANS);
    memory_batch_read(batch, &memory);
    for (uint64_t i = 0; i < read; i++)
        cr_assert(word_at(batch, i * 8) == (i % 2 == 0 ? i : 0), "%lu", (unsigned long)i);
    cr_assert(batch->missing == read / 2 * 8);
    memory_close(&memory);
    cr_assert(child_end(&child) == 0);
    /* All memory of a process that has ended is missing. */
    batch->missing = 0;
    memory_batch_read(batch, &memory);
    cr_assert(batch->is_gone && batch->missing == read * 8);
    free(batch);
}

/* Of a process that is spared, shared memory is read in another way; no piece counts as a hole for
 * that. */
Test(memory, pieces_are_read_in_either_way)
{
    struct child child = child_start(punch);
    struct memory memory;
    struct memory_batch *batch = calloc(1, sizeof *batch);
    uint64_t begin = child.shared->values[0];
    cr_assert(memory_open(&memory, (uint32_t)child.pid, (uint32_t)child.pid));
    memory_spare(&memory);
    cr_assert_geq(memory.file, 0);
    for (uint32_t i = 0; i < 12; i++) {
        cr_assert_eq(memory_batch_add(batch, begin + 2 * i * MEMORY_PAGE, MEMORY_PAGE, 0),
                     MEMORY_PAGE);
        batch->pieces[i].is_shared = i / 2 % 2 == 0;
        batch->pieces[i].is_device = true;
    }
    memory_batch_read(batch, &memory);
    cr_assert_eq(batch->missing, 0);
    for (uint32_t i = 0; i < 12; i++)
        cr_assert_eq(word_at(batch, i * MEMORY_PAGE + 8), 2 * i);
    memory_close(&memory);
    cr_assert_eq(child_end(&child), 0);
    free(batch);
}

/* A page that was written and then protected, between two that were not touched. */
static void protect(volatile struct child_shared *shared)
{
    unsigned char *memory = map(UINT64_C(3) * MEMORY_PAGE);
    memory[MEMORY_PAGE] = 7;
    mprotect(memory, 3 * MEMORY_PAGE, PROT_NONE);
    shared->values[0] = (uintptr_t)memory;
    child_wait(shared);
}

Test(memory, protected_pages_are_read)
{
    struct child child = child_start(protect);
    struct memory memory;
    struct memory_span spans[MEMORY_SPANS];
    struct memory_batch *batch = calloc(1, sizeof *batch);
    uint64_t begin = child.shared->values[0], at = begin;
    cr_assert(memory_open(&memory, (uint32_t)child.pid, (uint32_t)child.pid));
    cr_assert(memory_touched(&memory, &at, begin + 3 * MEMORY_PAGE, spans) == 1);
    cr_assert(spans[0].begin == begin + MEMORY_PAGE && spans[0].end == begin + 2 * MEMORY_PAGE);
    memory_batch_add(batch, spans[0].begin, MEMORY_PAGE, 0);
    memory_batch_read(batch, &memory);
    cr_assert(batch->missing == 0 && batch->bytes[0] == 7);
    memory_close(&memory);
    cr_assert(child_end(&child) == 0);
    free(batch);
}

/* A private mapping of this program's file of which the second page was read and the third was
 * written. */
static void write_private(volatile struct child_shared *shared)
{
    int file = open("/proc/self/exe", O_RDONLY);
    volatile unsigned char *memory =
        mmap(NULL, 4 * MEMORY_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    shared->values[1] = memory[MEMORY_PAGE];
    memory[2 * MEMORY_PAGE] = 7;
    mprotect((void *)(uintptr_t)memory, 4 * MEMORY_PAGE, PROT_READ);
    shared->values[0] = (uintptr_t)memory;
    child_wait(shared);
}

static void check_written(bool has_scan)
{
    struct child child = child_start(write_private);
    struct memory memory;
    struct memory_span spans[MEMORY_SPANS];
    uint64_t begin = child.shared->values[0], at = begin, end = begin + 4 * MEMORY_PAGE;
    cr_assert(memory_open(&memory, (uint32_t)child.pid, (uint32_t)child.pid));
    memory.has_scan &= has_scan;
    cr_assert(memory_written(&memory, &at, end, spans) == 1 && at == end);
    cr_assert(spans[0].begin == begin + 2 * MEMORY_PAGE && spans[0].end == end - MEMORY_PAGE);
    memory_close(&memory);
    cr_assert(child_end(&child) == 0);
}

Test(memory, written_pages_of_a_file_are_found)
{
    check_written(true);
    check_written(false);
}

/* Whether the page map calls a page a guard: Linux 6.15. */
static bool is_guard(const unsigned char *page)
{
    uint64_t entry = 0;
    int file = open("/proc/self/pagemap", O_RDONLY);
    ssize_t size =
        pread(file, &entry, sizeof entry, (off_t)((uintptr_t)page / MEMORY_PAGE * sizeof entry));
    close(file);
    return size == sizeof entry && entry >> 58 & 1;
}

/* Four pages of which one was touched, and another one before both next ones were made guards. */
static void install_guards(volatile struct child_shared *shared)
{
    enum { INSTALL = 102 /* MADV_GUARD_INSTALL; headers may be older */ };
    unsigned char *memory = map(UINT64_C(4) * MEMORY_PAGE);
    memory[0] = memory[2 * MEMORY_PAGE] = 1;
    shared->values[0] = (uintptr_t)memory;
    shared->values[1] = madvise(memory + MEMORY_PAGE, UINT64_C(2) * MEMORY_PAGE, INSTALL) == 0 &&
                        is_guard(memory + MEMORY_PAGE);
    child_wait(shared);
}

static void check_guards(bool has_scan)
{
    struct child child = child_start(install_guards);
    struct memory memory;
    struct memory_span spans[MEMORY_SPANS];
    uint64_t begin = child.shared->values[0], at = begin, end = begin + 4 * MEMORY_PAGE;
    cr_assert(memory_open(&memory, (uint32_t)child.pid, (uint32_t)child.pid));
    memory.has_scan &= has_scan;
    size_t count = memory_touched(&memory, &at, end, spans);
    if (child.shared->values[1])
        cr_assert(count == 1 && spans[0].begin == begin && spans[0].end == begin + MEMORY_PAGE);
    memory_close(&memory);
    cr_assert(child_end(&child) == 0);
}

Test(memory, guards_have_no_contents)
{
    check_guards(true);
    check_guards(false);
}

Test(memory, nothing_is_read_after_the_deadline)
{
    struct child child = child_start(punch);
    struct memory memory;
    uint64_t word;
    cr_assert(memory_open(&memory, (uint32_t)child.pid, (uint32_t)child.pid));
    cr_assert(memory_read(&memory, child.shared->values[0], &word, sizeof word));
    memory.deadline = 1;
    cr_assert(memory_is_late(&memory));
    cr_assert(!memory_read(&memory, child.shared->values[0], &word, sizeof word));
    memory.deadline = UINT64_MAX;
    cr_assert(memory_read(&memory, child.shared->values[0], &word, sizeof word));
    memory_close(&memory);
    child_end(&child);
}

/* Bytes that a process has in pages of its own. */
static unsigned long private_bytes(pid_t pid)
{
    char path[64], line[256];
    unsigned long clean = 0, dirty = 0;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "Private_Clean: %lu", &clean) != 1)
            (void)sscanf(line, "Private_Dirty: %lu", &dirty);
    fclose(file);
    return (clean + dirty) << 10;
}

enum { SHARED_SIZE = 8 << 20, SHARED_HOLE = 3 << 20 };
static unsigned char *shared_pages;

/* Shares the pages of its parent, but for one that it does not have. */
static void share(volatile struct child_shared *shared)
{
    munmap(shared_pages + SHARED_HOLE, MEMORY_PAGE);
    child_wait(shared);
}

Test(memory, a_copy_gets_no_pages_of_its_own, .timeout = 30)
{
    shared_pages = map(SHARED_SIZE);
    madvise(shared_pages, SHARED_SIZE, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < SHARED_SIZE; i++)
        shared_pages[i] = (unsigned char)(i / MEMORY_PAGE * 3 + 1);
    struct child child = child_start(share);
    struct memory memory;
    struct memory_batch *batch = calloc(1, sizeof *batch);
    cr_assert(memory_open_copy(&memory, (uint32_t)child.pid));
    unsigned long before = private_bytes(child.pid);
    for (size_t at = 0; at < SHARED_SIZE; at += MEMORY_BATCH) {
        uint64_t begin = (uintptr_t)shared_pages + at;
        memory_batch_clear(batch);
        cr_assert_eq(memory_batch_add(batch, begin, MEMORY_BATCH / 2, 0), MEMORY_BATCH / 2);
        cr_assert_eq(memory_batch_add(batch, begin + MEMORY_BATCH / 2, MEMORY_BATCH / 2, 0),
                     MEMORY_BATCH / 2);
        memory_batch_read(batch, &memory);
        for (uint32_t i = 0; i < MEMORY_BATCH; i += 512) {
            bool is_hole = at + i >= SHARED_HOLE && at + i < SHARED_HOLE + MEMORY_PAGE;
            cr_assert_eq(batch->bytes[i], is_hole ? 0 : shared_pages[at + i]);
            cr_assert_eq(memory_batch_has_hole(batch, i), is_hole);
        }
    }
    cr_expect_eq(batch->missing, MEMORY_PAGE);
    cr_expect_lt(private_bytes(child.pid), before + SHARED_SIZE / 4);
    cr_assert_eq(child_end(&child), 0);
    /* Nothing is taken for the memory of a process that is gone. */
    memory_batch_read(batch, &memory);
    cr_assert(batch->is_gone && memory_batch_has_hole(batch, 0));
    memory_close(&memory);
    free(batch);
}
