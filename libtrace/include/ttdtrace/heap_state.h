/* SPDX-License-Identifier: MIT */
/**
 * Heap and memory at a position: lists of blocks, memory maps and pages, and the states of the heap
 * that an index stores.
 *
 * A trace is a file with all calls that allocate and release memory in one process. Beside these
 * events it may have what the recorder saw in the process: the blocks that the C library keeps, and
 * the contents of memory.
 *
 *     struct ttd_input input;
 *     struct ttd_reader *reader;
 *     struct ttd_batch batch;
 *     if (ttd_input_file("trace.bin", NULL, &input, NULL) != TTD_OK ||
 *         ttd_reader_open(&input, NULL, NULL, &reader, NULL) != TTD_OK)
 *         return 1;
 *     while (ttd_reader_next(reader, &batch, NULL) == TTD_OK)
 *         if (batch.kind == TTD_KIND_LIVE_BLOCKS)
 *             printf("list %d: %zu blocks\n", (int)batch.u.live_blocks->list,
 *                    batch.u.live_blocks->count);
 *     ttd_reader_close(reader);
 */
#ifndef TTDTRACE_HEAP_STATE_H
#define TTDTRACE_HEAP_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/ids.h>
#include <ttdtrace/position.h>

TTD_BEGIN_DECLS

/** Kinds of lists of blocks. */
enum ttd_block_list {
    /** All blocks live at the position, computed from events; only in derived files. */
    TTD_BLOCKS_KEYFRAME = 1,
    /** All blocks live at the position, as the recorder saw them. */
    TTD_BLOCKS_SNAPSHOT = 2,
    /**
     * Blocks that the C and C++ runtimes still hold at the end of the program, and would release on
     * request: they are no leaks of the program.
     */
    TTD_BLOCKS_RUNTIME = 3
};

/** A block of a list. Lists are sorted by address; blocks of one address by heap. */
struct ttd_block {
    uint64_t address;
    uint64_t size;
    /** Number of the event that allocated it, or TTD_UNKNOWN. */
    uint64_t event;
    /** Position where it was acquired: time_end of that event. */
    struct ttd_position allocated;
    ttd_id thread;
    ttd_id heap;
    ttd_id stack;
    uint8_t api;
};

/** The part of a list that one chunk holds. A list takes as many chunks as it needs; `last` is set
 * on the final one. */
struct ttd_live_blocks {
    enum ttd_block_list list;
    /** Number of the list within its file, from 1, greater than the number of every list before. */
    uint32_t list_id;
    bool last;
    struct ttd_position position;
    const struct ttd_block *blocks;
    size_t count;
};

/** Contents of memory: `count` pages with the ids first_page, first_page + 1, … Ids begin with
 * TTD_PAGE_FIRST in each trace. */
struct ttd_pages {
    uint64_t first_page;
    /** A power of two from 512 to 65536. */
    uint32_t page_size;
    uint32_t count;
    const uint8_t *data;
};

/** Reserved page ids, for runs whose content is not stored as pages; and the first id of a stored
 * page. */
#define TTD_PAGE_ZERO         0u
#define TTD_PAGE_UNREADABLE   1u
#define TTD_PAGE_NOT_CAPTURED 2u
#define TTD_PAGE_FIRST        3u

/** Protection bits of a run. */
#define TTD_MEMORY_READ    1u
#define TTD_MEMORY_WRITE   2u
#define TTD_MEMORY_EXECUTE 4u
#define TTD_MEMORY_SHARED  8u

/** `page_count` pages from `address` on. */
struct ttd_memory_run {
    uint64_t address;
    uint64_t page_count;
    uint32_t protection;
    /** Id of the first page. Ids of stored pages are consecutive; a reserved id applies to all
     * pages of the run. */
    uint64_t page;
};

/** Memory of the process at a position. */
struct ttd_memory_map {
    /** Number of the snapshot, from 1. */
    uint32_t snapshot;
    bool last;
    struct ttd_position position;
    uint32_t page_size;
    const struct ttd_memory_run *runs;
    size_t count;
};

/** Forms of a state of the heap. */
enum ttd_state_form {
    /** A list of all live blocks follows. */
    TTD_STATE_KEYFRAME = 1,
    /** Sums follow, and a list of the blocks that they do not include. */
    TTD_STATE_SUMMARY = 2,
    /** The first state with the largest number of live bytes. */
    TTD_STATE_PEAK = 3
};

/** Number of counts by action: from 0, unknown, to TTD_ACTION_DESTROY. */
#define TTD_STATE_ACTIONS 9

/** A state of the heap of another trace, in a derived file (spec, "States"). */
struct ttd_state {
    enum ttd_state_form form;
    struct ttd_position position;
    /** Number of blocks in the list that follows; for the peak, number of live blocks. */
    uint64_t blocks;

    /** Keyframe and summary: number of the next event, and counts of the events replayed so far. */
    uint64_t next_event;
    uint64_t events;
    uint64_t failed;
    uint64_t unfinished;
    /** Releases of addresses that were not live, and acquisitions where a block was live. */
    uint64_t unknown_releases;
    uint64_t overlaps;
    uint64_t actions[TTD_STATE_ACTIONS];

    /** Summary: number of sums that follow. */
    uint64_t sums;
    /** Summary: first position that it does not serve; invalid if it serves all that follow. */
    struct ttd_position end;

    /** Peak: live bytes, bytes + bytes_high * 2^64. */
    uint64_t bytes;
    uint64_t bytes_high;
};

/** Property that a table of sums divides the blocks by. */
enum ttd_sum_table {
    TTD_SUMS_BY_STACK = 0,
    TTD_SUMS_BY_HEAP = 1,
    TTD_SUMS_BY_THREAD = 2,
    /** By the number of binary digits of the size. */
    TTD_SUMS_BY_SIZE = 3
};

/** Sum over the blocks of a summary that share a stack, heap, thread or size class. */
struct ttd_sum {
    enum ttd_sum_table table;
    /** The id; or the number of binary digits, up to 64. */
    uint32_t key;
    /** An enum ttd_api that allocated one of the blocks, perhaps one that is no longer live. */
    uint8_t api;
    uint64_t blocks;
    uint64_t bytes;
    /** By stack: positions where the first and the last of the blocks were allocated. */
    struct ttd_position first;
    struct ttd_position last;
};

TTD_END_DECLS

#endif
