/* SPDX-License-Identifier: MIT */
/**
 * Heap and memory at a position: lists of blocks, memory maps and pages, and what an index keeps of
 * states of the heap.
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
     * Blocks that the C and C++ runtimes keep for themselves and would release if asked to, at
     * the end of the program: not leaks of the program.
     */
    TTD_BLOCKS_RUNTIME = 3
};

/** One block of a list, which is sorted by address, and blocks of one address by heap. */
struct ttd_block {
    uint64_t address;
    uint64_t size;
    /** Number of the event that allocated it, or TTD_UNKNOWN. */
    uint64_t event;
    /** When it was acquired: time_end of that event. */
    struct ttd_position allocated;
    ttd_id thread;
    ttd_id heap;
    ttd_id stack;
    uint8_t api;
};

/** Blocks of one chunk of a list; a list is as many chunks as needed, `last` on the last one. */
struct ttd_live_blocks {
    enum ttd_block_list list;
    /** Number of the list within its file, from 1; above those of all lists before. */
    uint32_t list_id;
    bool last;
    struct ttd_position position;
    const struct ttd_block *blocks;
    size_t count;
};

/** Pages of memory content: `count` pages with the ids first_page, first_page + 1, …; the first of
 * a trace is TTD_PAGE_FIRST. */
struct ttd_pages {
    uint64_t first_page;
    /** A power of two from 512 to 65536. */
    uint32_t page_size;
    uint32_t count;
    const uint8_t *data;
};

/** Page ids of runs whose content is not in the trace. Others are those of ttd_pages, plus these.
 */
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
    /** First page id; a stored run has consecutive ids, a reserved id holds for all its pages. */
    uint64_t page;
};

/** Memory of the process at a position. */
struct ttd_memory_map {
    /** Number of the snapshot, from 1; not 0. */
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
    /** Sums follow, and a list of those blocks that are not in them. */
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
    /** Blocks in the list that follows; of the peak, live ones. */
    uint64_t blocks;

    /** Keyframe and summary: the number of the event that comes next, and what was replayed. */
    uint64_t next_event;
    uint64_t events;
    uint64_t failed;
    uint64_t unfinished;
    /** Releases of addresses that were not live, and acquisitions where a block was live. */
    uint64_t unknown_releases;
    uint64_t overlaps;
    uint64_t actions[TTD_STATE_ACTIONS];

    /** Summary: how many sums follow, and the first position after those that it serves; the
     * invalid one if it serves all. */
    uint64_t sums;
    struct ttd_position end;

    /** Peak: live bytes, and how many times 2^64 in addition. */
    uint64_t bytes;
    uint64_t bytes_high;
};

/** Point of view of a sum. */
enum ttd_sum_table {
    TTD_SUMS_BY_STACK = 0,
    TTD_SUMS_BY_HEAP = 1,
    TTD_SUMS_BY_THREAD = 2,
    /** By number of binary digits of the size. */
    TTD_SUMS_BY_SIZE = 3
};

/** The blocks of a summary that have one stack, heap, thread or class of sizes. */
struct ttd_sum {
    enum ttd_sum_table table;
    /** The id; or the number of binary digits, up to 64. */
    uint32_t key;
    /** An api that allocated one of the blocks, perhaps one that has ended since. */
    uint8_t api;
    uint64_t blocks;
    uint64_t bytes;
    /** By stack: when the first and the last of the blocks were allocated. */
    struct ttd_position first;
    struct ttd_position last;
};

TTD_END_DECLS

#endif
