/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "attach/known_parts.h"

/* Head of a chunk: the size of the one before, if that is free, then its own with bits. */
enum {
    CHUNK_HEAD = 16,
    CHUNK_PREVIOUS_IN_USE = 1,
    CHUNK_MAPPED = 2,
    CHUNK_BITS = 7,
    CHUNK_ALIGNMENT = 16,
    CHUNK_MIN = 32,
    CHUNK_END = 16,
};

/* The offset of the fast bins in an arena, and their number. */
enum { ARENA_BINS = 16, BINS = 10 };

/* A thread's cache: the numbers of chunks of each size, and the first of each. */
enum {
    CACHE_BINS = 64,
    CACHE_CHUNK = 0x290,
    CACHE_SIZE = CACHE_BINS * 2 + CACHE_BINS * 8,
    CACHE_MAX = 65535,
};

void known_incomplete(struct known_search *search, const char *reason)
{
    if (!search->blocks->reason)
        search->blocks->reason = reason;
}

bool known_read(struct known_search *search, uint64_t address, uint64_t end, uint64_t words[2])
{
    enum { SIZE = 2 * sizeof *words };
    if (address > UINT64_MAX - KNOWN_WINDOW)
        return false;
    uint64_t at = address - search->window_begin;
    if (at >= search->window_size || search->window_size - at < SIZE) {
        uint64_t room = end > address ? end - address : 0;
        search->window_begin = address;
        search->window_size = room < KNOWN_WINDOW ? room : KNOWN_WINDOW;
        at = 0;
        if (search->window_size < SIZE ||
            !memory_read(search->memory, address, search->window, search->window_size)) {
            search->window_size = 0;
            return memory_read(search->memory, address, words, SIZE);
        }
    }
    memcpy(words, search->window + at, SIZE);
    return true;
}

/* Makes room for one more in an array. Only a structure that contradicts itself, such as a circle,
 * has more than fit into the memory. */
static void *known_grow(struct known_search *search, void *array, size_t count, size_t *capacity,
                        size_t size)
{
    if (count >= search->most) {
        known_incomplete(search, "the allocator's structures are damaged");
        search->has_failed = true;
        return NULL;
    }
    void *grown = array_grow(array, count, capacity, size);
    if (!grown)
        search->has_failed = search->is_out_of_memory = true;
    return grown;
}

static void known_add_address(struct known_search *search, struct known_addresses *list,
                              uint64_t address)
{
    uint64_t *grown = known_grow(search, list->items, list->count, &list->capacity, sizeof *grown);
    if (!grown)
        return;
    list->items = grown;
    list->items[list->count++] = address;
}

static int known_compare_addresses(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

void known_sort(struct known_addresses *list)
{
    if (list->count > 0)
        qsort(list->items, list->count, sizeof *list->items, known_compare_addresses);
}

static bool known_has(const struct known_addresses *sorted, uint64_t address)
{
    return sorted->count > 0 &&
           bsearch(&address, sorted->items, sorted->count, sizeof address, known_compare_addresses);
}

void known_add_block(struct known_search *search, uint64_t address, uint64_t size)
{
    struct known_blocks *blocks = search->blocks;
    struct known_block *grown =
        known_grow(search, blocks->items, blocks->count, &search->capacity, sizeof *grown);
    if (!grown)
        return;
    blocks->items = grown;
    blocks->items[blocks->count++] = (struct known_block){address, size};
}

static void known_add_chunk(struct known_search *search, uint64_t chunk, uint64_t size)
{
    known_add_block(search, chunk + CHUNK_HEAD, size - 8);
    if (size == CACHE_CHUNK || size == CACHE_CHUNK + CHUNK_ALIGNMENT)
        known_add_address(search, &search->caches, chunk + CHUNK_HEAD);
}

bool known_chunks(struct known_search *search, uint64_t begin, uint64_t top, uint64_t end,
                  uint64_t *stopped)
{
    uint64_t chunk = begin, before = 0, words[2];
    bool is_first = true;
    while (!search->has_failed) {
        *stopped = chunk;
        if (chunk % CHUNK_ALIGNMENT != 0 || chunk >= end || !known_read(search, chunk, end, words))
            return false;
        uint64_t size = words[1] & ~(uint64_t)CHUNK_BITS;
        bool is_used = (words[1] & CHUNK_PREVIOUS_IN_USE) != 0;
        if ((words[1] & CHUNK_MAPPED) != 0 || (!is_used && (is_first || words[0] != before)))
            return false;
        if (size == 0 && is_used && before == CHUNK_MIN)
            return true; /* the one before marks the end: there was no room for two */
        if (is_used && !is_first)
            known_add_chunk(search, chunk - before, before);
        if (chunk == top || size == CHUNK_END)
            return true;
        if (size < CHUNK_MIN || size % CHUNK_ALIGNMENT != 0 || size > end - chunk)
            return false;
        is_first = false;
        before = size;
        chunk += size;
    }
    return false;
}

/* Reads a link of a list of free chunks. From version 2.32 on it is mixed with its own address. */
static bool known_link(const struct known_search *search, uint64_t at, uint64_t *link)
{
    uint64_t word;
    if (!memory_read(search->memory, at, &word, sizeof word))
        return false;
    *link = search->version >= 32 ? word ^ at >> 12 : word;
    return true;
}

void known_bins(struct known_search *search, uint64_t arena)
{
    uint64_t heads[BINS];
    if (!memory_read(search->memory, arena + ARENA_BINS, heads, sizeof heads)) {
        known_incomplete(search, "an arena cannot be read");
        return;
    }
    for (size_t i = 0; i < BINS; i++) {
        size_t left = search->blocks->count + 1; /* more chunks than there are are a circle */
        uint64_t chunk = heads[i];
        for (; chunk != 0 && left > 0 && !search->has_failed; left--) {
            known_add_address(search, &search->unused, chunk + CHUNK_HEAD);
            if (chunk % CHUNK_ALIGNMENT != 0 || !known_link(search, chunk + CHUNK_HEAD, &chunk))
                break;
        }
        if (chunk != 0)
            known_incomplete(search, "a list of free chunks is damaged");
    }
}

/* Follows the chunks of one size in a cache. The first one may be there before it is counted, or
 * be counted when it is gone: a thread may be about to take or to put it. Returns whether there
 * are as many as the cache says, give or take that one. */
static bool known_cache_bin(struct known_search *search, uint64_t first, unsigned count,
                            unsigned *inexact)
{
    size_t before = search->unused.count;
    uint64_t block = first;
    unsigned found = 0;
    for (; block != 0 && found <= count && !search->has_failed; found++) {
        if (block % CHUNK_ALIGNMENT != 0)
            break;
        known_add_address(search, &search->unused, block);
        if (!known_link(search, block, &block))
            return false;
    }
    *inexact += found != count;
    if (block == 0 && found + 1 >= count && *inexact <= 1)
        return true;
    search->unused.count = before;
    return false;
}

/* Tries a block as a thread's cache. An empty cache looks like a block that the program has
 * cleared. */
static void known_cache(struct known_search *search, uint64_t address)
{
    struct {
        uint16_t counts[CACHE_BINS];
        uint64_t firsts[CACHE_BINS];
    } cache;
    size_t before = search->unused.count;
    unsigned inexact = 0;
    bool is_cache = memory_read(search->memory, address, &cache, sizeof cache);
    for (size_t i = 0; i < CACHE_BINS && is_cache; i++)
        is_cache = known_cache_bin(search, cache.firsts[i], cache.counts[i], &inexact);
    if (!is_cache) {
        search->unused.count = before;
    } else if (search->unused.count > before) {
        known_add_address(search, &search->unused, address);
        known_add_address(search, &search->filled, address);
    } else {
        known_add_address(search, &search->empty, address);
    }
}

/* Whether the word at a distance below each thread pointer may be the pointer to the thread's
 * cache: a thread that has not allocated has none. */
static bool known_is_pointer(const struct known_search *search, uint64_t distance)
{
    for (size_t i = 0; i < search->threads.count; i++) {
        uint64_t word;
        if (!memory_read(search->memory, search->threads.items[i] - distance, &word, sizeof word) ||
            (word != 0 && !known_has(&search->filled, word) && !known_has(&search->empty, word)))
            return false;
    }
    return true;
}

/* Finds how far below the thread pointers the pointers to threads' caches are, among the
 * thread-local data of the C library. Returns 0 if no cache that is not empty shows it. */
static uint64_t known_pointer_distance(const struct known_search *search)
{
    enum { PAGES_MAX = 16, WORDS = MEMORY_PAGE / 8 };
    uint64_t words[WORDS];
    for (size_t i = 0; i < search->threads.count; i++)
        for (uint64_t page = 1; page <= PAGES_MAX; page++) {
            uint64_t begin = search->threads.items[i] - page * MEMORY_PAGE;
            if (!memory_read(search->memory, begin, words, sizeof words))
                break;
            for (uint64_t k = WORDS; k-- > 0;) {
                uint64_t distance = page * MEMORY_PAGE - k * sizeof *words;
                if (words[k] != 0 && known_has(&search->filled, words[k]) &&
                    known_is_pointer(search, distance))
                    return distance;
            }
        }
    return 0;
}

/* Notes the empty caches. */
static void known_empty_caches(struct known_search *search)
{
    known_sort(&search->filled);
    known_sort(&search->empty);
    uint64_t distance = search->empty.count > 0 ? known_pointer_distance(search) : 0;
    for (size_t i = 0; distance != 0 && i < search->threads.count; i++) {
        uint64_t word;
        if (memory_read(search->memory, search->threads.items[i] - distance, &word, sizeof word) &&
            known_has(&search->empty, word))
            known_add_address(search, &search->unused, word);
    }
}

void known_caches(struct known_search *search)
{
    _Static_assert(CACHE_SIZE == CACHE_CHUNK - CHUNK_HEAD, "a cache fills its chunk");
    for (size_t i = 0; i < search->caches.count && !search->has_failed; i++)
        known_cache(search, search->caches.items[i]);
    if (!search->has_failed)
        known_empty_caches(search);
}
