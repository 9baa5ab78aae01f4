/* SPDX-License-Identifier: MIT */
/**
 * The engine of a page that has its trace in it: the functions that the page calls, compiled for
 * WebAssembly. One trace is open at a time.
 *
 * Functions that answer with more than a number write *values* of 64 bits for engine_values(), and
 * return their count; 0 without memory. A position is two values, its sequence and its steps. A
 * moment is one of the chronicle (analyses/chronicle/chronicle.h).
 */
#ifndef ANALYZER_ENGINE_ENGINE_H
#define ANALYZER_ENGINE_ENGINE_H

#include <stddef.h>
#include <stdint.h>
#include <ttdtrace/ttdheap.h>

#include "analyses/chronicle/chronicle.h"

#ifdef __wasm__
#define ENGINE_EXPORT(name) __attribute__((export_name(#name)))
#define ENGINE_IMPORT(name) __attribute__((import_module("page"), import_name(#name)))
#else
#define ENGINE_EXPORT(name)
#define ENGINE_IMPORT(name)
#endif

/** Returns memory for a trace of `size` bytes; NULL if there is not enough. */
ENGINE_EXPORT(engine_reserve) void *engine_reserve(size_t size);

/** Reads the trace in that memory. Returns a ttd_status; engine_error() says more. */
ENGINE_EXPORT(engine_open) int engine_open(size_t size);

/** Releases everything. */
ENGINE_EXPORT(engine_close) void engine_close(void);

/** Returns a static text about the last failure. */
ENGINE_EXPORT(engine_error) const char *engine_error(void);

/** Provided by the page: receives the number of events read so far. */
ENGINE_IMPORT(progress) void engine_progress(double events);

ENGINE_EXPORT(engine_values) const uint64_t *engine_values(void);

/** Returns the memory for `count` numbers of stacks whose blocks count; without it all do. They are
 * taken when engine_filter() is called. NULL without memory. */
ENGINE_EXPORT(engine_stacks) uint32_t *engine_stacks(size_t count);
ENGINE_EXPORT(engine_filter) int engine_filter(void);

/** Return the moment at a position; at or before a wall time in nanoseconds; at or before an event
 * by its number; and the next one before or after a moment. */
ENGINE_EXPORT(engine_find) uint32_t engine_find(uint64_t sequence, uint64_t steps);
ENGINE_EXPORT(engine_find_time) uint32_t engine_find_time(uint64_t time);
ENGINE_EXPORT(engine_find_event) uint32_t engine_find_event(uint64_t event);
ENGINE_EXPORT(engine_before) uint32_t engine_before(uint32_t moment);
ENGINE_EXPORT(engine_after) uint32_t engine_after(uint32_t moment);

/**
 * Sums the changes after moment `from` up to moment `to`, for stacks that count. Values: the
 * position at `to`, event, wall time, live bytes and blocks, peak, allocations, allocated bytes,
 * releases; then for stacks, threads, heaps and size classes how many have changed, and each with
 * its number and its change of bytes and blocks.
 *
 * @param event          largest number of an event up to `from`
 * @param bytes, blocks  sums of the live blocks at `from`
 */
ENGINE_EXPORT(engine_sum)
size_t engine_sum(uint32_t from, uint32_t to, uint64_t event, uint64_t bytes, uint64_t blocks);

/** Values: for AIFI, AIFO, AOFI and AOFO after moment `from` up to moment `to`: how many stacks
 * have such blocks, and each with its number, its bytes and its blocks. */
ENGINE_EXPORT(engine_quadrants) size_t engine_quadrants(uint32_t from, uint32_t to);

/** Values: blocks and bytes that are live at a moment and unknown. */
ENGINE_EXPORT(engine_unknown) size_t engine_unknown(uint32_t moment);

/** Finds the regions of memory that live blocks lie in, separated by gaps of `gap` bytes or more.
 * Values: first and last address, blocks, used and unused bytes, gaps, and the largest gap, of all
 * regions together and of each by itself. */
ENGINE_EXPORT(engine_regions) size_t engine_regions(uint32_t moment, uint64_t gap);

/** Finds the pages that live blocks cover little of. Values: pages with a live block, the sparse
 * ones, and the bytes in no block and in blocks that these have; then for each stack whose blocks
 * keep them its number, the bytes that it keeps, its blocks there, and their bytes. */
ENGINE_EXPORT(engine_sparse) size_t engine_sparse(uint32_t moment);

/**
 * Draws the addresses from `first` to `last` as cells of `size` bytes. Values: for each cell its
 * used bytes, how many blocks lie in it, the block that has most of it plus 1, or 0, and the stack
 * of that.
 */
ENGINE_EXPORT(engine_cells)
size_t engine_cells(uint32_t moment, uint64_t first, uint64_t last, uint64_t size);

/** Lists the live blocks with an address from `first` to `last`, the first `most` of them. Values:
 * the number of each. */
ENGINE_EXPORT(engine_blocks)
size_t engine_blocks(uint32_t moment, uint64_t first, uint64_t last, size_t most);

/** Lists the blocks that ever had an address: the last `most`. Values: how many there were, and the
 * number of each, in order of acquisition. */
ENGINE_EXPORT(engine_history) size_t engine_history(uint64_t address, size_t most);

/** Values: address, size, stack, thread and heap of a block, the position where it was acquired
 * and the event of that, and whether and where it ended, the event, and whether
 * its release is missing. */
ENGINE_EXPORT(engine_block) size_t engine_block(uint32_t number);

/** Lists calls, from number `first` on. Values of each: number, start, end (the largest numbers if
 * it never returned), wall time, action, function, thread, stack, heap, address returned, address
 * given, size, result. */
ENGINE_EXPORT(engine_events) size_t engine_events(uint64_t first, size_t count);

/** Return the name of an action and of a function. */
ENGINE_EXPORT(engine_action) const char *engine_action(unsigned action);
ENGINE_EXPORT(engine_api) const char *engine_api(unsigned api);

/* Internals of the engine. */

struct engine {
    uint8_t *trace;
    struct ttdheap *heap;
    struct ttd_error error;
    struct chronicle chronicle;
    /** The values of the last answer. */
    uint64_t *values;
    size_t count;
    size_t capacity;
    bool is_short;
    /** Numbers of stacks as they were given; and by stack, from 0, whether its blocks count. */
    uint32_t *given;
    size_t given_count;
    bool *wanted;
    size_t wanted_count;
};

extern struct engine engine;

/** Begins an answer. */
void engine_answer(void);

/** Adds a value to the answer. */
void engine_add(uint64_t value);
void engine_add_position(struct ttd_position position);

/** Returns how many values the answer has; 0 if there was not enough memory. */
size_t engine_end(void);

#endif
