/* SPDX-License-Identifier: MIT */
/** Parts of the search for known blocks. */
#ifndef RECORDER_ATTACH_KNOWN_PARTS_H
#define RECORDER_ATTACH_KNOWN_PARTS_H

#include "snapshot/layout/glibc.h"
#include "attach/known_blocks.h"

enum { KNOWN_WINDOW = 1 << 16 };

struct known_addresses {
    uint64_t *items;
    size_t count, capacity;
};

struct known_search {
    struct memory *memory;
    const struct maps *maps;
    unsigned version;
    struct known_blocks *blocks;
    size_t capacity;
    struct known_threads threads;
    struct known_addresses caches; /* blocks of the size that threads' caches have */
    struct known_addresses filled; /* the caches that have a block */
    struct known_addresses empty;  /* those that are cleared: caches, or the program's */
    struct known_addresses unused; /* blocks that are none: free, or caches */
    size_t most;                   /* as many blocks fit into the memory */
    bool has_failed;               /* memory ran out, or there are more */
    bool is_out_of_memory;
    uint64_t window_begin, window_size;
    unsigned char window[KNOWN_WINDOW];
};

void known_sort(struct known_addresses *list);

/** Notes why there may be more blocks; the first reason counts. */
void known_incomplete(struct known_search *search, const char *reason);

/** Reads two words at an address, and more behind them, up to `end`, for the next call. */
bool known_read(struct known_search *search, uint64_t address, uint64_t end, uint64_t words[2]);

/** Walks through the chunks from `begin` to `top`, or to two that mark an end before `end`. Adds
 * those in use. Sets `stopped` to where it ended; false if the chunks do not fit together. */
bool known_chunks(struct known_search *search, uint64_t begin, uint64_t top, uint64_t end,
                  uint64_t *stopped);

/** Notes the chunks in the bins for small chunks of an arena. */
void known_bins(struct known_search *search, uint64_t arena);

/** Notes threads' caches and the chunks in them. */
void known_caches(struct known_search *search);

void known_add_block(struct known_search *search, uint64_t address, uint64_t size);

/** Adds blocks with mappings of their own, of so many bytes in all (UINT64_MAX: unknown). */
void known_mapped(struct known_search *search, uint64_t expected);

#endif
