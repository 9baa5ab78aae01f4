/* SPDX-License-Identifier: MIT */
#include "snapshot/heap_pages.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "arrays.h"

/* Bytes of the table of leaves. It is mapped: a process touches two or three pages of it, while an
 * allocator would clear it all. */
#define TABLE_SIZE (HEAP_LEAVES * sizeof(struct heap_leaf *))

/* Empty tables that are kept: a process that lives for a moment needs two, one after the other, and
 * to map and unmap them costs more than to use them. */
enum { SPARES = 2, SPARE_LEAVES_MAX = 64 };
static struct heap_leaf **_Atomic spares[SPARES];

/* Bits of the number of a heap page within its leaf. */
enum { INDEX_BITS = HEAP_LEAF_BITS - HEAP_PAGE_BITS };

/* Stands for leaves that are all heap, and for those that there is no memory for: all of them
 * counts as heap. */
static struct heap_leaf full_leaf;

static struct heap_leaf *heap_pages_filled_leaf(void)
{
    if (full_leaf.bits[0] == 0)
        memset(&full_leaf, 0xff, sizeof full_leaf);
    return &full_leaf;
}

void heap_pages_clear(struct heap_pages *pages)
{
    for (size_t i = 0; i < pages->used_count; i++) {
        struct heap_leaf *leaf = pages->leaves[pages->used_leaves[i]];
        pages->leaves[pages->used_leaves[i]] = NULL;
        if (leaf != &full_leaf)
            free(leaf);
    }
    pages->used_count = pages->allocated = 0;
    pages->low = pages->high = 0;
}

/* Returns an empty table; NULL if there is no memory. */
static struct heap_leaf **heap_pages_take_table(void)
{
    for (int i = 0; i < SPARES; i++) {
        struct heap_leaf **spare = atomic_exchange(&spares[i], NULL);
        if (spare)
            return spare;
    }
    void *table = mmap(NULL, TABLE_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return table != MAP_FAILED ? table : NULL;
}

/* Takes back an empty table; its `touched` leaves were set at last. */
static void heap_pages_give_table(struct heap_leaf **table, size_t touched)
{
    for (int i = 0; i < SPARES && touched <= SPARE_LEAVES_MAX; i++) {
        struct heap_leaf **none = NULL;
        if (atomic_compare_exchange_strong(&spares[i], &none, table))
            return;
    }
    munmap(table, TABLE_SIZE);
}

void heap_pages_free(struct heap_pages *pages)
{
    size_t touched = pages->used_count;
    heap_pages_clear(pages);
    if (pages->leaves)
        heap_pages_give_table(pages->leaves, touched);
    free(pages->used_leaves);
    *pages = (struct heap_pages){0};
}

/* Makes the tables, and room for one more leaf. */
static bool heap_pages_reserve(struct heap_pages *pages)
{
    if (!pages->leaves)
        pages->leaves = heap_pages_take_table();
    if (!pages->leaves)
        return false;
    void *grown = array_grow(pages->used_leaves, pages->used_count, &pages->used_capacity,
                             sizeof *pages->used_leaves);
    if (!grown)
        return false;
    pages->used_leaves = grown;
    return true;
}

/* Returns the slot of the leaf of an index, and lists it as used; NULL if memory ran out. */
static struct heap_leaf **heap_pages_slot_of(struct heap_pages *pages, uint64_t index)
{
    if (!heap_pages_reserve(pages))
        return NULL;
    struct heap_leaf **slot = &pages->leaves[index];
    if (!*slot)
        pages->used_leaves[pages->used_count++] = (uint32_t)index;
    return slot;
}

/* Returns the leaf of an index, made if it is new; NULL if memory ran out for its entry. */
static struct heap_leaf *heap_pages_make_leaf(struct heap_pages *pages, uint64_t index)
{
    struct heap_leaf **slot = heap_pages_slot_of(pages, index);
    if (!slot || *slot)
        return slot ? *slot : NULL;
    if (pages->allocated < HEAP_LEAVES_MAX)
        *slot = calloc(1, sizeof **slot);
    if (*slot)
        pages->allocated++;
    else
        *slot = heap_pages_filled_leaf();
    return *slot;
}

/* Makes all of a leaf heap. Returns false if memory ran out for its entry. */
static bool heap_pages_fill_leaf(struct heap_pages *pages, uint64_t index)
{
    struct heap_leaf **slot = heap_pages_slot_of(pages, index);
    if (!slot)
        return false;
    if (*slot && *slot != &full_leaf) {
        free(*slot);
        pages->allocated--;
    }
    *slot = heap_pages_filled_leaf();
    return true;
}

/* Sets the heap pages `first` to `last` of one leaf. Returns false if memory ran out. */
static bool set_pages(struct heap_pages *pages, uint64_t first, uint64_t last)
{
    struct heap_leaf *leaf = heap_pages_make_leaf(pages, first >> INDEX_BITS);
    for (uint64_t page = first; leaf && leaf != &full_leaf && page <= last; page++)
        leaf->bits[page / 64 % HEAP_LEAF_WORDS] |= UINT64_C(1) << page % 64;
    return leaf != NULL;
}

void heap_pages_add_new(struct heap_pages *pages, uint64_t address, uint64_t last)
{
    if (last < address || last >> HEAP_ADDRESS_BITS != 0)
        return;
    uint64_t first_page = address >> HEAP_PAGE_BITS, last_page = last >> HEAP_PAGE_BITS;
    for (uint64_t index = address >> HEAP_LEAF_BITS; index <= last >> HEAP_LEAF_BITS; index++) {
        uint64_t begin = index << INDEX_BITS, end = (index + 1) << INDEX_BITS;
        bool is_whole = first_page <= begin && last_page >= end - 1;
        if (is_whole ? !heap_pages_fill_leaf(pages, index)
                     : !set_pages(pages, first_page > begin ? first_page : begin,
                                  last_page < end ? last_page : end - 1))
            return;
    }
    uint64_t low = first_page << HEAP_PAGE_BITS, high = (last_page + 1) << HEAP_PAGE_BITS;
    pages->low = pages->high == 0 || low < pages->low ? low : pages->low;
    pages->high = high > pages->high ? high : pages->high;
}

void heap_pages_join(struct heap_pages *pages, const struct heap_pages *added)
{
    for (size_t i = 0; i < added->used_count; i++) {
        const struct heap_leaf *source = added->leaves[added->used_leaves[i]];
        if (source == &full_leaf) {
            heap_pages_fill_leaf(pages, added->used_leaves[i]);
            continue;
        }
        struct heap_leaf *leaf = heap_pages_make_leaf(pages, added->used_leaves[i]);
        for (size_t word = 0; leaf && leaf != &full_leaf && word < HEAP_LEAF_WORDS; word++)
            leaf->bits[word] |= source->bits[word];
    }
    if (added->high == 0)
        return;
    pages->low = pages->high == 0 || added->low < pages->low ? added->low : pages->low;
    pages->high = added->high > pages->high ? added->high : pages->high;
}

bool heap_pages_touch(const struct heap_pages *pages, uint64_t begin, uint64_t end)
{
    begin = begin > pages->low ? begin : pages->low;
    end = end < pages->high ? end : pages->high;
    for (uint64_t address = begin >> HEAP_PAGE_BITS << HEAP_PAGE_BITS; address < end;) {
        if (!pages->leaves[address >> HEAP_LEAF_BITS]) {
            address = ((address >> HEAP_LEAF_BITS) + 1) << HEAP_LEAF_BITS;
            continue;
        }
        if (heap_pages_has(pages, address))
            return true;
        address += HEAP_PAGE_SIZE;
    }
    return false;
}
