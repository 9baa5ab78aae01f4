/* SPDX-License-Identifier: MIT */
/**
 * The blocks that were allocated before the recorder was attached, found in memory of the GNU C
 * library: all of its arenas and their heaps, and blocks with mappings of their own. Free chunks
 * are left out, also those in bins and in threads' caches that look as if they were in use.
 */
#ifndef RECORDER_ATTACH_KNOWN_BLOCKS_H
#define RECORDER_ATTACH_KNOWN_BLOCKS_H

#include "snapshot/layout/maps.h"
#include "snapshot/process_memory.h"

/** Versions 2.x of the library whose structures are known. */
enum { KNOWN_BLOCKS_OLDEST = 31, KNOWN_BLOCKS_NEWEST = 40 };

struct known_block {
    uint64_t address;
    uint64_t size; /* usable */
};

struct known_blocks {
    struct known_block *items; /* by address */
    size_t count;
    uint64_t bytes;
    uint64_t cached;    /* chunks in threads' caches, with these caches: bytes */
    bool is_busy;       /* a thread was changing an arena: another copy may have all blocks */
    const char *reason; /* why there may be more blocks, as a sentence; NULL if these are all */
};

/** The thread pointers of the process's threads. */
struct known_threads {
    const uint64_t *items;
    size_t count;
};

/** Returns the x of the newest version 2.x that is named in a library's table of strings: the
 * library's version; 0 if there is none. */
unsigned known_blocks_version(const char *strings, size_t size);

/**
 * Finds the blocks in the memory of a process that is stopped, or in a copy of it, whose mappings
 * are `maps`. `data` is the writable segment of the C library 2.`version`. Of a thread that is not
 * in `threads`, an empty cache is taken for a block. Whatever the memory has,
 * this ends, at the latest at the deadline of `memory`. Returns false if memory ran out: nothing is
 * to be freed then.
 */
bool known_blocks_find(struct memory *memory, const struct maps *maps, struct memory_span data,
                       unsigned version, struct known_threads threads, struct known_blocks *blocks);

void known_blocks_free(struct known_blocks *blocks);

#endif
