/* SPDX-License-Identifier: MIT */
/**
 * From the ordinals of a chunk's addresses (see ttd_event) to entries of the table of live blocks:
 * each is looked up once a chunk.
 */
#ifndef ANALYZER_HEAP_ENTRIES_H
#define ANALYZER_HEAP_ENTRIES_H

#include "heap/live.h"

#define HEAP_NO_ENTRY UINT32_MAX

/** Events that are looked up together. */
#define HEAP_ENTRIES_BATCH 64

/** All zero but for `chunk` when empty: see heap_entries_init(). */
typedef struct heap_entries {
    /** By ordinal; HEAP_NO_ENTRY where not looked up yet. */
    uint32_t *items;
    size_t count;
    size_t capacity;
    uint64_t chunk;
} heap_entries;

/** What a call refers to; without meaning where the event's address is 0. */
typedef struct heap_entry_pair {
    uint32_t base;
    uint32_t address;
} heap_entry_pair;

void heap_entries_init(heap_entries *entries);
void heap_entries_free(heap_entries *entries);

/** Forgets all unless the chunk is the same as before, and where the table must be swept, which it
 * is.
 */
void heap_entries_begin(heap_entries *entries, heap_live *live, uint64_t chunk);

/**
 * Finds the entries of all addresses of up to HEAP_ENTRIES_BATCH events.
 *
 * @param pairs  set on TTD_OK, one for each event
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
ttd_status heap_entries_look_up(heap_entries *entries, heap_live *live, const ttd_event *events,
                                size_t count, heap_entry_pair *pairs);

#endif
