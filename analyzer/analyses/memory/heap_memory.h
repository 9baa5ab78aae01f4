/* SPDX-License-Identifier: MIT */
/** The contents of a range of memory at a position, and the blocks that lay there; a
 * search in such contents. */
#ifndef ANALYZER_ANALYSES_MEMORY_HEAP_MEMORY_H
#define ANALYZER_ANALYSES_MEMORY_HEAP_MEMORY_H

#include "contents/contents.h"
#include "heap/heap_live.h"
#include "travel/replay_to.h"

/* The innermost block of each address, where blocks lie in each other. */

/** Addresses from `first` up to the next segment: the innermost block of all of them is the same.
 */
struct heap_segment {
    uint64_t first;
    /** Index of the block; SIZE_MAX for none. */
    size_t block;
};

/** By address; all zero when empty. */
struct heap_segments {
    struct heap_segment *items;
    size_t count;
};

/** Whether any of the blocks lie in each other. They are sorted by heap_compare_blocks(). */
bool heap_blocks_are_nested(const struct heap_block *blocks, size_t count);

/** Finds the segments of such blocks. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_segments_find(struct heap_segments *segments, const struct heap_block *blocks,
                                   size_t count);
void heap_segments_free(struct heap_segments *segments);

/** Returns the index of the innermost block that an address lies in; SIZE_MAX if there is none. */
size_t heap_segments_block(const struct heap_segments *segments, uint64_t address);

struct heap_memory_options {
    struct ttd_position at;
    /** The range of addresses, both ends included. */
    uint64_t first;
    uint64_t last;
    /** Keeps all live blocks, not only those that lie in the range. */
    bool keeps_all_blocks;
};

struct heap_memory {
    struct heap_outcome outcome;
    struct heap_memory_options options;
    struct heap_snapshots snapshots;
    struct contents_extents extents;
    /** Reads each page when it is asked for, with the reader of the trace. */
    struct contents_pages pages;
    /** The live blocks, sorted by address. */
    struct heap_block *blocks;
    size_t block_count;
    /** Empty if no block lies in another. */
    struct heap_segments segments;
};

/**
 * @param memory  set on TTD_OK; release with heap_memory_free(). The trace must outlive it
 * @return as heap_state_find().
 */
enum ttd_status heap_memory_find(const struct heap_trace *trace,
                                 const struct heap_memory_options *options,
                                 struct heap_memory *memory, struct ttd_error *error);
void heap_memory_free(struct heap_memory *memory);

/** Returns the innermost live block that contains an address, or NULL. */
const struct heap_block *heap_memory_block(const struct heap_memory *memory, uint64_t address);

/** Whether the snapshot of a part of the memory was taken before `block` was allocated there. If
 * so, the bytes do not belong to the block. */
bool heap_memory_is_older(const struct heap_memory *memory, const struct contents_part *part,
                          const struct heap_block *block);

/* A search of memory at a position, as far as memory snapshots have its contents. */

/** Limit on the length of a pattern, in bytes. */
#define HEAP_PATTERN_MAX 4096

enum heap_search_kind {
    /** The pattern, at any address. */
    HEAP_SEARCH_PATTERN,
    /** Words that hold the address. */
    HEAP_SEARCH_ADDRESS,
    /** Words that hold an address in the block around that address. */
    HEAP_SEARCH_POINTER
};

struct heap_search_options {
    struct ttd_position at;
    enum heap_search_kind kind;
    /** For HEAP_SEARCH_PATTERN. At least one byte is not 0, since memory full of zeros is not
     * stored. */
    const uint8_t *pattern;
    size_t pattern_size;
    /** For the other kinds. */
    uint64_t address;
    /** Limit on the matches that are kept; all are counted. */
    size_t limit;
};

struct heap_match {
    uint64_t address;
    /** The value of the word; not for HEAP_SEARCH_PATTERN. */
    uint64_t value;
    /** Index in memory.snapshots of the snapshot that has the contents. */
    uint32_t snapshot;
    /** Index in memory.blocks of the live block that contains the address; SIZE_MAX for none. */
    size_t block;
};

struct heap_search {
    struct heap_outcome outcome;
    /** The blocks and the snapshots. */
    struct heap_memory memory;
    /** Sorted by address. */
    struct heap_match *matches;
    size_t count;
    size_t capacity;
    /** Number of all matches, including those that are not kept. */
    uint64_t total;
    /** Number of bytes searched; and of bytes that snapshots list but whose pages cannot be read.
     */
    uint64_t searched;
    uint64_t unreadable;
    /** For HEAP_SEARCH_POINTER: the block that contains the address; NULL if there is none. */
    const struct heap_block *target;
};

/**
 * @param search  set on TTD_OK; release with heap_search_free()
 * @return as heap_memory_find().
 */
enum ttd_status heap_search_find(const struct heap_trace *trace,
                                 const struct heap_search_options *options,
                                 struct heap_search *search, struct ttd_error *error);
void heap_search_free(struct heap_search *search);

#endif
