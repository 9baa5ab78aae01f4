/* SPDX-License-Identifier: MIT */
/* Heaps in blocks of other heaps, and the records that say so. */
#include "vectors/rows.h"

#include <string.h>

#include "support/chunk_edit.h"

/* ---- The good file ---- */

enum { MALLOC = 1, POOL };

/* A call that returns one step after its beginning. */
static struct ttd_event call(enum ttd_action action, ttd_id heap, uint64_t sequence)
{
    return (struct ttd_event){.action = (uint8_t)action,
                              .time_start = {sequence, 0},
                              .time_end = {sequence, 1},
                              .thread = 1,
                              .heap = heap,
                              .result = 1};
}

static void acquire(struct ttd_writer *writer, ttd_id heap, uint64_t sequence, uint64_t address,
                    uint64_t size)
{
    struct ttd_event event = call(TTD_ACTION_ALLOC, heap, sequence);
    event.address = address;
    event.size = size;
    vector_event(writer, event);
}

static void release(struct ttd_writer *writer, ttd_id heap, uint64_t sequence, uint64_t address)
{
    struct ttd_event event = call(TTD_ACTION_FREE, heap, sequence);
    event.base_address = address;
    vector_event(writer, event);
}

static void reallocate(struct ttd_writer *writer, uint64_t sequence)
{
    struct ttd_event event = call(TTD_ACTION_REALLOC, POOL, sequence);
    event.base_address = event.previous_address = 0x1040;
    event.address = 0x1080;
    event.size = 64;
    vector_event(writer, event);
}

static void write_list(struct ttd_writer *writer)
{
    struct ttd_block blocks[] = {{.address = 0x1000, .size = 4096, .heap = MALLOC, .thread = 1},
                                 {.address = 0x1000, .size = 16, .heap = POOL, .thread = 1},
                                 {.address = 0x1040, .size = 32, .heap = POOL, .thread = 1}};
    for (uint64_t i = 0; i < 3; i++) {
        static const uint64_t events[] = {0, 2, 3};
        blocks[i].event = events[i];
        blocks[i].allocated = (struct ttd_position){events[i] + 1, 1};
    }
    struct ttd_live_blocks list = {.list = TTD_BLOCKS_SNAPSHOT,
                                   .list_id = 1,
                                   .last = true,
                                   .position = {4, 1},
                                   .blocks = blocks,
                                   .count = 3};
    vector_check(ttd_writer_live_blocks(writer, &list));
}

static struct ttd_writer *begin(struct ttd_memory_output *memory)
{
    struct ttd_writer_options options = ttd_writer_options_default();
    options.codec = TTD_CODEC_RAW;
    struct ttd_writer *writer = vector_writer(memory, &options);
    struct ttd_thread thread = {.action = TTD_THREAD_BEGIN, .os_id = 1};
    struct ttd_heap heaps[] = {{.name = vector_string(writer, "malloc")},
                               {.name = vector_string(writer, "pool"), .handle = 0x1000}};
    ttd_id id;
    vector_check(ttd_writer_thread(writer, &thread, &id));
    vector_check(ttd_writer_heap(writer, &heaps[0], &id));
    vector_check(ttd_writer_heap(writer, &heaps[1], &id));
    return writer;
}

void vector_write_nested_heaps(struct ttd_memory_output *memory)
{
    struct ttd_writer *writer = begin(memory);
    struct ttd_heap_parent parent = {.heap = POOL, .parent = MALLOC};
    vector_check(ttd_writer_heap_parent(writer, &parent));
    acquire(writer, MALLOC, 1, 0x1000, 4096);
    vector_event(writer, call(TTD_ACTION_CREATE, POOL, 2));
    acquire(writer, POOL, 3, 0x1000, 16);
    acquire(writer, POOL, 4, 0x1040, 32);
    write_list(writer);
    vector_event(writer, call(TTD_ACTION_LOCK, POOL, 5));
    vector_event(writer, call(TTD_ACTION_UNLOCK, POOL, 6));
    vector_event(writer, call(TTD_ACTION_PROTECT, POOL, 7));
    reallocate(writer, 8);
    release(writer, POOL, 9, 0x1000);
    vector_event(writer, call(TTD_ACTION_DESTROY, POOL, 10));
    release(writer, MALLOC, 11, 0x1000);
    vector_close(writer);
}

/* ---- Bad files ---- */

/* Two pools. */
static void write_pools(struct ttd_memory_output *memory)
{
    struct ttd_writer *writer = begin(memory);
    struct ttd_heap heap = {.handle = 0x2000};
    ttd_id id;
    vector_check(ttd_writer_heap(writer, &heap, &id));
    struct ttd_heap_parent parent = {.heap = POOL, .parent = MALLOC};
    vector_check(ttd_writer_heap_parent(writer, &parent));
    parent.heap = id;
    vector_check(ttd_writer_heap_parent(writer, &parent));
    vector_close(writer);
}

/* Makes the second record one of the same heap as the first. */
static void parent_twice(struct vector_file *file)
{
    size_t at = chunk_edit_find_kind(file->data, file->size, TTD_KIND_HEAP_PARENTS);
    file->data[at + TTD_HEADER_SIZE + 2] = POOL;
    chunk_edit_seal(file->data + at, file->size - at);
    vector_seal_index(file);
}

/* An event of malloc before the parent of a pool. */
static void write_parent_and_event(struct ttd_memory_output *memory)
{
    struct ttd_writer *writer = begin(memory);
    vector_event(writer, call(TTD_ACTION_LOCK, MALLOC, 1));
    vector_check(ttd_writer_flush(writer));
    struct ttd_heap_parent parent = {.heap = POOL, .parent = MALLOC};
    vector_check(ttd_writer_heap_parent(writer, &parent));
    vector_check(ttd_writer_flush(writer));
    vector_close(writer);
}

/* Makes the event one of the pool. */
static void parent_late(struct vector_file *file)
{
    size_t at = chunk_edit_find_kind(file->data, file->size, TTD_KIND_EVENTS);
    /* The class: action, api, form, number of parameters, heap. */
    file->data[at + TTD_HEADER_SIZE + TTD_EVENTS_COLUMNS + 4] = POOL;
    chunk_edit_seal(file->data + at, file->size - at);
    vector_seal_index(file);
}

static void write_blocks(struct ttd_memory_output *memory)
{
    struct ttd_writer *writer = begin(memory);
    write_list(writer);
    vector_close(writer);
}

/* Makes the second block, at the address of the first, one of the same heap. */
static void blocks_heap(struct vector_file *file)
{
    size_t at = chunk_edit_find_kind(file->data, file->size, TTD_KIND_LIVE_BLOCKS);
    uint8_t *payload = file->data + at + TTD_HEADER_SIZE;
    size_t heaps = TTD_BLOCKS_COLUMNS;
    for (size_t i = 0; i < TTD_BLOCK_HEAPS; i++)
        heaps += ttd_get32(payload + TTD_BLOCKS_LENGTHS + 4 * i);
    payload[heaps + 1] = MALLOC;
    chunk_edit_seal(file->data + at, file->size - at);
    vector_seal_index(file);
}

const struct vector vectors_bad_heaps[] = {
    /* Heap parents: heap, parent. */
    BAD("heap-parent-zero", "a record of no parent", "R-89", HEAPS, "parent of a heap",
        RECORD(TTD_KIND_HEAP_PARENTS, 0, 1, 0)),
    BAD("heap-parent-itself", "a heap in blocks of itself", "R-89", HEAPS, "parent of a heap",
        RECORD(TTD_KIND_HEAP_PARENTS, 0, 1, 1)),
    BAD("heap-parent-later", "a parent that is defined after the heap", "R-89", HEAPS,
        "parent of a heap", RECORD(TTD_KIND_HEAP_PARENTS, 0, 1, 2)),
    DOUBTFUL("heap-parent-undefined", "a parent of a heap that is not defined", "R-7",
             "undefined heap of a parent", RECORD(TTD_KIND_HEAP_PARENTS, 0, 99, 1)),
    DOUBTFUL("heap-parent-twice", "two parents of a heap: the first counts", "R-90",
             "order of heap parents", .write = write_pools, .damage = parent_twice),
    DOUBTFUL("heap-parent-late", "a parent that is told of behind an event of the heap", "R-90",
             "order of heap parents", .write = write_parent_and_event, .damage = parent_late),
    {.name = "bad-blocks-heap",
     .purpose = "two blocks of one heap at one address",
     .requirements = "R-51",
     .write = write_blocks,
     .damage = blocks_heap,
     .status = TTD_ERROR_CORRUPT,
     .chunk = 4,
     .what = "blocks not in order of address"},
    {.name = NULL}};
