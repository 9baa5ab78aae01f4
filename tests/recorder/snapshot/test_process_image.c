/* SPDX-License-Identifier: MIT */
/* The image of a live child: it tells what the system tells, and has no bytes but the child's. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "child.h"
#include "snapshot/process_memory.h"

#ifdef __has_feature
#define IS_SANITIZED __has_feature(address_sanitizer)
#else
#define IS_SANITIZED 0
#endif

enum { FILE_PAGES = 4, PLAIN_PAGES = 8, LARGE = 2 * IMAGE_BYTES };

/* Makes three mappings. A private one of this program's file: its second page is read, its third
 * written. An anonymous one: its first, second and fifth pages are written, and the fifth is then
 * protected. A large one: it alone exceeds the limit of an image. */
static void make_memory(volatile struct child_shared *shared)
{
    int file = open("/proc/self/exe", O_RDONLY), flags = MAP_PRIVATE | MAP_ANONYMOUS;
    unsigned char *of_file =
        mmap(NULL, FILE_PAGES * MEMORY_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    unsigned char *plain =
        mmap(NULL, PLAIN_PAGES * MEMORY_PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    unsigned char *large = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    shared->values[3] = of_file[MEMORY_PAGE];
    of_file[2 * MEMORY_PAGE] = 7;
    memset(plain, 1, MEMORY_PAGE);
    memset(plain + MEMORY_PAGE, 2, MEMORY_PAGE);
    plain[4 * MEMORY_PAGE] = 5;
    mprotect(plain + 4 * MEMORY_PAGE, MEMORY_PAGE, PROT_NONE);
    memset(large, 9, LARGE);
    shared->values[0] = (uintptr_t)of_file;
    shared->values[1] = (uintptr_t)plain;
    shared->values[2] = (uintptr_t)large;
    child_wait(shared);
}

static struct child child;
static struct memory held, plain;
static uint64_t of_file, others, large; /* addresses in the child */

static void begin(void)
{
    child = child_start(make_memory);
    of_file = child.shared->values[0];
    others = child.shared->values[1];
    large = child.shared->values[2];
    cr_assert(memory_open(&held, (uint32_t)child.pid, (uint32_t)child.pid));
    cr_assert(memory_open(&plain, (uint32_t)child.pid, (uint32_t)child.pid));
    const uint64_t pages[] = {of_file + MEMORY_PAGE, 8};
    memory_hold(&held, pages, 2);
    cr_assert(held.image != NULL);
}

static void end(void)
{
    memory_close(&held);
    memory_close(&plain);
    cr_expect(child_end(&child) == 0);
}

TestSuite(image, .init = begin, .fini = end, .timeout = 60);

/* Writes to the child's memory behind the image's back. */
static void change(uint64_t address)
{
    unsigned char value = 99;
    struct iovec here = {&value, 1}, there = {(void *)(uintptr_t)address, 1};
    cr_assert(process_vm_writev(child.pid, &here, 1, &there, 1, 0) == 1);
}

static int byte_at(const struct memory *memory, uint64_t address)
{
    unsigned char byte;
    return memory_read(memory, address, &byte, 1) ? byte : -1;
}

typedef size_t finder(struct memory *memory, uint64_t *begin, uint64_t end,
                      struct memory_span spans[MEMORY_SPANS]);

static size_t find_written(struct memory *memory, uint64_t *from, uint64_t to,
                           struct memory_span spans[MEMORY_SPANS])
{
    return memory_written(memory, from, to, spans);
}

/* Compares what is told of a range with the image and without. */
static void compare(finder *find, uint64_t from, uint64_t to)
{
    struct memory_span spans[2][MEMORY_SPANS];
    size_t counts[2] = {0};
    uint64_t at = from;
    counts[0] = find(&held, &at, to, spans[0]);
    cr_expect_eq(at, to);
    at = from;
    counts[1] = find(&plain, &at, to, spans[1]);
    cr_expect_eq(at, to);
    cr_expect_eq(counts[0], counts[1], "%zu, %zu", counts[0], counts[1]);
    for (size_t i = 0; i < counts[0] && i < counts[1]; i++)
        cr_expect(spans[0][i].begin == spans[1][i].begin && spans[0][i].end == spans[1][i].end);
}

Test(image, tells_the_same_pages_as_the_system)
{
    uint64_t begins[] = {of_file, others, large},
             sizes[] = {FILE_PAGES, PLAIN_PAGES, LARGE / MEMORY_PAGE};
    for (size_t i = 0; i < 3; i++) {
        uint64_t last = begins[i] + sizes[i] * MEMORY_PAGE;
        compare(memory_touched, begins[i], last);
        compare(find_written, begins[i], last);
        compare(memory_touched, begins[i] + MEMORY_PAGE, last - MEMORY_PAGE);
        compare(find_written, begins[i] + MEMORY_PAGE, last - MEMORY_PAGE);
    }
}

Test(image, has_what_was_written_and_the_pages_that_are_named)
{
    change(of_file + UINT64_C(2) * MEMORY_PAGE);
    change(others);
    change(large);
    /* The memory that a sanitizer has written fills the image before these pages. */
    if (!IS_SANITIZED) {
        int own = byte_at(&held, of_file + UINT64_C(2) * MEMORY_PAGE);
        cr_expect_eq(own, 7, "%d", own); /* no byte of the file */
        cr_expect_eq(byte_at(&held, others), 1);
    }
    cr_expect_eq(byte_at(&held, large), 99); /* there is no room for it */
    unsigned char bytes[2];
    cr_expect(memory_read(&held, others + MEMORY_PAGE - 1, bytes, 2) && bytes[0] == 1 &&
              bytes[1] == 2);
    int named = byte_at(&plain, of_file + MEMORY_PAGE);
    change(of_file + MEMORY_PAGE); /* from now on it is the child's own */
    cr_expect_neq(named, 99);
    cr_expect_eq(byte_at(&held, of_file + MEMORY_PAGE), named);
    cr_expect_eq(byte_at(&plain, of_file + MEMORY_PAGE), 99);
}

Test(image, knows_what_is_as_in_the_file)
{
    cr_expect(image_is_clean(held.image, of_file));
    cr_expect(image_is_clean(held.image, of_file + MEMORY_PAGE));
    cr_expect_not(image_is_clean(held.image, of_file + UINT64_C(2) * MEMORY_PAGE));
    cr_expect_not(image_is_clean(held.image, UINT64_MAX - MEMORY_PAGE));
    cr_expect_not(image_is_clean(NULL, of_file));
}

/* Reads what the image has, and what it has not. */
static void read_batch(bool may_borrow)
{
    struct memory_batch *batch = calloc(1, sizeof *batch);
    batch->may_borrow = may_borrow;
    memory_batch_add(batch, large, MEMORY_PAGE, 0);
    memory_batch_add(batch, others, UINT64_C(2) * MEMORY_PAGE, 0);
    memory_batch_add(batch, others + UINT64_C(4) * MEMORY_PAGE, MEMORY_PAGE, 0);
    memory_batch_add(batch, of_file + UINT64_C(2) * MEMORY_PAGE, MEMORY_PAGE, 0);
    memory_batch_add(batch, 0, MEMORY_PAGE, 0); /* nothing is there */
    memory_batch_add(batch, large + MEMORY_PAGE, MEMORY_PAGE, 0);
    memory_batch_read(batch, &held);
    static const unsigned char expected[] = {9, 1, 5, 7, 0, 9};
    for (size_t i = 0; i < sizeof expected; i++) {
        const struct memory_piece *piece = &batch->pieces[i];
        cr_expect_eq(piece->bytes[0], expected[i], "%zu", i);
        cr_expect_eq(memory_batch_has_hole(batch, piece->at), i == 4);
    }
    const unsigned char *second = batch->pieces[1].bytes;
    cr_expect_eq(second[MEMORY_PAGE], 2);
    if (!IS_SANITIZED)
        cr_expect_eq(second != batch->bytes + batch->pieces[1].at, may_borrow);
    cr_expect_eq(batch->missing, MEMORY_PAGE);
    free(batch);
}

Test(image, is_read_together_with_what_it_has_not)
{
    read_batch(false);
    read_batch(true);
}
