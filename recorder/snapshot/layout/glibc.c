/* SPDX-License-Identifier: MIT */
#include "snapshot/layout/glibc.h"

#include <stdlib.h>
#include <string.h>

/*
 * The structure of a thread, struct pthread. It begins with what the compiler and the linker agree
 * on: a pointer to itself, one to the vector of thread-local storage, and another one to itself.
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
    TLS_MAX = 1 << 20, /* static storage is not larger than this */
    VECTOR_MAX = 1024,
    THREAD_LISTS_MAX = 16,
};

static bool is_aligned(uint64_t value)
{
    return value % MEMORY_PAGE == 0;
}

/* Finds the extent of the thread's block of memory in its structure: an address and a size that
 * enclose the structure, at the end. */
static void glibc_find_block(const uint64_t *words, struct glibc_thread *thread)
{
    for (size_t i = THREAD_TID / 8; i + 1 < THREAD_SIZE / 8; i++) {
        uint64_t begin = words[i], end = begin + words[i + 1];
        if (begin == 0 || !is_aligned(begin) || !is_aligned(end) || begin >= thread->pointer ||
            end < thread->pointer + THREAD_SIZE - MEMORY_PAGE || end < begin ||
            end - thread->pointer > 4 * MEMORY_PAGE)
            continue;
        thread->block_begin = begin;
        thread->block_end = end;
        return;
    }
}

/* The vector has pairs: the number of those that follow, a generation, then for each module the
 * address of its storage and what to free: NULL for static storage, which lies before the thread's
 * structure. */
static void find_static_storage(const struct memory *memory, uint64_t vector,
                                struct glibc_thread *thread)
{
    uint64_t entries[VECTOR_MAX][2], count;
    uint64_t low = thread->block_begin != 0 ? thread->block_begin : thread->pointer - TLS_MAX;
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
    find_static_storage(memory, words[THREAD_VECTOR], thread);
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
static bool has_main_thread(const struct memory *memory, struct list list)
{
    struct glibc_thread thread;
    return glibc_thread_read(memory, list.last - THREAD_LIST, &thread) && thread.block_begin == 0;
}

/* Reads data that is known to be touched, such as that of the library. Returns NULL if it cannot.
 */
static uint64_t *read_data(const struct memory *memory, struct memory_span data, size_t *count)
{
    enum { DATA_MAX = 1 << 20 };
    if (data.end - data.begin > DATA_MAX)
        return NULL;
    uint64_t *words = malloc(data.end - data.begin);
    *count = (data.end - data.begin) / 8;
    if (words != NULL && memory_read(memory, data.begin, words, *count * 8))
        return words;
    free(words);
    return NULL;
}

/* Finds the heads of lists of threads. Returns how many there are. */
static size_t find_heads(const struct memory *memory, struct memory_span data,
                         const struct glibc_calls *calls, struct list lists[THREAD_LISTS_MAX])
{
    size_t count, list_count = 0;
    uint64_t *words = read_data(memory, data, &count);
    for (size_t i = 0; words != NULL && i + 1 < count && list_count < THREAD_LISTS_MAX; i++) {
        uint64_t links[2], link = words[i], head = data.begin + i * 8;
        if (link != 0 && (link - THREAD_LIST) % THREAD_ALIGNMENT == 0 &&
            calls->may_be(calls->context, link) && memory_read(memory, link, links, sizeof links) &&
            links[1] == head)
            lists[list_count++] = (struct list){head, link, words[i + 1]};
    }
    free(words);
    return list_count;
}

/* The heads of three lists lie side by side: of threads that run or can be joined, of those whose
 * stacks the library has not made, which the main thread is among, and of stacks that are kept. */
void glibc_threads_find(const struct memory *memory, struct memory_span data,
                        const struct glibc_calls *calls)
{
    struct list lists[THREAD_LISTS_MAX];
    size_t count = find_heads(memory, data, calls, lists);
    for (size_t i = 0; i < count; i++) {
        bool is_joinable = i + 1 < count && lists[i + 1].head == lists[i].head + 16 &&
                           has_main_thread(memory, lists[i + 1]);
        glibc_follow_list(memory, lists[i], is_joinable, calls);
    }
}

/*
 * The main arena has an array of 127 pairs, the ends of lists. An empty list is a pair that points
 * to itself, as if it were a chunk, which begins two words earlier.
 */
enum {
    LISTS = 127,
    LISTS_SURE = 60, /* so many empty lists in one array are certainly the arena's */
    CHUNK_HEAD = 16,
    ARENA_BEFORE = 112,           /* what the arena has before the lists */
    ARENA_TOP = 16,               /* before the lists: the last chunk, which is free */
    ARENA_NEXT = LISTS * 16 + 16, /* from the lists on: the next arena */
    ARENA_BEHIND = ARENA_NEXT + 5 * 8,
    HEAP_HEAD_MAX = 64, /* where the arena of another heap begins, at most */
};

_Static_assert(ARENA_BEFORE - ARENA_TOP == GLIBC_ARENA_TOP &&
                   ARENA_BEFORE + ARENA_BEHIND == GLIBC_ARENA_SIZE,
               "the structure of an arena");

#define HEAP_SIZE_MAX (UINT64_C(4) << 30)

static bool is_empty_list(const uint64_t *words, size_t index, uint64_t begin)
{
    uint64_t chunk = begin + index * 8 - CHUNK_HEAD;
    return words[index] == chunk && words[index + 1] == chunk;
}

/* Whether the array of lists begins at word `index`: the last one, which is for no size, is empty,
 * and the link to the next arena is where it must be. */
static bool lists_begin(const uint64_t *words, size_t count, size_t index, uint64_t begin)
{
    if ((index + 1) * 8 < ARENA_BEFORE || index + ARENA_NEXT / 8 >= count ||
        !is_empty_list(words, index + 2 * (LISTS - 1), begin))
        return false;
    uint64_t next = words[index + ARENA_NEXT / 8], self = begin + index * 8 - ARENA_BEFORE;
    uint64_t within_heap = next % GLIBC_HEAP_ALIGNMENT;
    return next == self || next == self + 8 /* older versions */ ||
           (next >= GLIBC_HEAP_ALIGNMENT && within_heap != 0 && within_heap <= HEAP_HEAD_MAX);
}

/* Finds the array of lists, however many of them are in use. The last match counts: one list
 * earlier there may be another, with the list before the last one, and a map of the lists as the
 * link. */
static bool find_lists(const uint64_t *words, size_t count, uint64_t begin, size_t *index)
{
    for (size_t i = count; i-- > 0;)
        if (lists_begin(words, count, i, begin)) {
            *index = i;
            return true;
        }
    return false;
}

/* Finds the first empty list, in a version of the library that has the link elsewhere. */
static bool find_empty_lists(const uint64_t *words, size_t count, uint64_t begin, size_t *index)
{
    size_t empty = 0, first = 0;
    for (size_t i = 0; i + 1 < count && empty < LISTS_SURE; i++) {
        if (!is_empty_list(words, i, begin))
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
static uint64_t end_of_chunk(const struct memory *memory, uint64_t chunk)
{
    uint64_t size;
    if (!memory_read(memory, chunk + 8, &size, sizeof size))
        return UINT64_MAX;
    size &= ~UINT64_C(7);
    return size <= UINT64_MAX - chunk && is_aligned(chunk + size) ? chunk + size : UINT64_MAX;
}

bool glibc_arena_find(const struct memory *memory, struct memory_span data,
                      struct glibc_arena *arena)
{
    size_t count, index = 0;
    uint64_t *words = read_data(memory, data, &count);
    bool is_found = words != NULL && (find_lists(words, count, data.begin, &index) ||
                                      find_empty_lists(words, count, data.begin, &index));
    if (is_found) {
        uint64_t lists = data.begin + index * 8;
        arena->lists = (struct memory_span){lists - ARENA_BEFORE, lists + ARENA_BEHIND};
        arena->top = index >= ARENA_TOP / 8 ? words[index - ARENA_TOP / 8] : 0;
        arena->end = arena->top != 0 ? end_of_chunk(memory, arena->top) : UINT64_MAX;
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
        head[1] % GLIBC_HEAP_ALIGNMENT != 0 || head[2] == 0 || !is_aligned(head[2]) ||
        !is_aligned(head[3]) || head[2] > head[3] || head[3] > HEAP_SIZE_MAX)
        return false;
    *heap = (struct memory_span){address, address + head[3]};
    return true;
}
