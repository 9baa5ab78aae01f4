/* SPDX-License-Identifier: MIT */
#include "heap/heap_live.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/table.h"

void heap_parents_free(struct heap_parents *parents)
{
    map_free(&parents->by_heap);
    *parents = (struct heap_parents){.by_heap = {0}};
}

enum ttd_status heap_parents_copy(struct heap_parents *copy, const struct heap_parents *parents)
{
    return map_copy(&copy->by_heap, &parents->by_heap);
}

enum ttd_status heap_parents_add(struct heap_parents *parents, const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    if (batch->kind != TTD_KIND_HEAP_PARENTS)
        return TTD_OK;
    if (!parents->by_heap.count)
        map_init(&parents->by_heap);
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        const struct ttd_heap_parent *record = &batch->u.heap_parents[i];
        if (heap_parents_get(parents, record->heap) == TTD_NONE)
            status = map_set(&parents->by_heap, record->heap, 0, record->parent);
    }
    return status;
}

/* Internals of the table of live blocks. */

/** Forgets the block of a record that is stale. */
static inline void heap_live_discard(struct heap_live *live, struct heap_block *block)
{
    block->is_held = false;
    if (live->discard)
        live->discard(live->discard_context, block, live->generations[block->generation].end);
}

#define FIRST_CAPACITY 1024

/* A slot has 32 bits; this bounds the number of slots. */
#define CAPACITY_MAX ((size_t)1 << 31)

/* Bytes of records that are mapped at once. */
#define MAPPED_STEP (8 * LARGE_PAGE)

/* A record is one line of the cache: a large table begins with a page. */
_Static_assert(sizeof(struct heap_block) == 64, "size of a record");

static size_t live_records_of(size_t slots)
{
    return slots / 4 * 3;
}

static size_t live_record_bytes(size_t slots)
{
    return live_records_of(slots) * sizeof(struct heap_block);
}

static size_t live_slot_bytes(size_t slots)
{
    return slots * sizeof(uint32_t);
}

/* Returns the empty slot where another record of a hash belongs. */
static size_t live_empty_slot(const struct heap_live *live, uint32_t hash)
{
    uint32_t mask = heap_live_slot_mask(live);
    size_t slot = hash & mask;
    while (live->slots[slot])
        slot = (slot + 1) & mask;
    return slot;
}

/* Enters all records into the empty slots. */
static void live_fill_slots(struct heap_live *live)
{
    for (uint32_t record = 0; record < live->block_count; record++) {
        uint64_t address = live->blocks[record].address;
        if (!address)
            continue;
        uint32_t hash = heap_live_hash(live, address);
        heap_live_fill_slot(live, live_empty_slot(live, hash), hash, record);
    }
}

static enum ttd_status live_grow(struct heap_live *live, size_t capacity)
{
    uint32_t *unused = realloc(live->unused, live_records_of(capacity) * sizeof *unused);
    if (!unused)
        return TTD_ERROR_NO_MEMORY;
    live->unused = unused;
    uint32_t *slots = table_resize(NULL, 0, live_slot_bytes(capacity));
    if (!slots)
        return TTD_ERROR_NO_MEMORY;
    struct heap_block *blocks = table_resize(live->blocks, live_record_bytes(live->slot_capacity),
                                             live_record_bytes(capacity));
    if (!blocks) {
        table_free(slots, live_slot_bytes(capacity));
        return TTD_ERROR_NO_MEMORY;
    }
    live->blocks = blocks;
    /* A sidecar may claim any number of records, and have room made for them at once. */
    if (live->used_records > live_records_of(capacity) / 4)
        pages_map(slots, live_slot_bytes(capacity));
    table_give_back(live->slots, live_slot_bytes(live->slot_capacity));
    live->slots = slots;
    live->slot_capacity = capacity;
    live_fill_slots(live);
    return TTD_OK;
}

/* Has the pages of records mapped that come into use soon. */
static void live_map_ahead(struct heap_live *live)
{
    size_t end = live->mapped + MAPPED_STEP;
    if (end <= live_record_bytes(live->slot_capacity))
        pages_map((char *)live->blocks + live->mapped, MAPPED_STEP);
    live->mapped = end;
}

enum ttd_status heap_live_init(struct heap_live *live)
{
    *live = (struct heap_live){
        .key = hash_key_new(), .generation_unused = HEAP_NO_GENERATION, .last_heap = HEAP_NO_HEAP};
    map_init(&live->generation_of_heap);
    return live_grow(live, FIRST_CAPACITY);
}

void heap_live_drop_index(struct heap_live *live)
{
    if (live->slots)
        table_free(live->slots, live_slot_bytes(live->slot_capacity));
    live->slots = NULL;
}

enum ttd_status heap_live_make_index(struct heap_live *live)
{
    if (live->slots)
        return TTD_OK;
    live->slots = table_resize(NULL, 0, live_slot_bytes(live->slot_capacity));
    if (!live->slots)
        return TTD_ERROR_NO_MEMORY;
    live_fill_slots(live);
    return TTD_OK;
}

void heap_live_free(struct heap_live *live)
{
    heap_live_drop_index(live);
    table_free_used(live->blocks, live_record_bytes(live->slot_capacity),
                    live->block_count * sizeof *live->blocks);
    free(live->unused);
    free(live->generations);
    map_free(&live->generation_of_heap);
    heap_parents_free(&live->parents);
    *live = (struct heap_live){0};
}

enum ttd_status heap_live_reserve(struct heap_live *live, uint64_t count)
{
    size_t capacity = live->slot_capacity;
    while (live_records_of(capacity) < count) {
        if (capacity >= CAPACITY_MAX)
            return TTD_ERROR_NO_MEMORY;
        capacity = table_next(capacity, sizeof *live->slots);
    }
    enum ttd_status status = capacity > live->slot_capacity ? live_grow(live, capacity) : TTD_OK;
    if (status == TTD_OK && count * sizeof *live->blocks > live->mapped)
        live_map_ahead(live);
    return status;
}

uint32_t heap_live_record_slow(struct heap_live *live, uint64_t address, uint32_t hash)
{
    size_t slot = heap_live_probe(live, address, hash);
    return live->slots[slot] ? heap_live_slot_record(live, slot)
                             : heap_live_add_record(live, slot, address, hash);
}

static enum ttd_status live_new_generation(struct heap_live *live, ttd_id heap,
                                           uint32_t *generation)
{
    if (live->generation_unused != HEAP_NO_GENERATION) {
        *generation = live->generation_unused;
        live->generation_unused = live->generations[*generation].heap;
    } else {
        enum ttd_status status =
            grow_array((void **)&live->generations, &live->generation_capacity,
                       (size_t)live->generation_count + 1, sizeof *live->generations);
        if (status != TTD_OK)
            return status;
        *generation = live->generation_count++;
    }
    live->generations[*generation] = (struct heap_generation){
        .heap = heap, .is_nested = heap_parents_get(&live->parents, heap) != TTD_NONE};
    return map_set(&live->generation_of_heap, heap, 0, *generation);
}

/** Makes a heap the one used last: a new block of it belongs to its generation. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
static enum ttd_status heap_live_use(struct heap_live *live, ttd_id heap)
{
    uint32_t generation = map_get(&live->generation_of_heap, heap, 0);
    if (generation == MAP_NONE || live->generations[generation].has_ended ||
        live->generations[generation].heap != heap) {
        enum ttd_status status = live_new_generation(live, heap, &generation);
        if (status != TTD_OK)
            return status;
    }
    live->last_heap = heap;
    live->last_generation = generation;
    return TTD_OK;
}

struct heap_block *heap_live_find(const struct heap_live *live, uint64_t address, ttd_id heap)
{
    uint32_t record = heap_live_known_record(live, address, heap_live_hash(live, address));
    if (record != HEAP_NO_RECORD)
        record = heap_live_own(live, record, heap);
    return record == HEAP_NO_RECORD ? NULL : &live->blocks[record];
}

uint64_t heap_live_destroy(struct heap_live *live, ttd_id heap, struct ttd_position end)
{
    uint32_t generation = map_get(&live->generation_of_heap, heap, 0);
    if (generation == MAP_NONE || live->generations[generation].has_ended ||
        live->generations[generation].heap != heap)
        return 0;
    uint64_t blocks = live->generations[generation].blocks;
    if (!blocks)
        return 0;
    live->generations[generation].has_ended = true;
    live->generations[generation].end = end;
    live->generation_ended++;
    live->last_heap = HEAP_NO_HEAP;
    live->count -= blocks;
    if (!live->generations[generation].is_nested) {
        live->outer_count -= blocks;
        heap_sum_subtract(&live->bytes, live->generations[generation].bytes);
    }
    return blocks;
}

/* No record refers to an ended generation any more: all of these can be used again. */
static void recycle_lives(struct heap_live *live)
{
    live->generation_unused = HEAP_NO_GENERATION;
    live->generation_ended = 0;
    for (uint32_t i = 0; i < live->generation_count; i++) {
        if (!live->generations[i].has_ended)
            continue;
        live->generations[i].heap = live->generation_unused;
        live->generation_unused = i;
    }
}

/* The index is made anew: that takes less than to remove most records from it, and a sweep pays
 * only where most go. */
void heap_live_sweep(struct heap_live *live)
{
    assert(live->slots);
    for (uint32_t i = live->block_count; i > 0; i--) {
        struct heap_block *block = &live->blocks[i - 1];
        if (!block->address || heap_live_has(live, block))
            continue;
        if (block->is_held)
            heap_live_discard(live, block);
        block->address = 0;
        live->unused[live->unused_count++] = i - 1;
    }
    live->used_records = live->block_count - live->unused_count;
    memset(live->slots, 0, live_slot_bytes(live->slot_capacity));
    live_fill_slots(live);
    recycle_lives(live);
}

void heap_live_discard_stale(struct heap_live *live)
{
    for (uint32_t i = live->block_count; live->generation_ended && i > 0; i--) {
        struct heap_block *block = &live->blocks[i - 1];
        if (!block->address || !block->is_held || heap_live_has(live, block))
            continue;
        heap_live_discard(live, block);
        block->is_held = false;
    }
}

struct heap_block *heap_live_each(const struct heap_live *live, size_t *cursor)
{
    while (*cursor < live->block_count) {
        struct heap_block *block = &live->blocks[(*cursor)++];
        if (block->address && heap_live_has(live, block))
            return block;
    }
    return NULL;
}

/* Blocks of several heaps at one address. Their records have the same hash, so they lie in one run
 * of slots; there are few of them, see HEAP_SHARED_MAX. */

/* The records of an address, as an event of a heap sees them; HEAP_NO_RECORD where there is none.
 */
struct view {
    /** The live block that the event means. */
    uint32_t own_record;
    /** One that is not live. */
    uint32_t spare;
    /** The oldest live block, and how many there are. */
    uint32_t oldest;
    uint32_t count;
};

static inline bool live_is_newer(const struct heap_live *live, uint32_t record, uint32_t than)
{
    return than == HEAP_NO_RECORD || live->blocks[record].event > live->blocks[than].event;
}

/* The block of the same heap is meant, else the newest that may be of it: a heap may be unknown. */
static void live_look_at(const struct heap_live *live, uint32_t record, ttd_id heap,
                         struct view *view)
{
    const struct heap_block *block = &live->blocks[record];
    if (!heap_live_has(live, block)) {
        view->spare = record;
        return;
    }
    view->count++;
    if (view->oldest == HEAP_NO_RECORD || !live_is_newer(live, record, view->oldest))
        view->oldest = record;
    bool has_own =
        view->own_record != HEAP_NO_RECORD && live->blocks[view->own_record].heap == heap;
    bool may_be_own = heap == TTD_NONE || block->heap == TTD_NONE;
    if (block->heap == heap ||
        (!has_own && may_be_own && live_is_newer(live, record, view->own_record)))
        view->own_record = record;
}

static struct view live_look(const struct heap_live *live, uint32_t record, ttd_id heap)
{
    struct view view = {HEAP_NO_RECORD, HEAP_NO_RECORD, HEAP_NO_RECORD, 0};
    if (!live->blocks[record].is_shared) {
        live_look_at(live, record, heap, &view);
        return view;
    }
    uint64_t address = live->blocks[record].address;
    uint32_t hash = heap_live_hash(live, address);
    uint32_t mask = heap_live_slot_mask(live);
    for (size_t slot = heap_live_find_slot(live, hash); live->slots[slot];
         slot = heap_live_next_slot(live, (slot + 1) & mask, hash)) {
        uint32_t candidate = heap_live_slot_record(live, slot);
        if (live->blocks[candidate].address == address)
            live_look_at(live, candidate, heap, &view);
    }
    return view;
}

uint32_t heap_live_own_slow(const struct heap_live *live, uint32_t record, ttd_id heap)
{
    return live_look(live, record, heap).own_record;
}

/* Adds a record to the records of an address. */
static enum ttd_status live_share(struct heap_live *live, uint32_t *record)
{
    enum ttd_status status = heap_live_reserve(live, (uint64_t)live->used_records + 1);
    if (status != TTD_OK)
        return status;
    uint64_t address = live->blocks[*record].address;
    uint32_t hash = heap_live_hash(live, address);
    live->blocks[*record].is_shared = true;
    *record = heap_live_add_record(live, live_empty_slot(live, hash), address, hash);
    live->blocks[*record].is_shared = true;
    return TTD_OK;
}

/* Makes a record of an address free: the one that is not live, or another. */
static enum ttd_status live_take_spare(struct heap_live *live, uint32_t *record, uint32_t spare)
{
    if (spare == HEAP_NO_RECORD)
        return live_share(live, record);
    *record = spare;
    if (live->blocks[spare].is_held)
        heap_live_discard(live, &live->blocks[spare]);
    return TTD_OK;
}

enum ttd_status heap_live_make_free(struct heap_live *live, uint32_t *record, ttd_id heap,
                                    struct heap_block *replaced)
{
    enum ttd_status status = live->last_heap == heap ? TTD_OK : heap_live_use(live, heap);
    struct view view = live_look(live, *record, heap);
    uint32_t released = view.own_record;
    if (released == HEAP_NO_RECORD && view.count == HEAP_SHARED_MAX)
        released = view.oldest;
    if (status != TTD_OK)
        return status;
    if (released == HEAP_NO_RECORD)
        return live_take_spare(live, record, view.spare);
    *record = released;
    *replaced = live->blocks[released];
    (void)heap_live_release(live, released);
    return TTD_OK;
}

enum ttd_status heap_live_restore(struct heap_live *live, uint32_t record,
                                  const struct heap_block *block)
{
    if (!heap_live_is_free(live, &live->blocks[record], block->heap)) {
        enum ttd_status status = heap_live_use(live, block->heap);
        struct view view = live_look(live, record, block->heap);
        bool has_own =
            view.own_record != HEAP_NO_RECORD && live->blocks[view.own_record].heap == block->heap;
        if (status == TTD_OK && (has_own || view.count == HEAP_SHARED_MAX))
            status = TTD_ERROR_CORRUPT;
        if (status == TTD_OK)
            status = live_take_spare(live, &record, view.spare);
        if (status != TTD_OK)
            return status;
    }
    heap_live_put(live, &live->blocks[record], block);
    heap_live_add(live, &live->generations[live->last_generation], block->size);
    return TTD_OK;
}

int heap_compare_blocks(const void *a, const void *b)
{
    const struct heap_block *x = a;
    const struct heap_block *y = b;
    if (x->address != y->address)
        return x->address > y->address ? 1 : -1;
    return (x->heap > y->heap) - (x->heap < y->heap);
}

void heap_sort_blocks(const struct heap_block *blocks, struct sort_key *keys,
                      struct sort_key *spare, size_t count)
{
    sort_keys(keys, spare, count);
    /* Insertion: an address has few blocks, most often one. */
    for (size_t i = 1; i < count; i++) {
        struct sort_key key = keys[i];
        size_t gap = i;
        for (; gap > 0 && keys[gap - 1].value == key.value &&
               blocks[keys[gap - 1].index].heap > blocks[key.index].heap;
             gap--)
            keys[gap] = keys[gap - 1];
        keys[gap] = key;
    }
}

const struct heap_block *heap_live_containing(const struct heap_live *live, uint64_t address)
{
    const struct heap_block *best = NULL;
    const struct heap_block *block;
    size_t cursor = 0;
    while ((block = heap_live_each(live, &cursor))) {
        if (heap_block_covers(block, address, address) &&
            (!best || heap_compare_blocks(block, best) > 0))
            best = block;
    }
    return best;
}
