/* SPDX-License-Identifier: MIT */
#include "snapshot/layout/glibc.h"

#include <stdlib.h>
#include <string.h>

/*
 * The structure of a thread, struct pthread. It begins with the part that the compiler and the
 * linker agree on: a pointer to itself, one to the vector of thread-local storage, and another one
 * to itself.
 */
enum {
    THREAD_SIZE = 0x900,
    THREAD_SELF = 0,
    THREAD_VECTOR = 1,
    THREAD_SELF_AGAIN = 2,
    THREAD_LIST = 0x2c0, /* links of the list that the thread is in */
    THREAD_TID = 0x2d0,
    THREAD_ALIGNMENT = 64,
    THREADS_MAX = 65536,
    TLS_MAX = 64 << 20, /* static storage is not larger than this */
    VECTOR_MAX = 1024,
    THREAD_LISTS_MAX = 16,
};

static bool glibc_is_aligned(uint64_t value)
{
    return value % MEMORY_PAGE == 0;
}

/* Finds the extent of the thread's block of memory in its structure: an address and a size that
 * enclose the structure, at the end. */
static void glibc_find_block(const uint64_t *words, struct glibc_thread *thread)
{
    for (size_t i = THREAD_TID / 8; i + 1 < THREAD_SIZE / 8; i++) {
        uint64_t begin = words[i], end = begin + words[i + 1];
        if (begin == 0 || !glibc_is_aligned(begin) || !glibc_is_aligned(end) ||
            begin >= thread->pointer || end < thread->pointer + THREAD_SIZE - MEMORY_PAGE ||
            end < begin || end - thread->pointer > 4 * MEMORY_PAGE)
            continue;
        thread->block_begin = begin;
        thread->block_end = end;
        return;
    }
}

/* The vector has pairs: the number of the following entries, a generation, then for each module the
 * address of its storage and the pointer to free: NULL for static storage: that lies before the
 * thread's structure. */
static void glibc_find_static_storage(const struct memory *memory, uint64_t vector,
                                      struct glibc_thread *thread)
{
    uint64_t entries[VECTOR_MAX][2], count;
    uint64_t low = thread->pointer > TLS_MAX ? thread->pointer - TLS_MAX : 0;
    low = thread->block_begin != 0 ? thread->block_begin : low;
    if (!memory_read(memory, vector - 16, &count, sizeof count))
        return;
    count = count < VECTOR_MAX ? count : VECTOR_MAX;
    if (!memory_read(memory, vector + 16, entries, count * sizeof *entries))
        return;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = entries[i][0];
        if (entries[i][1] == 0 && address >= low && address < thread->tls_begin)
            thread->tls_begin = address / 8 * 8;
    }
}

bool glibc_thread_read(const struct memory *memory, uint64_t pointer, struct glibc_thread *thread)
{
    uint64_t words[THREAD_SIZE / 8];
    if (pointer % 8 != 0 || !memory_read(memory, pointer, words, sizeof words) ||
        words[THREAD_SELF] != pointer || words[THREAD_SELF_AGAIN] != pointer)
        return false;
    int32_t tid;
    memcpy(&tid, (const char *)words + THREAD_TID, sizeof tid);
    *thread = (struct glibc_thread){
        .pointer = pointer,
        .tid = tid > 0 ? (uint32_t)tid : 0,
        .tls_begin = pointer,
        .tls_end = pointer + THREAD_SIZE,
    };
    glibc_find_block(words, thread);
    if (thread->block_end != 0)
        thread->tls_end = thread->block_end;
    glibc_find_static_storage(memory, words[THREAD_VECTOR], thread);
    return true;
}

/* The address of the head of a list of threads, its first link and its last one. */
struct list {
    uint64_t head, link, last;
};

/* Calls `found` for each thread of a list. */
static void glibc_follow_list(const struct memory *memory, struct list list, bool is_joinable,
                              const struct glibc_calls *calls)
{
    for (int i = 0; i < THREADS_MAX && list.link != list.head; i++) {
        struct glibc_thread thread;
        if (!glibc_thread_read(memory, list.link - THREAD_LIST, &thread))
            return;
        thread.is_joinable = is_joinable;
        calls->found(calls->context, &thread);
        if (!memory_read(memory, list.link, &list.link, sizeof list.link))
            return;
    }
}

/* Whether the main thread is in a list, as the first that was put there: the library has not made
 * its stack. */
static bool glibc_has_main_thread(const struct memory *memory, struct list list)
{
    struct glibc_thread thread;
    return glibc_thread_read(memory, list.last - THREAD_LIST, &thread) && thread.block_begin == 0;
}

/* Reads data that is known to be touched, such as the library's. Returns NULL if it cannot.
 */
static uint64_t *glibc_read_data(const struct memory *memory, struct memory_span data,
                                 size_t *count)
{
    enum { DATA_MAX = 1 << 20 };
    if (data.end - data.begin > DATA_MAX)
        return NULL;
    uint64_t *words = malloc(data.end - data.begin);
    *count = (data.end - data.begin) / 8;
    if (words && memory_read(memory, data.begin, words, *count * 8))
        return words;
    free(words);
    return NULL;
}

/* Finds the heads of lists of threads. Returns how many there are. */
static size_t glibc_find_heads(const struct memory *memory, struct memory_span data,
                               const struct glibc_calls *calls, struct list lists[THREAD_LISTS_MAX])
{
    size_t count, list_count = 0;
    uint64_t *words = glibc_read_data(memory, data, &count);
    for (size_t i = 0; words && i + 1 < count && list_count < THREAD_LISTS_MAX; i++) {
        uint64_t links[2], link = words[i], head = data.begin + i * 8;
        if (link != 0 && (link - THREAD_LIST) % THREAD_ALIGNMENT == 0 &&
            calls->may_be(calls->context, link) && memory_read(memory, link, links, sizeof links) &&
            links[1] == head)
            lists[list_count++] = (struct list){head, link, words[i + 1]};
    }
    free(words);
    return list_count;
}

/* Whether a list lies right beside another one, and that has the main thread. */
static bool glibc_is_beside_main(const struct memory *memory, struct list low, struct list high,
                                 struct list list_of_main)
{
    return high.head == low.head + 16 && glibc_has_main_thread(memory, list_of_main);
}

/* The heads of three lists lie side by side: of threads that run or can be joined, of those (the
 * main thread too) whose stacks the library has not made, and of stacks that are kept. In a static
 * program the first and the last of them look alike. */
void glibc_threads_find(const struct memory *memory, struct memory_span data,
                        const struct glibc_calls *calls)
{
    struct list lists[THREAD_LISTS_MAX];
    size_t count = glibc_find_heads(memory, data, calls, lists);
    for (size_t i = 0; i < count; i++) {
        bool is_joinable =
            (i + 1 < count && glibc_is_beside_main(memory, lists[i], lists[i + 1], lists[i + 1])) ||
            (i > 0 && calls->is_static &&
             glibc_is_beside_main(memory, lists[i - 1], lists[i], lists[i - 1]));
        glibc_follow_list(memory, lists[i], is_joinable, calls);
    }
}

/*
 * The main arena has an array of 127 pairs, the ends of lists. An empty list is a pair that points
 * to itself, as if it were a chunk; that begins two words earlier.
 */
enum {
    LISTS = 127,
    LISTS_SURE = 60, /* so many empty lists in one array are certainly the arena's */
    CHUNK_HEAD = 16,
    ARENA_BEFORE = 112,           /* the arena's part before the lists */
    ARENA_TOP = 16,               /* before the lists: the last chunk; it is free */
    ARENA_NEXT = LISTS * 16 + 16, /* from the lists on: the next arena */
    ARENA_BEHIND = ARENA_NEXT + 5 * 8,
    HEAP_HEAD_MAX = 64, /* where the arena of another heap begins, at most */
};

_Static_assert(ARENA_BEFORE - ARENA_TOP == GLIBC_ARENA_TOP &&
                   ARENA_BEFORE + ARENA_BEHIND == GLIBC_ARENA_SIZE,
               "the structure of an arena");

#define HEAP_SIZE_MAX (UINT64_C(4) << 30)

static bool glibc_is_empty_list(const uint64_t *words, size_t index, uint64_t begin)
{
    uint64_t chunk = begin + index * 8 - CHUNK_HEAD;
    return words[index] == chunk && words[index + 1] == chunk;
}

/* Whether the array of lists begins at word `index`: the last one (for no size) is empty, and the
 * link to the next arena is where it must be. */
static bool glibc_lists_begin(const uint64_t *words, size_t count, size_t index, uint64_t begin)
{
    if ((index + 1) * 8 < ARENA_BEFORE || index + ARENA_NEXT / 8 >= count ||
        !glibc_is_empty_list(words, index + 2 * (LISTS - 1), begin))
        return false;
    uint64_t next = words[index + ARENA_NEXT / 8], self = begin + index * 8 - ARENA_BEFORE;
    uint64_t within_heap = next % GLIBC_HEAP_ALIGNMENT;
    return next == self || next == self + 8 /* older versions */ ||
           (next >= GLIBC_HEAP_ALIGNMENT && within_heap != 0 && within_heap <= HEAP_HEAD_MAX);
}

/* Finds the array of lists, however many of them are in use. The last match counts: one list
 * earlier there may be another, with the list before the last one, and a map of the lists as the
 * link. */
static bool glibc_find_lists(const uint64_t *words, size_t count, uint64_t begin, size_t *index)
{
    for (size_t i = count; i-- > 0;)
        if (glibc_lists_begin(words, count, i, begin)) {
            *index = i;
            return true;
        }
    return false;
}

/* Finds the first empty list, in a version of the library that has the link elsewhere. */
static bool glibc_find_empty_lists(const uint64_t *words, size_t count, uint64_t begin,
                                   size_t *index)
{
    size_t empty = 0, first = 0;
    for (size_t i = 0; i + 1 < count && empty < LISTS_SURE; i++) {
        if (!glibc_is_empty_list(words, i, begin))
            continue;
        if (empty == 0 || i - first >= 2 * LISTS || (i - first) % 2 != 0) {
            first = i;
            empty = 0;
        }
        empty++;
    }
    *index = first;
    return empty >= LISTS_SURE;
}

/* Returns where the last chunk ends, whose address is given. */
static uint64_t glibc_end_of_chunk(const struct memory *memory, uint64_t chunk)
{
    uint64_t size;
    if (!memory_read(memory, chunk + 8, &size, sizeof size))
        return UINT64_MAX;
    size &= ~UINT64_C(7);
    return size <= UINT64_MAX - chunk && glibc_is_aligned(chunk + size) ? chunk + size : UINT64_MAX;
}

bool glibc_arena_find(const struct memory *memory, struct memory_span data,
                      struct glibc_arena *arena)
{
    size_t count, index = 0;
    uint64_t *words = glibc_read_data(memory, data, &count);
    bool is_found = words && (glibc_find_lists(words, count, data.begin, &index) ||
                              glibc_find_empty_lists(words, count, data.begin, &index));
    if (is_found) {
        uint64_t lists = data.begin + index * 8;
        arena->lists = (struct memory_span){lists - ARENA_BEFORE, lists + ARENA_BEHIND};
        arena->top = index >= ARENA_TOP / 8 ? words[index - ARENA_TOP / 8] : 0;
        arena->end = arena->top != 0 ? glibc_end_of_chunk(memory, arena->top) : UINT64_MAX;
    }
    free(words);
    return is_found;
}

bool glibc_heap_find(const struct memory *memory, uint64_t address, struct memory_span *heap)
{
    uint64_t head[4]; /* the arena, the heap before, the size in use, the size that is writable */
    if (!memory_read(memory, address, head, sizeof head))
        return false;
    uint64_t within_heap = head[0] % GLIBC_HEAP_ALIGNMENT;
    if (head[0] == 0 || within_heap == 0 || within_heap > HEAP_HEAD_MAX ||
        head[1] % GLIBC_HEAP_ALIGNMENT != 0 || head[2] == 0 || !glibc_is_aligned(head[2]) ||
        !glibc_is_aligned(head[3]) || head[2] > head[3] || head[3] > HEAP_SIZE_MAX)
        return false;
    *heap = (struct memory_span){address, address + head[3]};
    return true;
}

/* Chunks of the GNU C library's allocator: the memory of blocks, live or free, one behind the
 * other.
 */

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

static bool glibc_ends_page(uint64_t address)
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
static bool glibc_chunk_read(struct chunk_reader *reader, uint64_t chunk, uint64_t *before,
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
static bool glibc_chunk_fits(uint64_t before, uint64_t head, uint64_t size_before)
{
    bool is_of_main_arena = (head & (CHUNK_MAPPED | CHUNK_OF_OTHER_ARENA)) == 0;
    return is_of_main_arena && ((head & CHUNK_PREVIOUS_IN_USE) != 0 || before == size_before);
}

bool glibc_segment_find(const struct memory *memory, uint64_t begin, const uint64_t words[2],
                        uint64_t end, const struct glibc_arena *arena, struct memory_span *segment)
{
    struct chunk_reader reader = {.memory = memory};
    uint64_t before = words[0], head = words[1], chunk = begin, size = 0;
    while (glibc_chunk_fits(before, head, size)) {
        size = head & ~(uint64_t)CHUNK_BITS;
        uint64_t next = chunk + size;
        bool is_end = size == CHUNK_END && chunk != begin;
        if (size % CHUNK_ALIGNMENT != 0 || (size < CHUNK_MIN && !is_end) || size > end - chunk)
            return false;
        *segment = (struct memory_span){begin, is_end ? next + CHUNK_END : next};
        if (chunk == arena->top)
            return glibc_ends_page(next);
        if (next >= end || !glibc_chunk_read(&reader, next, &before, &head))
            return false;
        if (is_end)
            return glibc_ends_page(segment->end) && head == (CHUNK_END | CHUNK_PREVIOUS_IN_USE);
        chunk = next;
    }
    return false;
}

uint64_t glibc_mapped_size(const uint64_t words[2])
{
    uint64_t size = words[1] & ~(uint64_t)CHUNK_BITS;
    bool is_mapped =
        words[0] == 0 && (words[1] & CHUNK_BITS) == CHUNK_MAPPED && glibc_ends_page(size);
    return is_mapped ? size : 0;
}

/* Whether a chunk of an arena may begin where a mapped one is expected: the arena may have mapped
 * memory there. */
static bool glibc_chunk_may_be_of_arena(const struct memory *memory, uint64_t chunk, uint64_t head,
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
    if ((*head & (CHUNK_ALIGNMENT - 1)) == CHUNK_MAPPED && size != 0 && glibc_ends_page(size) &&
        size <= end - chunk)
        return words[0] == 0 ? GLIBC_MAPPED_BEGIN : GLIBC_MAPPED_RIGHT;
    return glibc_chunk_may_be_of_arena(memory, chunk, *head, end) ? GLIBC_MAPPED_UNKNOWN
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
 * a block; the second one has no size in an arena other than the main one. */
static bool glibc_walk_is_at_end(struct chunk_walk *walk)
{
    uint64_t left = walk->chunks->end - walk->chunk, before, next;
    if (!walk->chunks->is_main)
        return walk->size <= CHUNK_END && left <= 2 * CHUNK_END;
    return walk->size == CHUNK_END && left > CHUNK_END &&
           glibc_chunk_read(&walk->reader, walk->chunk + CHUNK_END, &before, &next) &&
           next == (CHUNK_END | CHUNK_PREVIOUS_IN_USE);
}

/* Whether the allocator may have written the head of the chunk. */
static bool glibc_walk_may_be_written(const struct chunk_walk *walk)
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
static bool glibc_walk_leads_on(const struct chunk_walk *walk)
{
    uint64_t top = walk->chunks->top;
    if (walk->chunk == top)
        return glibc_ends_page(walk->chunk + walk->size);
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
            !glibc_chunk_read(&walk.reader, walk.chunk, &walk.before, &walk.head))
            return GLIBC_CHUNKS_UNKNOWN;
        walk.size_before = walk.size;
        walk.size = walk.head & ~(uint64_t)(CHUNK_ALIGNMENT - 1);
        if (glibc_walk_is_at_end(&walk))
            return GLIBC_CHUNKS_WHOLE;
        if (!found(context, walk.chunk + 8, walk.head))
            return GLIBC_CHUNKS_UNKNOWN;
        if (!glibc_walk_may_be_written(&walk))
            return GLIBC_CHUNKS_BROKEN;
        if (!glibc_walk_leads_on(&walk))
            return GLIBC_CHUNKS_DERIVED;
        if (walk.chunk == chunks->top)
            return GLIBC_CHUNKS_WHOLE;
    }
    return GLIBC_CHUNKS_WHOLE;
}

/* Whether chunks begin with one that the allocator has given away, as the first one of an arena is.
 * In an arena other than the main one it is free once the thread has ended that began the arena. */
static bool glibc_chunks_begin(const struct memory *memory, const struct glibc_chunks *chunks)
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
    return arena->top != 0 && glibc_chunks_begin(memory, chunks);
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
    return glibc_chunks_begin(memory, chunks);
}
