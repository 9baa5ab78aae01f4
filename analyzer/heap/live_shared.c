/* SPDX-License-Identifier: MIT */
/* Blocks of several heaps at one address. Their records have the same hash, so they lie in one run
 * of slots; there are few of them, see HEAP_SHARED_MAX. */
#include "heap/live_parts.h"

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

static inline bool is_newer(const struct heap_live *live, uint32_t record, uint32_t than)
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
    if (view->oldest == HEAP_NO_RECORD || !is_newer(live, record, view->oldest))
        view->oldest = record;
    bool has_own =
        view->own_record != HEAP_NO_RECORD && live->blocks[view->own_record].heap == heap;
    bool may_be_own = heap == TTD_NONE || block->heap == TTD_NONE;
    if (block->heap == heap || (!has_own && may_be_own && is_newer(live, record, view->own_record)))
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
    size_t mask = live->slot_capacity - 1;
    for (size_t i = hash & mask; live->slots[i].record; i = (i + 1) & mask) {
        uint32_t candidate = live->slots[i].record - 1;
        if (live->slots[i].hash == hash && live->blocks[candidate].address == address)
            live_look_at(live, candidate, heap, &view);
    }
    return view;
}

uint32_t heap_live_own_slow(const struct heap_live *live, uint32_t record, ttd_id heap)
{
    return live_look(live, record, heap).own_record;
}

/* Adds a record to those of an address. */
static enum ttd_status share(struct heap_live *live, uint32_t *record)
{
    enum ttd_status status = heap_live_reserve(live, (uint64_t)live->used_records + 1);
    if (status != TTD_OK)
        return status;
    uint64_t address = live->blocks[*record].address;
    uint32_t hash = heap_live_hash(live, address);
    size_t mask = live->slot_capacity - 1;
    size_t slot = hash & mask;
    while (live->slots[slot].record)
        slot = (slot + 1) & mask;
    live->blocks[*record].is_shared = true;
    *record = heap_live_add_record(live, &live->slots[slot], address, hash);
    live->blocks[*record].is_shared = true;
    return TTD_OK;
}

/* Makes a record of an address free: the one that is not live, or another. */
static enum ttd_status take_spare(struct heap_live *live, uint32_t *record, uint32_t spare)
{
    if (spare == HEAP_NO_RECORD)
        return share(live, record);
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
        return take_spare(live, record, view.spare);
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
            status = take_spare(live, &record, view.spare);
        if (status != TTD_OK)
            return status;
    }
    heap_live_put(live, &live->blocks[record], block);
    heap_live_add(live, &live->generations[live->last_generation], block->size);
    return TTD_OK;
}
