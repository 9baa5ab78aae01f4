/* SPDX-License-Identifier: MIT */
#include "heap/live.h"

#include <stdlib.h>

#include "base/grow.h"

#define FIRST_CAPACITY 1024

/* Stale blocks that are tolerated beyond the number of live ones. */
#define STALE_MAX 4096

/* Records that are fetched before they are needed. */
#define AHEAD 8

#define NO_LIFE UINT32_MAX

ttd_status heap_live_init(heap_live *live)
{
    *live = (heap_live){.key = hash_key_new(), .life_unused = NO_LIFE, .last_life = NO_LIFE};
    map_init(&live->life_of_heap);
    live->slots = calloc(FIRST_CAPACITY, sizeof *live->slots);
    if (!live->slots)
        return TTD_ERROR_NO_MEMORY;
    live->slot_capacity = FIRST_CAPACITY;
    return TTD_OK;
}

void heap_live_free(heap_live *live)
{
    free(live->slots);
    free(live->blocks);
    free(live->unused);
    free(live->lives);
    map_free(&live->life_of_heap);
    *live = (heap_live){0};
}

static inline size_t home_of(const heap_live *live, uint64_t address)
{
    return (size_t)hash_value(live->key, address) & (live->slot_capacity - 1);
}

/* The slot of the address, or the empty one where it belongs. */
static inline heap_slot *probe(const heap_live *live, uint64_t address)
{
    size_t i = home_of(live, address);
    while (live->slots[i].address != address && live->slots[i].address)
        i = (i + 1) & (live->slot_capacity - 1);
    return &live->slots[i];
}

static inline bool is_stale(const heap_live *live, const heap_slot *slot)
{
    return live->lives[slot->life].ended;
}

static void forget(heap_live *live, const heap_slot *slot)
{
    if (live->discard)
        live->discard(live->discard_context, &live->blocks[slot->block]);
    live->unused[live->unused_count++] = slot->block;
}

/* No slot refers to an ended life any more: they can be used again. */
static void recycle_lives(heap_live *live)
{
    live->life_unused = NO_LIFE;
    for (uint32_t i = 0; i < live->life_count; i++) {
        if (!live->lives[i].ended)
            continue;
        live->lives[i].heap = live->life_unused;
        live->life_unused = i;
    }
}

/* Moves all live blocks to a new index; stale ones are forgotten. */
static ttd_status rebuild(heap_live *live, size_t capacity)
{
    heap_slot *old = live->slots;
    size_t old_capacity = live->slot_capacity;
    heap_slot *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return TTD_ERROR_NO_MEMORY;
    grow_hint(slots, capacity * sizeof *slots);
    live->slots = slots;
    live->slot_capacity = capacity;
    live->filled = 0;
    for (size_t i = 0; i < old_capacity; i++) {
        if (!old[i].address)
            continue;
        if (is_stale(live, &old[i])) {
            forget(live, &old[i]);
            continue;
        }
        *probe(live, old[i].address) = old[i];
        live->filled++;
    }
    free(old);
    recycle_lives(live);
    return TTD_OK;
}

static ttd_status make_room(heap_live *live)
{
    if (live->filled >= live->slot_capacity / 2) {
        bool mostly_stale = live->count < live->filled / 2;
        if (!mostly_stale && live->slot_capacity > SIZE_MAX / 2 / sizeof(heap_slot))
            return TTD_ERROR_NO_MEMORY;
        ttd_status status =
            rebuild(live, mostly_stale ? live->slot_capacity : live->slot_capacity * 2);
        if (status != TTD_OK)
            return status;
    }
    if (live->unused_count || live->block_count < live->block_capacity)
        return TTD_OK;
    if (live->block_count == UINT32_MAX)
        return TTD_ERROR_NO_MEMORY;
    /* Both grow alike, `unused` first: it always has room for every block. */
    size_t wanted = (size_t)live->block_count + 1;
    ttd_status status =
        grow_array((void **)&live->unused, &live->unused_capacity, wanted, sizeof *live->unused);
    if (status != TTD_OK)
        return status;
    status =
        grow_array((void **)&live->blocks, &live->block_capacity, wanted, sizeof *live->blocks);
    if (status == TTD_OK)
        grow_hint(live->blocks, live->block_capacity * sizeof *live->blocks);
    return status;
}

/* Room for one more: at most half of the slots are in use. */
static inline ttd_status reserve(heap_live *live)
{
    bool has_slot = live->filled < live->slot_capacity / 2;
    bool has_block = live->unused_count || live->block_count < live->block_capacity;
    return has_slot && has_block ? TTD_OK : make_room(live);
}

static ttd_status new_life(heap_live *live, ttd_id heap, uint32_t *life)
{
    if (live->life_unused != NO_LIFE) {
        *life = live->life_unused;
        live->life_unused = live->lives[*life].heap;
    } else {
        ttd_status status = grow_array((void **)&live->lives, &live->life_capacity,
                                       (size_t)live->life_count + 1, sizeof *live->lives);
        if (status != TTD_OK)
            return status;
        *life = live->life_count++;
    }
    live->lives[*life] = (heap_life){.heap = heap};
    return map_set(&live->life_of_heap, heap, 0, *life);
}

static ttd_status find_life(heap_live *live, ttd_id heap, uint32_t *life)
{
    *life = map_get(&live->life_of_heap, heap, 0);
    if (*life == MAP_NONE || live->lives[*life].ended || live->lives[*life].heap != heap) {
        ttd_status status = new_life(live, heap, life);
        if (status != TTD_OK)
            return status;
    }
    live->last_heap = heap;
    live->last_life = *life;
    return TTD_OK;
}

/* The life that a new block of the heap belongs to. */
static inline ttd_status life_of(heap_live *live, ttd_id heap, uint32_t *life)
{
    *life = live->last_life;
    if (live->last_life != NO_LIFE && live->last_heap == heap)
        return TTD_OK;
    return find_life(live, heap, life);
}

/* A record that is not in use. One that comes soon is fetched meanwhile. */
static inline uint32_t take_unused(heap_live *live)
{
    uint32_t index = --live->unused_count;
    if (index >= AHEAD)
        __builtin_prefetch(&live->blocks[live->unused[index - AHEAD]], 1);
    return live->unused[index];
}

ttd_status heap_live_insert(heap_live *live, uint64_t address, ttd_id heap,
                            heap_insertion *insertion)
{
    uint32_t life = 0;
    ttd_status status = reserve(live);
    if (status == TTD_OK)
        status = life_of(live, heap, &life);
    if (status != TTD_OK)
        return status;
    heap_slot *slot = probe(live, address);
    insertion->replaced = false;
    if (!slot->address) {
        slot->address = address;
        slot->block = live->unused_count ? take_unused(live) : live->block_count++;
        live->filled++;
        live->count++;
    } else if (is_stale(live, slot)) {
        if (live->discard)
            live->discard(live->discard_context, &live->blocks[slot->block]);
        live->count++;
    } else {
        insertion->replaced = true;
        live->lives[slot->life].blocks--;
    }
    slot->life = life;
    live->lives[life].blocks++;
    insertion->block = &live->blocks[slot->block];
    return TTD_OK;
}

/* Empties a slot, and moves later ones nearer to their home, so that no probe ends early. */
static void empty_slot(heap_live *live, size_t hole)
{
    size_t mask = live->slot_capacity - 1;
    size_t i = hole;
    for (;;) {
        i = (i + 1) & mask;
        if (!live->slots[i].address)
            break;
        size_t home = home_of(live, live->slots[i].address);
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        live->slots[hole] = live->slots[i];
        hole = i;
    }
    live->slots[hole].address = 0;
    live->filled--;
}

bool heap_live_remove(heap_live *live, uint64_t address, heap_block *old)
{
    heap_slot *slot = probe(live, address);
    if (!slot->address || is_stale(live, slot))
        return false;
    if (old)
        *old = live->blocks[slot->block];
    live->lives[slot->life].blocks--;
    live->unused[live->unused_count++] = slot->block;
    live->count--;
    empty_slot(live, (size_t)(slot - live->slots));
    return true;
}

heap_block *heap_live_find(const heap_live *live, uint64_t address)
{
    const heap_slot *slot = probe(live, address);
    return slot->address && !is_stale(live, slot) ? &live->blocks[slot->block] : NULL;
}

uint64_t heap_live_destroy(heap_live *live, ttd_id heap)
{
    uint32_t life = map_get(&live->life_of_heap, heap, 0);
    if (life == MAP_NONE || live->lives[life].ended || live->lives[life].heap != heap)
        return 0;
    uint64_t blocks = live->lives[life].blocks;
    if (!blocks)
        return 0;
    live->lives[life].ended = true;
    live->last_life = NO_LIFE;
    live->count -= blocks;
    /* A failed sweep changes nothing; the next one may succeed. */
    if (live->filled - live->count > live->count + STALE_MAX)
        (void)heap_live_sweep(live);
    return blocks;
}

ttd_status heap_live_sweep(heap_live *live)
{
    return live->filled == live->count ? TTD_OK : rebuild(live, live->slot_capacity);
}

heap_block *heap_live_each(const heap_live *live, size_t *cursor)
{
    while (*cursor < live->slot_capacity) {
        const heap_slot *slot = &live->slots[(*cursor)++];
        if (slot->address && !is_stale(live, slot))
            return &live->blocks[slot->block];
    }
    return NULL;
}
