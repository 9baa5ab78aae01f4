/* SPDX-License-Identifier: MIT */
/** The structures of the table of live blocks: see heap/heap_live.h, which callers include. */
#ifndef ANALYZER_HEAP_LIVE_TABLE_H
#define ANALYZER_HEAP_LIVE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/model.h>

#include "base/hash_map.h"
#include "heap/parents.h"
#include "heap/sum.h"

/** A block: live, or the last one at its address. */
struct heap_block {
    /** 0 in a record that is not in use. */
    uint64_t address;
    uint64_t size;
    /** Number of the event that acquired it. */
    uint64_t event;
    /** When it was acquired: time_end of that event. */
    struct ttd_position allocated;
    ttd_id thread;
    ttd_id stack;
    ttd_id heap;
    /** Free for the observer of the replay; 0 at first, and kept by a reallocation. */
    uint32_t user;
    /** The table's own: index of its heap's generation. */
    uint32_t generation;
    /** A ttd_action: Alloc or ReAlloc. */
    uint8_t action;
    /** An enum ttd_api. */
    uint8_t api;
    /** The table's own: acquired, and not released since. It may be stale. */
    bool is_held;
    /** The table's own: its address has, or had, other records as well. */
    bool is_shared;
};

/** A slot of the index. */
struct heap_slot {
    /** 32 bits of the hash of the address. Their low bits give the slot where it belongs. */
    uint32_t hash;
    /** 1 more than the number of the record; 0 in an empty slot. */
    uint32_t record;
};

#define HEAP_NO_GENERATION UINT32_MAX

/** A value that is no ttd_id. */
#define HEAP_NO_HEAP UINT64_MAX

/** A value that is the number of no record. */
#define HEAP_NO_RECORD UINT32_MAX

/** The largest number of blocks that are live at one address. */
#define HEAP_SHARED_MAX 16

/** Number of records that are not live, and of destroyed heaps, below which no sweep pays, however
 * few blocks are live. */
#define HEAP_LITTER_MAX 4096

/** A generation of a heap: from its first block to its destruction. */
struct heap_generation {
    /** In use: the heap. Unused: the next unused generation. */
    uint32_t heap;
    bool has_ended;
    /** The heap has a parent. */
    bool is_nested;
    uint64_t blocks;
    struct heap_sum bytes;
    /** Position at which it ended. */
    struct ttd_position end;
};

/** Receives a stale block before it is forgotten. Its heap was destroyed at `end`. */
typedef void (*heap_discard_function)(void *context, const struct heap_block *block,
                                      struct ttd_position end);

struct heap_live {
    struct heap_slot *slots;
    size_t slot_capacity;
    /** Records in use: live, stale or neither. */
    size_t used_records;
    /** Number of live blocks. */
    uint64_t count;
    /** Number and bytes of the live blocks of heaps without a parent. */
    uint64_t outer_count;
    struct heap_sum bytes;
    struct hash_key key;

    /** The records: room for three in every four slots. */
    struct heap_block *blocks;
    uint32_t block_count;
    /** Bytes of the records behind which the system was not asked to map any yet. */
    size_t mapped;
    /** Records below block_count that are not in use, last freed first. */
    uint32_t *unused;
    uint32_t unused_count;

    struct heap_generation *generations;
    size_t generation_capacity;
    uint32_t generation_count;
    uint32_t generation_unused;
    /** Generations that ended since the last sweep. */
    uint32_t generation_ended;
    struct hash_map generation_of_heap;
    /** The heap that was asked for last, and its generation; HEAP_NO_HEAP if there is none. */
    uint64_t last_heap;
    uint32_t last_generation;

    heap_discard_function discard;
    void *discard_context;

    /** The parents of heaps. Each is known before the first block of its heap. */
    struct heap_parents parents;
};

#endif
