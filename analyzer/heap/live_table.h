/* SPDX-License-Identifier: MIT */
/** The structures of the table of live blocks: see heap/live.h, which callers include. */
#ifndef ANALYZER_HEAP_LIVE_TABLE_H
#define ANALYZER_HEAP_LIVE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/model.h>

#include "base/hash.h"
#include "base/map.h"
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
    /** The table's own: index of its heap's life. */
    uint32_t life;
    /** A ttd_action: Alloc or ReAlloc. */
    uint8_t action;
    /** An enum ttd_api. */
    uint8_t api;
    /** The table's own: acquired, and not released since. It may be stale. */
    bool is_held;
    /** The table's own: its address has, or had, other records as well. */
    bool is_shared;
};

/** A slot of the index: 32 bits of the address's hash, the low ones of which say where it belongs,
 * and a number from 1 of a record; 0 in an empty one. */
struct heap_slot {
    uint32_t hash;
    uint32_t record;
};

#define HEAP_NO_LIFE UINT32_MAX

/** No ttd_id. */
#define HEAP_NO_HEAP UINT64_MAX

/** No record. */
#define HEAP_NO_RECORD UINT32_MAX

/** The most blocks that are live at one address. */
#define HEAP_SHARED_MAX 16

/** Limit below which records that are not live, and destroyed heaps, are not swept up, however few
 * blocks are live. */
#define HEAP_LITTER_MAX 4096

/** A heap from its first block to its destruction. */
struct heap_generation {
    /** In use: the heap. Unused: the next unused life. */
    uint32_t heap;
    bool has_ended;
    /** The heap has a parent. */
    bool is_nested;
    uint64_t blocks;
    struct heap_sum bytes;
    /** When it ended. */
    struct ttd_position end;
};

/** Called for a stale block that is forgotten; its heap was destroyed at `end`. */
typedef void (*heap_discard_function)(void *context, const struct heap_block *block,
                                      struct ttd_position end);

struct heap_live {
    struct heap_slot *slots;
    size_t slot_capacity;
    /** Records in use: live, stale or neither. */
    size_t used_records;
    /** Live blocks; and those of heaps without a parent, with their bytes. */
    uint64_t count;
    uint64_t outer_count;
    struct heap_sum bytes;
    struct hash_key key;

    /** The records; there is room for three for every four slots. */
    struct heap_block *blocks;
    uint32_t block_count;
    /** Records below block_count that are not in use, last freed first. */
    uint32_t *unused;
    uint32_t unused_count;

    struct heap_generation *lives;
    size_t life_capacity;
    uint32_t life_count;
    uint32_t life_unused;
    /** Lives that ended since the last sweep. */
    uint32_t life_ended;
    struct hash_map life_of_heap;
    /** The heap that was asked for last, and its life; HEAP_NO_HEAP if there is none. */
    uint64_t last_heap;
    uint32_t last_life;

    heap_discard_function discard;
    void *discard_context;

    /** The parents of heaps, each known before the first block of its heap. */
    struct heap_parents parents;
};

#endif
