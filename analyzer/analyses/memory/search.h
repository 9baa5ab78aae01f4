/* SPDX-License-Identifier: MIT */
/** A search of memory at a position, as far as memory snapshots have its contents. */
#ifndef ANALYZER_ANALYSES_MEMORY_SEARCH_H
#define ANALYZER_ANALYSES_MEMORY_SEARCH_H

#include "analyses/memory/heap_memory.h"

/** Limit on the length of a pattern, in bytes. */
#define HEAP_PATTERN_MAX 4096

enum heap_search_kind {
    /** The pattern, at any address. */
    HEAP_SEARCH_PATTERN,
    /** Words that hold the address. */
    HEAP_SEARCH_ADDRESS,
    /** Words that hold an address in the block in which the address lies. */
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
