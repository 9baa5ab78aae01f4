/* SPDX-License-Identifier: MIT */
/** A search of memory at a position, as far as memory snapshots tell. */
#ifndef ANALYZER_ANALYSES_MEMORY_SEARCH_H
#define ANALYZER_ANALYSES_MEMORY_SEARCH_H

#include "analyses/memory/memory.h"

/** Limit on the bytes of a pattern. */
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
    /** Has a byte that is not 0. */
    const uint8_t *pattern;
    size_t pattern_size;
    uint64_t address;
    /** Matches that are kept; all are counted. */
    size_t limit;
};

struct heap_match {
    uint64_t address;
    /** The word, when words are looked for. */
    uint64_t value;
    /** Index of the snapshot in memory.snapshots. */
    uint32_t snapshot;
    /** The live block that it lies in, an index in memory.blocks; SIZE_MAX for none. */
    size_t block;
};

struct heap_search {
    struct heap_outcome outcome;
    /** The blocks and the snapshots. */
    struct heap_memory memory;
    /** By address. */
    struct heap_match *matches;
    size_t count;
    size_t capacity;
    uint64_t total;
    /** Bytes that were searched, and bytes that snapshots have, but that cannot be read. */
    uint64_t searched;
    uint64_t unreadable;
    /** The block whose pointers were looked for; NULL if there is none. */
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
