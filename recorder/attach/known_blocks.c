/* SPDX-License-Identifier: MIT */
#include "attach/known_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "attach/known_parts.h"

/* An arena: its parts before and behind the lists that glibc_arena_find() finds. */
enum {
    ARENA_TOP = 96,
    ARENA_NEXT = 112 + 127 * 16 + 16,
    ARENA_SIZE = ARENA_NEXT + 5 * 8,
    ARENAS_MAX = 4096,
    HEAPS_MAX = 1 << 16,
    CHUNK_ALIGNMENT = 16,
    CHUNK_HEAD = 16,
    CHUNK_MIN = 32,
    CHUNK_MAPPED = 2,
    CHUNK_BITS = 7,
};

#define HEAP_ALIGNMENT_MAX (UINT64_C(1) << 34)

unsigned known_blocks_version(const char *strings, size_t size)
{
    static const char prefix[] = "GLIBC_2.";
    unsigned newest = 0;
    const char *end = strings + size;
    while ((strings = memmem(strings, (size_t)(end - strings), prefix, sizeof prefix - 1))) {
        unsigned version = 0;
        strings += sizeof prefix - 1;
        for (; strings < end && *strings >= '0' && *strings <= '9' && version < 1000; strings++)
            version = version * 10 + (unsigned)(*strings - '0');
        newest = version > newest ? version : newest;
    }
    return newest;
}

/* ---- Arenas other than the main one ---- */

/* The words that a heap begins with. */
struct heap_head {
    uint64_t arena, before, size, writable;
};

/* Finds the heap of an arena that holds an address: it is aligned to its greatest size
 * (unknown). */
static bool known_heap(const struct known_search *search, uint64_t arena, uint64_t address,
                       uint64_t *heap, struct heap_head *head)
{
    for (uint64_t size = GLIBC_HEAP_ALIGNMENT; size <= HEAP_ALIGNMENT_MAX; size *= 2) {
        struct memory_span span;
        *heap = address & -size;
        if (*heap != 0 && glibc_heap_find(search->memory, *heap, &span) &&
            memory_read(search->memory, *heap, head, sizeof *head) && head->arena == arena &&
            head->size <= head->writable && address - *heap < head->size)
            return true;
    }
    return false;
}

/* Adds the blocks of an arena that begins within its first heap, whose heaps are linked. */
static bool known_arena(struct known_search *search, uint64_t arena)
{
    uint64_t top, heap, stopped;
    struct heap_head head;
    uint64_t head_size = arena % GLIBC_HEAP_ALIGNMENT;
    if (!memory_read(search->memory, arena + ARENA_TOP, &top, sizeof top) ||
        !known_heap(search, arena, top, &heap, &head))
        return false;
    for (int i = 0; i < HEAPS_MAX && !search->has_failed; i++) {
        uint64_t begin = heap + head_size == arena ? arena + ARENA_SIZE : heap + head_size;
        begin = (begin + CHUNK_ALIGNMENT - 1) & -(uint64_t)CHUNK_ALIGNMENT;
        if (!known_chunks(search, begin, top, heap + head.size, &stopped))
            return false;
        if (head.before == 0)
            return heap + head_size == arena;
        top = 0; /* the others end with chunks that mark an end */
        uint64_t before = head.before;
        if (!known_heap(search, arena, before, &heap, &head) || heap != before)
            return false;
    }
    return false;
}

/* Adds the blocks of all arenas; these are linked in a circle. */
static void known_arenas(struct known_search *search, uint64_t main_arena)
{
    uint64_t arena = main_arena;
    for (int i = 0; i < ARENAS_MAX && !search->has_failed; i++) {
        int32_t mutex;
        if (!memory_read(search->memory, arena, &mutex, sizeof mutex))
            break;
        search->blocks->is_busy |= mutex != 0;
        if (arena != main_arena && !known_arena(search, arena))
            known_incomplete(search, "the chunks of an arena do not fit together");
        known_bins(search, arena);
        if (!memory_read(search->memory, arena + ARENA_NEXT, &arena, sizeof arena))
            break;
        if (arena == main_arena)
            return;
    }
    known_incomplete(search, "the list of arenas is damaged");
}

/* ---- The main arena ---- */

/* Parameters of the allocator, in the library's data. */
struct parameters {
    uint64_t begin;  /* where the heap begins; 0 if it has none */
    uint64_t mapped; /* bytes of blocks with mappings of their own; UINT64_MAX: not known */
};

/* Returns the memory of the program break, perhaps several mappings with different properties;
 * nothing if there is none. */
static struct memory_span known_break(const struct maps *maps)
{
    struct memory_span span = {0, 0};
    for (size_t i = 0; i < maps->count; i++) {
        const struct mapping *mapping = &maps->items[i];
        if (strcmp(mapping->name, "[heap]") != 0)
            continue;
        if (span.end == 0)
            span.begin = mapping->begin;
        else if (mapping->begin != span.end)
            break;
        span.end = mapping->end;
    }
    return span;
}

/*
 * Finds the parameters: the beginning of the heap is followed by the number of sizes that threads
 * cache, the largest of these, and how many of each. Sizes of mapped blocks, now and at most, stand
 * before it.
 */
static struct parameters known_parameters(const struct known_search *search,
                                          struct memory_span data)
{
    enum {
        DATA_MAX = 1 << 20,
        SIZES = 64,
        SIZE_MIN = 24,
        SIZE_MAX_CACHED = 1032,
        NUMBER_MAX = 65535
    };
    struct memory_span heap = known_break(search->maps);
    struct parameters parameters = {heap.begin, UINT64_MAX};
    size_t count = (data.end - data.begin) / 8;
    uint64_t *words = data.end - data.begin <= DATA_MAX ? malloc(count * 8) : NULL;
    if (words && memory_read(search->memory, data.begin, words, count * 8)) {
        for (size_t i = 2; i + 3 < count; i++) {
            bool is_heap = words[i] == 0 || (words[i] >= heap.begin && words[i] < heap.end);
            if (!is_heap || words[i + 1] == 0 || words[i + 1] > SIZES || words[i + 2] < SIZE_MIN ||
                words[i + 2] > SIZE_MAX_CACHED || words[i + 3] > NUMBER_MAX ||
                words[i - 2] > words[i - 1] || words[i - 2] % MEMORY_PAGE != 0)
                continue;
            parameters = (struct parameters){words[i], words[i - 2]};
            break;
        }
    }
    free(words);
    return parameters;
}

/* Whether memory of a mapping may be the allocator's. */
static bool known_may_be_mapped(const struct mapping *mapping)
{
    return mapping->is_readable && mapping->is_writable && !mapping->is_shared &&
           !mapping->is_file &&
           (mapping->name[0] == '\0' || strncmp(mapping->name, "[anon", 5) == 0);
}

/* Finds the next adjacent mappings, from an index on, that may be the allocator's. */
static bool known_next_range(const struct maps *maps, size_t *index, struct memory_span *range)
{
    while (*index < maps->count && !known_may_be_mapped(&maps->items[*index]))
        ++*index;
    if (*index == maps->count)
        return false;
    *range = (struct memory_span){maps->items[*index].begin, maps->items[*index].end};
    while (++*index < maps->count && known_may_be_mapped(&maps->items[*index]) &&
           maps->items[*index].begin == range->end)
        range->end = maps->items[*index].end;
    return true;
}

/* Adds the main arena's mappings, made because it could not move the program break. Returns whether
 * the last chunk was among it. */
static bool known_segments(struct known_search *search, const struct glibc_arena *arena)
{
    bool is_whole = false;
    struct memory_span range, segment;
    for (size_t i = 0; known_next_range(search->maps, &i, &range);) {
        for (uint64_t page = range.begin; page < range.end; page += MEMORY_PAGE) {
            uint64_t words[2], stopped;
            if (!known_read(search, page, range.end, words))
                break;
            if (!glibc_segment_find(search->memory, page, words, range.end, arena, &segment))
                continue;
            if (!known_chunks(search, segment.begin, arena->top, segment.end, &stopped))
                known_incomplete(search, "the chunks of the main arena do not fit together");
            is_whole |= arena->top >= segment.begin && arena->top < segment.end;
            page = segment.end - MEMORY_PAGE;
        }
    }
    return is_whole;
}

/* Adds the blocks of the main arena: from the program break's first value to the last chunk. The
 * program may have moved the break itself: then chunks mark an end, and others follow behind a gap,
 * where a page begins. */
static void known_main_arena(struct known_search *search, const struct glibc_arena *arena,
                             uint64_t begin)
{
    struct memory_span heap = known_break(search->maps);
    uint64_t first = (begin + CHUNK_ALIGNMENT - 1) & -(uint64_t)CHUNK_ALIGNMENT;
    uint64_t chunk = first, stopped;
    if (arena->top >= arena->lists.begin && arena->top < arena->lists.end)
        return; /* nothing was allocated there yet */
    while (begin != 0 && chunk < heap.end) {
        size_t before = search->blocks->count, caches = search->caches.count;
        bool fits = known_chunks(search, chunk, arena->top, heap.end, &stopped);
        if (fits && stopped == arena->top)
            return;
        if (!fits && chunk == first)
            break;
        if (!fits) {
            search->blocks->count = before;
            search->caches.count = caches;
            stopped = chunk;
        }
        chunk = stopped / MEMORY_PAGE * MEMORY_PAGE + MEMORY_PAGE;
    }
    if (!known_segments(search, arena))
        known_incomplete(search, "the chunks of the main arena do not fit together");
}

/* ---- Mapped blocks ---- */

/* Returns how many bytes of an aligned block, which begins `at` bytes behind its mapping, the
 * mapping has, by the head of the block: it says how much later it begins. 0 if it is none. */
static uint64_t known_aligned_size(const uint64_t head[2], uint64_t at, uint64_t room)
{
    uint64_t size = head[1] & ~(uint64_t)CHUNK_BITS;
    bool is_head = head[0] == at && (head[1] & CHUNK_BITS) == CHUNK_MAPPED && size > CHUNK_HEAD;
    return is_head && size <= room && at <= room - size && (at + size) % MEMORY_PAGE == 0
               ? at + size
               : 0;
}

/* Tries whether the aligned block of a mapping begins `at` bytes behind it. Returns its bytes or 0.
 */
static uint64_t known_aligned_at(struct known_search *search, struct memory_span range, uint64_t at)
{
    uint64_t words[2], room = range.end - range.begin;
    return at < room && memory_read(search->memory, range.begin + at, words, sizeof words)
               ? known_aligned_size(words, at, room)
               : 0;
}

/* Finds the aligned block of a mapping. The beginning of the mapping may have an earlier size: only
 * the head of the block changes when it is reallocated; and the address need not be aligned any
 * more then; a thorough search allows for it. */
static uint64_t known_aligned(struct known_search *search, struct memory_span range, uint64_t size,
                              bool is_thorough, uint64_t *at)
{
    uint64_t words[MEMORY_PAGE / 8], found, room = range.end - range.begin;
    if (!memory_read(search->memory, range.begin, words, sizeof words))
        return 0;
    for (*at = CHUNK_ALIGNMENT; *at < MEMORY_PAGE; *at += CHUNK_ALIGNMENT)
        if ((found = known_aligned_size(&words[*at / 8], *at, room)) != 0)
            return found;
    for (uint64_t alignment = MEMORY_PAGE; alignment != 0 && alignment < size; alignment *= 2) {
        uint64_t block = (range.begin + CHUNK_HEAD + alignment - 1) & -alignment;
        for (int i = 0; i < 2; i++, block += alignment)
            if ((found = known_aligned_at(search, range, *at = block - CHUNK_HEAD - range.begin)) !=
                0)
                return found;
    }
    for (*at = MEMORY_PAGE - CHUNK_HEAD; is_thorough && *at < size; *at += MEMORY_PAGE)
        if ((found = known_aligned_at(search, range, *at)) != 0)
            return found;
    *at = 0;
    return 0;
}

/* Adds the block of a mapping that begins with the range; returns its bytes, 0 if there is none. */
static uint64_t known_add_mapped(struct known_search *search, struct memory_span range,
                                 bool is_thorough)
{
    uint64_t words[2], at = 0;
    if (!memory_read(search->memory, range.begin, words, sizeof words))
        return 0;
    uint64_t size = glibc_mapped_size(words);
    if (size == 0)
        return 0;
    uint64_t aligned = known_aligned(search, range, size, is_thorough, &at);
    size = aligned != 0 ? aligned : size;
    if (size > range.end - range.begin)
        return 0;
    known_add_block(search, range.begin + at + CHUNK_HEAD, size - at - CHUNK_HEAD);
    return size;
}

/* Adds the mapped blocks that begin a range, or follow one another there; with `is_thorough` those
 * anywhere. Returns their bytes. */
static uint64_t known_mapped_in(struct known_search *search, struct memory_span range,
                                bool is_thorough)
{
    struct memory_span spans[MEMORY_SPANS];
    uint64_t begin = range.begin, found = 0, behind = 0, size;
    while (!is_thorough && range.begin < range.end &&
           (size = known_add_mapped(search, range, false)) != 0) {
        range.begin += size;
        found += size;
    }
    while (is_thorough && begin < range.end && !search->has_failed) {
        size_t count = memory_touched(search->memory, &begin, range.end, spans);
        for (size_t i = 0; i < count; i++) {
            uint64_t page = spans[i].begin > behind ? spans[i].begin : behind;
            while (page < spans[i].end) {
                size = known_add_mapped(search, (struct memory_span){page, range.end}, true);
                found += size;
                behind = page += size != 0 ? size : MEMORY_PAGE;
            }
        }
    }
    return found;
}

/* Whether an arena's heap begins with the mapping: words in it are no heads. */
static bool known_is_heap(const struct known_search *search, uint64_t address)
{
    struct memory_span span;
    return address % GLIBC_HEAP_ALIGNMENT == 0 && glibc_heap_find(search->memory, address, &span);
}

void known_mapped(struct known_search *search, uint64_t expected)
{
    size_t before = search->blocks->count;
    for (int is_thorough = 0; is_thorough <= 1; is_thorough++) {
        struct memory_span range;
        uint64_t found = 0;
        search->blocks->count = before;
        for (size_t i = 0; known_next_range(search->maps, &i, &range);)
            if (!known_is_heap(search, range.begin))
                found += known_mapped_in(search, range, is_thorough != 0);
        if (found == expected)
            return;
    }
    known_incomplete(search, "not all large blocks were found");
}

/* ---- All together ---- */

static int known_compare_blocks(const void *a, const void *b)
{
    uint64_t left = ((const struct known_block *)a)->address;
    uint64_t right = ((const struct known_block *)b)->address;
    return (left > right) - (left < right);
}

/* Sorts the blocks and removes those that are not in use. */
static void known_remove_unused(struct known_search *search)
{
    struct known_blocks *blocks = search->blocks;
    struct known_addresses *unused = &search->unused;
    size_t kept = 0, next = 0;
    if (blocks->count > 0)
        qsort(blocks->items, blocks->count, sizeof *blocks->items, known_compare_blocks);
    known_sort(unused);
    for (size_t i = 0; i < blocks->count; i++) {
        struct known_block block = blocks->items[i];
        if (kept > 0 && blocks->items[kept - 1].address == block.address)
            continue;
        while (next < unused->count && unused->items[next] < block.address)
            next++;
        if (next < unused->count && unused->items[next] == block.address) {
            blocks->cached += block.size + 8;
            continue;
        }
        blocks->bytes += block.size;
        blocks->items[kept++] = block;
    }
    blocks->count = kept;
}

/* Returns how many blocks the program's memory has room for. */
static size_t known_most(const struct maps *maps)
{
    struct memory_span range = known_break(maps);
    uint64_t bytes = range.end - range.begin;
    for (size_t i = 0; known_next_range(maps, &i, &range);)
        bytes += range.end - range.begin;
    return bytes / CHUNK_MIN + 1;
}

bool known_blocks_find(struct memory *memory, const struct maps *maps, struct memory_span data,
                       unsigned version, struct known_threads threads, struct known_blocks *blocks)
{
    struct glibc_arena arena;
    *blocks = (struct known_blocks){0};
    if (version < KNOWN_BLOCKS_OLDEST || version > KNOWN_BLOCKS_NEWEST) {
        blocks->reason = "this version of the C library is not known";
        return true;
    }
    if (data.begin % 8 != 0 || data.begin > data.end || !glibc_arena_find(memory, data, &arena)) {
        blocks->reason = "the C library's allocator was not found";
        return true;
    }
    struct known_search *search = calloc(1, sizeof *search);
    if (!search)
        return false;
    search->memory = memory;
    search->maps = maps;
    search->version = version;
    search->threads = threads;
    search->blocks = blocks;
    search->most = known_most(maps);
    struct parameters parameters = known_parameters(search, data);
    known_main_arena(search, &arena, parameters.begin);
    known_arenas(search, arena.lists.begin);
    known_caches(search);
    known_mapped(search, parameters.mapped);
    known_remove_unused(search);
    bool is_done = !search->is_out_of_memory;
    free(search->caches.items);
    free(search->filled.items);
    free(search->empty.items);
    free(search->unused.items);
    free(search);
    if (!is_done)
        known_blocks_free(blocks);
    return is_done;
}

void known_blocks_free(struct known_blocks *blocks)
{
    free(blocks->items);
    *blocks = (struct known_blocks){0};
}
