/* SPDX-License-Identifier: MIT */
/* The map of where blocks have been, against a list of them. */
#include <criterion/criterion.h>

#include "support/entropy.h"
#include "snapshot/heap_pages.h"

#define LEAF (UINT64_C(1) << HEAP_LEAF_BITS)
#define END  (UINT64_C(1) << HEAP_ADDRESS_BITS)

Test(heap_pages, is_empty_at_first)
{
    struct heap_pages pages = {0};
    cr_assert(!heap_pages_has(&pages, 0));
    cr_assert(!heap_pages_has(&pages, 4096));
    cr_assert(!heap_pages_has(&pages, UINT64_MAX));
    cr_assert(!heap_pages_touch(&pages, 0, UINT64_MAX));
    heap_pages_free(&pages);
}

Test(heap_pages, has_all_of_a_block_and_no_more)
{
    struct heap_pages pages = {0};
    uint64_t begin = LEAF * 5 - 3 * HEAP_PAGE_SIZE - 100, size = LEAF + 5 * HEAP_PAGE_SIZE;
    heap_pages_add(&pages, begin, size);
    cr_assert(!heap_pages_has(&pages, begin / HEAP_PAGE_SIZE * HEAP_PAGE_SIZE - 1));
    for (uint64_t at = begin; at < begin + size; at += HEAP_PAGE_SIZE / 2)
        cr_assert(heap_pages_has(&pages, at));
    uint64_t end = (begin + size - 1) / HEAP_PAGE_SIZE * HEAP_PAGE_SIZE + HEAP_PAGE_SIZE;
    cr_assert(heap_pages_has(&pages, end - 1));
    cr_assert(!heap_pages_has(&pages, end));
    heap_pages_free(&pages);
}

Test(heap_pages, takes_blocks_of_no_size_and_impossible_ones)
{
    struct heap_pages pages = {0};
    heap_pages_add(&pages, 7 * HEAP_PAGE_SIZE, 0);
    cr_assert(heap_pages_has(&pages, 7 * HEAP_PAGE_SIZE));
    cr_assert(!heap_pages_has(&pages, 8 * HEAP_PAGE_SIZE));
    cr_assert(!heap_pages_has(&pages, 6 * HEAP_PAGE_SIZE));
    heap_pages_add(&pages, UINT64_MAX - 10, 5);
    heap_pages_add(&pages, END - 10, 11);
    heap_pages_add(&pages, 0x1000, UINT64_MAX);
    cr_assert(!heap_pages_has(&pages, UINT64_MAX - 10));
    cr_assert(!heap_pages_has(&pages, END - 10));
    cr_assert(!heap_pages_has(&pages, 0x1000));
    heap_pages_add(&pages, END - 10, 10);
    cr_assert(heap_pages_has(&pages, END - 1));
    cr_assert(!heap_pages_has(&pages, END));
    heap_pages_free(&pages);
}

Test(heap_pages, all_memory_is_bounded)
{
    struct heap_pages pages = {0};
    for (uint64_t i = 0; i < HEAP_LEAVES_MAX + 100; i++)
        heap_pages_add(&pages, i * LEAF, 1);
    cr_assert(pages.allocated == HEAP_LEAVES_MAX);
    /* Nothing is forgotten; beyond the limit more counts as heap than is. */
    cr_assert(heap_pages_has(&pages, (HEAP_LEAVES_MAX + 50) * LEAF));
    cr_assert(heap_pages_has(&pages, (HEAP_LEAVES_MAX + 50) * LEAF + 2 * HEAP_PAGE_SIZE));
    cr_assert(!heap_pages_has(&pages, 50 * LEAF + 2 * HEAP_PAGE_SIZE));
    heap_pages_clear(&pages);
    cr_assert(!heap_pages_has(&pages, 50 * LEAF));
    heap_pages_free(&pages);
}

/* A program may ask for such blocks, and a hostile one may claim them: each for the price of a
 * call. Others wait meanwhile. */
Test(heap_pages, blocks_of_all_memory_cost_little)
{
    enum { CALLS = 500 };
    struct heap_pages pages = {0}, child = {0};
    heap_pages_add(&pages, 5 * LEAF, 1);
    for (uint64_t i = 0; i < CALLS; i++)
        heap_pages_add(&pages, i * HEAP_PAGE_SIZE, END - i * HEAP_PAGE_SIZE - 1);
    cr_assert_eq(pages.allocated, 0);
    heap_pages_join(&child, &pages);
    cr_assert_eq(child.allocated, 0);
    cr_assert(heap_pages_has(&child, 0) && heap_pages_has(&child, END - 1));
    heap_pages_add(&child, 7 * LEAF + HEAP_PAGE_SIZE, 1);
    cr_assert(heap_pages_has(&child, 7 * LEAF + 2 * HEAP_PAGE_SIZE));
    heap_pages_free(&pages);
    heap_pages_free(&child);
}

enum { BLOCKS = 300 };

struct blocks {
    uint64_t begin[BLOCKS], last[BLOCKS];
};

static bool model_has(const struct blocks *blocks, uint64_t address)
{
    for (size_t i = 0; i < BLOCKS; i++)
        if (address / HEAP_PAGE_SIZE >= blocks->begin[i] / HEAP_PAGE_SIZE &&
            address / HEAP_PAGE_SIZE <= blocks->last[i] / HEAP_PAGE_SIZE)
            return true;
    return false;
}

Test(heap_pages, agrees_with_a_list_of_blocks)
{
    struct entropy entropy = {.state = 7};
    struct heap_pages pages = {0}, child = {0};
    static struct blocks blocks;
    for (size_t i = 0; i < BLOCKS; i++) {
        uint64_t size = entropy_next(&entropy) % (i % 10 == 0 ? 100 * HEAP_PAGE_SIZE : 300) + 1;
        blocks.begin[i] =
            i % 3 == 0 ? entropy_next(&entropy) % (END - size)
                       : UINT64_C(0x7f0000000000) + entropy_next(&entropy) % (100 * HEAP_PAGE_SIZE);
        blocks.last[i] = blocks.begin[i] + size - 1;
        heap_pages_add(i % 2 != 0 ? &pages : &child, blocks.begin[i], size);
    }
    heap_pages_join(&child, &pages);
    for (size_t i = 0; i < 200000; i++) {
        uint64_t address = i % 2 != 0 ? entropy_next(&entropy) % END
                                      : blocks.begin[i % BLOCKS] +
                                            entropy_next(&entropy) % (4 * HEAP_PAGE_SIZE) -
                                            2 * HEAP_PAGE_SIZE;
        cr_assert(heap_pages_has(&child, address) == model_has(&blocks, address), "%lx",
                  (unsigned long)address);
        uint64_t page = address / HEAP_PAGE_SIZE * HEAP_PAGE_SIZE;
        cr_assert(heap_pages_touch(&child, page, page + HEAP_PAGE_SIZE) ==
                  model_has(&blocks, address));
    }
    heap_pages_free(&pages);
    heap_pages_free(&child);
}

Test(heap_pages, begins_empty_where_another_has_ended)
{
    struct heap_pages first = {0}, second = {0};
    heap_pages_add(&first, LEAF * 3, 100);
    heap_pages_add(&first, LEAF * 7, 2 * LEAF);
    heap_pages_free(&first);
    heap_pages_add(&second, LEAF, 100);
    heap_pages_add(&second, LEAF * 10, 100);
    for (uint64_t leaf = 2; leaf < 10; leaf++)
        cr_assert(!heap_pages_touch(&second, LEAF * leaf, LEAF * (leaf + 1)));
    heap_pages_free(&second);
}
