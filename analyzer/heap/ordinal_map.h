/* SPDX-License-Identifier: MIT */
/**
 * Maps the ordinals of a chunk's addresses (see ttd_event) to records of the table of live blocks,
 * so that each address is looked up once a chunk.
 */
#ifndef ANALYZER_HEAP_ORDINAL_MAP_H
#define ANALYZER_HEAP_ORDINAL_MAP_H

#include <ttdtrace/reader.h>

#include "heap/heap_live.h"

/** All zero but for `chunk` when empty: see heap_ordinal_map_init(). */
struct heap_ordinal_map {
    /** By ordinal. */
    uint32_t *records;
    size_t count;
    size_t capacity;
    /** Offset of the chunk in the file, since in a damaged trace two may have the same number. */
    uint64_t chunk;
};

void heap_ordinal_map_init(struct heap_ordinal_map *ordinals);
void heap_ordinal_map_free(struct heap_ordinal_map *ordinals);

/**
 * Begins a chunk. A chunk other than the last one makes the map forget all records, and sweeps the
 * table if it is littered.
 *
 * @param chunk  offset of the chunk
 */
void heap_ordinal_map_begin(struct heap_ordinal_map *ordinals, struct heap_live *live,
                            uint64_t chunk);

/**
 * Finds the records of all addresses that a batch of events adds to those of its chunk; the batches
 * before were added already. A batch may be added twice.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_ARGUMENT (batches before are missing).
 */
enum ttd_status heap_ordinal_map_add(struct heap_ordinal_map *ordinals, struct heap_live *live,
                                     const struct ttd_batch *batch);

/** Returns the record of an ordinal that was added. */
static inline uint32_t heap_ordinal_map_get(const struct heap_ordinal_map *ordinals,
                                            uint32_t ordinal)
{
    return ordinals->records[ordinal];
}

#endif
