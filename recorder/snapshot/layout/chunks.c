/* SPDX-License-Identifier: MIT */
/* Chunks of the GNU C library's allocator: the memory of blocks, live or free, one behind the
 * other.
 */
#include "snapshot/layout/glibc.h"

/* The head of a chunk: its size, and bits. */
enum {
    CHUNK_PREVIOUS_IN_USE = 1,
    CHUNK_MAPPED = 2,
    CHUNK_OF_OTHER_ARENA = 4,
    CHUNK_BITS = 7,
    CHUNK_ALIGNMENT = 16,
    CHUNK_MIN = 32,
    CHUNK_END = 16 /* size of each of the two that mark the end */
};

static bool ends_page(uint64_t address)
{
    return address % MEMORY_PAGE == 0;
}

/* Chunks that are looked at one after the other, and the page that was read last of them. */
struct chunk_reader {
    const struct memory *memory;
    uint64_t page;
    uint64_t words[MEMORY_PAGE / 8];
};

/* Reads the two words that a chunk begins with: the size of the one before, if that is free, and
 * its own head. */
static bool chunk_read(struct chunk_reader *reader, uint64_t chunk, uint64_t *before,
                       uint64_t *head)
{
    uint64_t page = chunk / MEMORY_PAGE * MEMORY_PAGE;
    if (chunk % CHUNK_ALIGNMENT != 0)
        return false;
    if (page != reader->page) {
        reader->page = 0;
        if (!memory_read(reader->memory, page, reader->words, sizeof reader->words))
            return false;
        reader->page = page;
    }
    *before = reader->words[(chunk - page) / 8];
    *head = reader->words[(chunk - page) / 8 + 1];
    return true;
}

/* Whether a chunk and the one before it say the same of their sizes. */
static bool chunk_fits(uint64_t before, uint64_t head, uint64_t size_before)
{
    bool is_of_main_arena = (head & (CHUNK_MAPPED | CHUNK_OF_OTHER_ARENA)) == 0;
    return is_of_main_arena && ((head & CHUNK_PREVIOUS_IN_USE) != 0 || before == size_before);
}

bool glibc_segment_find(const struct memory *memory, uint64_t begin, const uint64_t words[2],
                        uint64_t end, const struct glibc_arena *arena, struct memory_span *segment)
{
    struct chunk_reader reader = {.memory = memory};
    uint64_t before = words[0], head = words[1], chunk = begin, size = 0;
    while (chunk_fits(before, head, size)) {
        size = head & ~(uint64_t)CHUNK_BITS;
        uint64_t next = chunk + size;
        bool is_end = size == CHUNK_END && chunk != begin;
        if (size % CHUNK_ALIGNMENT != 0 || (size < CHUNK_MIN && !is_end) || size > end - chunk)
            return false;
        *segment = (struct memory_span){begin, is_end ? next + CHUNK_END : next};
        if (chunk == arena->top)
            return ends_page(next);
        if (next >= end || !chunk_read(&reader, next, &before, &head))
            return false;
        if (is_end)
            return ends_page(segment->end) && head == (CHUNK_END | CHUNK_PREVIOUS_IN_USE);
        chunk = next;
    }
    return false;
}

uint64_t glibc_mapped_size(const uint64_t words[2])
{
    uint64_t size = words[1] & ~(uint64_t)CHUNK_BITS;
    bool is_mapped = words[0] == 0 && (words[1] & CHUNK_BITS) == CHUNK_MAPPED && ends_page(size);
    return is_mapped ? size : 0;
}

/* Whether a chunk of an arena may begin where a mapped one is expected: the arena may have mapped
 * memory there. */
static bool chunk_may_be_of_arena(const struct memory *memory, uint64_t chunk, uint64_t head,
                                  uint64_t end)
{
    uint64_t next[2], size = head & ~(uint64_t)CHUNK_BITS;
    return head % CHUNK_ALIGNMENT == CHUNK_PREVIOUS_IN_USE && size >= CHUNK_MIN &&
           end - chunk > CHUNK_END && size <= end - chunk - CHUNK_END &&
           memory_read(memory, chunk + size, next, sizeof next) &&
           (next[1] & (CHUNK_ALIGNMENT - 1) & ~(uint64_t)CHUNK_PREVIOUS_IN_USE) == 0;
}

enum glibc_mapped glibc_mapped_look(const struct memory *memory, uint64_t chunk, uint64_t end,
                                    uint64_t *head)
{
    uint64_t words[2];
    if (end - chunk < MEMORY_PAGE || !memory_read(memory, chunk, words, sizeof words))
        return GLIBC_MAPPED_UNKNOWN;
    *head = words[1];
    uint64_t size = *head & ~(uint64_t)CHUNK_BITS;
    if ((*head & (CHUNK_ALIGNMENT - 1)) == CHUNK_MAPPED && size != 0 && ends_page(size) &&
        size <= end - chunk)
        return words[0] == 0 ? GLIBC_MAPPED_BEGIN : GLIBC_MAPPED_RIGHT;
    return chunk_may_be_of_arena(memory, chunk, *head, end) ? GLIBC_MAPPED_UNKNOWN
                                                            : GLIBC_MAPPED_WRONG;
}

/* A walk over the chunks of a part of an arena. */
struct chunk_walk {
    const struct glibc_chunks *chunks;
    struct chunk_reader reader;
    uint64_t chunk;             /* the present one */
    uint64_t before, head;      /* its words */
    uint64_t size, size_before; /* of it, and of the one before; 0 for the first one */
};

/* Whether the allocator has marked the end of the part here: with two chunks that are too small for
 * a block, of which the second one has no size in an arena other than the main one. */
static bool walk_is_at_end(struct chunk_walk *walk)
{
    uint64_t left = walk->chunks->end - walk->chunk, before, next;
    if (!walk->chunks->is_main)
        return walk->size <= CHUNK_END && left <= 2 * CHUNK_END;
    return walk->size == CHUNK_END && left > CHUNK_END &&
           chunk_read(&walk->reader, walk->chunk + CHUNK_END, &before, &next) &&
           next == (CHUNK_END | CHUNK_PREVIOUS_IN_USE);
}

/* Whether the allocator may have written the head of the chunk. */
static bool walk_may_be_written(const struct chunk_walk *walk)
{
    unsigned wrong = CHUNK_ALIGNMENT / 2 | CHUNK_MAPPED;
    wrong |= walk->chunks->is_main ? CHUNK_OF_OTHER_ARENA : 0;
    bool is_free_before = (walk->head & CHUNK_PREVIOUS_IN_USE) == 0;
    bool may_be_free = walk->chunk != walk->chunks->top && walk->size_before != 0;
    return (walk->head & wrong) == 0 && walk->size >= CHUNK_MIN &&
           walk->size <= walk->chunks->end - walk->chunk &&
           (!is_free_before || (may_be_free && walk->before == walk->size_before));
}

/* Whether the chunk leads to the last one of the arena, or is that, and ends with a page. */
static bool walk_leads_on(const struct chunk_walk *walk)
{
    uint64_t top = walk->chunks->top;
    if (walk->chunk == top)
        return ends_page(walk->chunk + walk->size);
    return walk->chunk > top || walk->size <= top - walk->chunk;
}

enum glibc_chunks_end glibc_chunks_list(const struct memory *memory,
                                        const struct glibc_chunks *chunks,
                                        glibc_header_function *found, void *context)
{
    struct chunk_walk walk = {
        .chunks = chunks, .reader = {.memory = memory}, .chunk = chunks->begin};
    for (; walk.chunk < chunks->end; walk.chunk += walk.size) {
        if (chunks->end - walk.chunk < CHUNK_END ||
            !chunk_read(&walk.reader, walk.chunk, &walk.before, &walk.head))
            return GLIBC_CHUNKS_UNKNOWN;
        walk.size_before = walk.size;
        walk.size = walk.head & ~(uint64_t)(CHUNK_ALIGNMENT - 1);
        if (walk_is_at_end(&walk))
            return GLIBC_CHUNKS_WHOLE;
        if (!found(context, walk.chunk + 8, walk.head))
            return GLIBC_CHUNKS_UNKNOWN;
        if (!walk_may_be_written(&walk))
            return GLIBC_CHUNKS_BROKEN;
        if (!walk_leads_on(&walk))
            return GLIBC_CHUNKS_DERIVED;
        if (walk.chunk == chunks->top)
            return GLIBC_CHUNKS_WHOLE;
    }
    return GLIBC_CHUNKS_WHOLE;
}

/* Whether chunks begin with one that the allocator has given away, as the first one of an arena is.
 * In an arena other than the main one it is free once the thread has ended that began the arena. */
static bool chunks_begin(const struct memory *memory, const struct glibc_chunks *chunks)
{
    uint64_t words[2];
    unsigned may_be = chunks->is_main ? 0 : CHUNK_OF_OTHER_ARENA;
    return chunks->begin < chunks->end && memory_read(memory, chunks->begin, words, sizeof words) &&
           (words[1] & (CHUNK_ALIGNMENT - 1) & ~(uint64_t)may_be) == CHUNK_PREVIOUS_IN_USE &&
           words[1] >= CHUNK_MIN && words[1] < chunks->end - chunks->begin;
}

bool glibc_chunks_of_break(const struct memory *memory, struct memory_span span,
                           const struct glibc_arena *arena, struct glibc_chunks *chunks)
{
    *chunks = (struct glibc_chunks){.begin = span.begin,
                                    .end = span.end,
                                    .top = arena->top,
                                    .arena = arena->lists.begin,
                                    .is_main = true};
    return arena->top != 0 && chunks_begin(memory, chunks);
}

bool glibc_chunks_of_heap(const struct memory *memory, uint64_t heap, struct glibc_chunks *chunks)
{
    uint64_t head[3]; /* the arena, the heap before, the size in use */
    struct memory_span span;
    if (!glibc_heap_find(memory, heap, &span) || !memory_read(memory, heap, head, sizeof head) ||
        !memory_read(memory, head[0] + GLIBC_ARENA_TOP, &chunks->top, sizeof chunks->top))
        return false;
    uint64_t within = head[0] % GLIBC_HEAP_ALIGNMENT, begin = heap + within;
    if (head[0] == begin)
        begin += GLIBC_ARENA_SIZE;
    chunks->begin = (begin + CHUNK_ALIGNMENT - 1) / CHUNK_ALIGNMENT * CHUNK_ALIGNMENT;
    chunks->end = heap + head[2];
    chunks->arena = head[0];
    chunks->is_main = false;
    return chunks_begin(memory, chunks);
}
