/* SPDX-License-Identifier: MIT */

#include <stdlib.h>
#include <string.h>

#include "analyses/errors/errors.h"
#include "base/grow.h"
#include "base/table.h"

#define NONE UINT32_MAX

/* Distance of the prefetch in the ring, in entries. */
#define AHEAD 4

enum ttd_status heap_freed_init(struct heap_freed *freed, uint32_t capacity)
{
    uint32_t heads = 1;
    while (heads < capacity)
        heads *= 2;
    *freed = (struct heap_freed){.capacity = capacity, .mask = heads - 1, .key = hash_key_new()};
    /* In large pages: elsewhere prefetches are lost: the processor drops a prefetch of a page that
     * it does not know. */
    freed->keys = table_resize(NULL, 0, capacity * sizeof *freed->keys);
    freed->records = table_resize(NULL, 0, capacity * sizeof *freed->records);
    freed->heads = table_resize(NULL, 0, heads * sizeof *freed->heads);
    if (!freed->keys || !freed->records || !freed->heads) {
        heap_freed_free(freed);
        return TTD_ERROR_NO_MEMORY;
    }
    /* NONE in every head: all of its bytes are 0xff. */
    memset(freed->heads, 0xff, heads * sizeof *freed->heads);
    return TTD_OK;
}

void heap_freed_free(struct heap_freed *freed)
{
    table_free(freed->keys, freed->capacity * sizeof *freed->keys);
    table_free(freed->records, freed->capacity * sizeof *freed->records);
    table_free(freed->heads, ((size_t)freed->mask + 1) * sizeof *freed->heads);
    *freed = (struct heap_freed){0};
}

static uint32_t *errors_state_head_of(const struct heap_freed *freed, uint64_t address)
{
    return &freed->heads[hash_value(freed->key, address) & freed->mask];
}

/* The newest entry of an address and heap; NONE if there is none. */
static uint32_t freed_find(const struct heap_freed *freed, uint64_t address, ttd_id heap)
{
    uint32_t index = *errors_state_head_of(freed, address);
    for (; index != NONE; index = freed->keys[index].next) {
        const struct heap_freed_key *key = &freed->keys[index];
        bool may_be_same = key->heap == heap || key->heap == TTD_NONE || heap == TTD_NONE;
        if (key->address == address && may_be_same)
            break;
    }
    return index;
}

struct heap_freed_block *heap_freed_find(const struct heap_freed *freed, uint64_t address,
                                         ttd_id heap)
{
    uint32_t index = freed_find(freed, address, heap);
    return index == NONE ? NULL : &freed->records[index];
}

/* The entry stays in the ring, and address 0 marks it as empty: taking it out would move the
 * others.
 */
static void freed_empty_entry(struct heap_freed *freed, uint32_t index)
{
    struct heap_freed_key *key = &freed->keys[index];
    uint32_t *link = errors_state_head_of(freed, key->address);
    while (*link != index)
        link = &freed->keys[*link].next;
    *link = key->next;
    key->address = 0;
}

void heap_freed_remove(struct heap_freed *freed, uint64_t address, ttd_id heap)
{
    uint32_t index = freed_find(freed, address, heap);
    if (index != NONE)
        freed_empty_entry(freed, index);
}

/* Prefetches the entry that a later call replaces: the ring is larger than the cache. */
static void errors_state_prefetch_entry(const struct heap_freed *freed, uint32_t index)
{
    if (index >= freed->capacity)
        return;
    const char *record = (const char *)&freed->records[index];
    __builtin_prefetch(&freed->keys[index], 1);
    __builtin_prefetch(record, 1);
    __builtin_prefetch(record + sizeof *freed->records - 1, 1);
}

/* The ring overwrites the oldest entry, so that a release long ago is forgotten rather than memory
 * grows with the trace. */
struct heap_freed_block *heap_freed_add(struct heap_freed *freed, uint64_t address, ttd_id heap)
{
    uint32_t index = freed->position;
    errors_state_prefetch_entry(freed, index + AHEAD);
    freed->position = index + 1 == freed->capacity ? 0 : index + 1;
    if (freed->keys[index].address) {
        freed->forgotten++;
        freed_empty_entry(freed, index);
    }
    uint32_t *head = errors_state_head_of(freed, address);
    freed->keys[index] = (struct heap_freed_key){address, heap, *head};
    *head = index;
    struct heap_freed_block *record = &freed->records[index];
    record->address = address;
    record->heap = heap;
    return record;
}

const struct heap_freed_block *heap_freed_containing(const struct heap_freed *freed,
                                                     uint64_t address)
{
    /* From the newest entry on: of all blocks that had the address, the last owner is the one
     * meant. */
    for (uint32_t distance = 1; distance <= freed->capacity; distance++) {
        uint32_t index = freed->position >= distance ? freed->position - distance
                                                     : freed->position + freed->capacity - distance;
        const struct heap_freed_block *record = &freed->records[index];
        if (freed->keys[index].address && address > record->address &&
            address - record->address < record->size)
            return record;
    }
    return NULL;
}

void heap_status_table_init(struct heap_status_table *statuses)
{
    *statuses = (struct heap_status_table){0};
    map_init(&statuses->by_heap);
    map_init(&statuses->by_thread);
}

void heap_status_table_free(struct heap_status_table *statuses)
{
    free(statuses->statuses);
    free(statuses->holds);
    map_free(&statuses->by_heap);
    map_free(&statuses->by_thread);
    *statuses = (struct heap_status_table){0};
}

static struct heap_status *errors_state_heap_status_find(const struct heap_status_table *statuses,
                                                         ttd_id heap)
{
    uint32_t index = statuses->count ? map_get(&statuses->by_heap, heap, 0) : MAP_NONE;
    return index == MAP_NONE ? NULL : &statuses->statuses[index];
}

const struct heap_status *heap_status_table_of(const struct heap_status_table *statuses,
                                               ttd_id heap)
{
    return errors_state_heap_status_find(statuses, heap);
}

/* Heaps get a record when something happens to them: most never do. */
static enum ttd_status errors_state_heap_status_obtain(struct heap_status_table *statuses,
                                                       ttd_id heap,
                                                       struct heap_status **heap_status)
{
    *heap_status = errors_state_heap_status_find(statuses, heap);
    if (*heap_status)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&statuses->statuses, &statuses->capacity,
                                        statuses->count + 1, sizeof *statuses->statuses);
    if (status == TTD_OK)
        status = map_set(&statuses->by_heap, heap, 0, (uint32_t)statuses->count);
    if (status != TTD_OK)
        return status;
    *heap_status = &statuses->statuses[statuses->count++];
    **heap_status = (struct heap_status){.heap = heap,
                                         .destroyed = heap_call_none(),
                                         .read_only = heap_call_none(),
                                         .first_hold = HEAP_NO_HOLD,
                                         .last_hold = HEAP_NO_HOLD};
    return TTD_OK;
}

enum ttd_status heap_status_table_change(struct heap_status_table *statuses,
                                         const struct ttd_event *event)
{
    struct heap_status *heap_status;
    enum ttd_status status = errors_state_heap_status_obtain(statuses, event->heap, &heap_status);
    if (status != TTD_OK)
        return status;
    if (event->action == TTD_ACTION_PROTECT) {
        heap_status->read_only =
            event->make_read_only ? heap_call_of_event(event) : heap_call_none();
        return TTD_OK;
    }
    heap_status->generation++;
    heap_status->first_hold = heap_status->last_hold = HEAP_NO_HOLD;
    heap_status->read_only = heap_call_none();
    heap_status->destroyed =
        event->action == TTD_ACTION_DESTROY ? heap_call_of_event(event) : heap_call_none();
    return TTD_OK;
}

/* A heap that was destroyed or created since has another generation: its locks are void without a
 * walk through them. */
bool heap_hold_is_active(const struct heap_status_table *statuses, const struct heap_hold *hold)
{
    const struct heap_status *heap_status = errors_state_heap_status_find(statuses, hold->heap);
    return hold->depth && hold->generation == (heap_status ? heap_status->generation : 0);
}

/* Return the links out of a hold to its neighbours in the list of its heap. The ends of the list
 * stand for HEAP_NO_HOLD, so that taking out the first or the last hold is no special case. */
static uint32_t *errors_state_link_after(struct heap_status_table *statuses,
                                         struct heap_status *heap_status, uint32_t hold)
{
    return hold == HEAP_NO_HOLD ? &heap_status->first_hold : &statuses->holds[hold].after;
}

static uint32_t *errors_state_link_before(struct heap_status_table *statuses,
                                          struct heap_status *heap_status, uint32_t hold)
{
    return hold == HEAP_NO_HOLD ? &heap_status->last_hold : &statuses->holds[hold].before;
}

static void errors_state_heap_status_append(struct heap_status_table *statuses,
                                            struct heap_status *heap_status, uint32_t index)
{
    statuses->holds[index].before = heap_status->last_hold;
    statuses->holds[index].after = HEAP_NO_HOLD;
    *errors_state_link_after(statuses, heap_status, heap_status->last_hold) = index;
    heap_status->last_hold = index;
}

static void errors_state_heap_status_take_out(struct heap_status_table *statuses,
                                              struct heap_status *heap_status, uint32_t index)
{
    const struct heap_hold *hold = &statuses->holds[index];
    *errors_state_link_after(statuses, heap_status, hold->before) = hold->after;
    *errors_state_link_before(statuses, heap_status, hold->after) = hold->before;
}

/* The thread's hold of the heap, perhaps not active. */
static enum ttd_status errors_state_obtain_hold(struct heap_status_table *statuses,
                                                const struct ttd_event *event, uint32_t *index)
{
    *index = map_get(&statuses->by_thread, event->heap, event->thread);
    if (*index != MAP_NONE)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&statuses->holds, &statuses->hold_capacity,
                                        statuses->hold_count + 1, sizeof *statuses->holds);
    *index = (uint32_t)statuses->hold_count;
    if (status == TTD_OK)
        status = map_set(&statuses->by_thread, event->heap, event->thread, *index);
    if (status == TTD_OK)
        statuses->holds[statuses->hold_count++] = (struct heap_hold){.heap = event->heap};
    return status;
}

enum ttd_status heap_status_table_lock(struct heap_status_table *statuses,
                                       const struct ttd_event *event)
{
    struct heap_status *heap_status;
    uint32_t index;
    enum ttd_status status = errors_state_heap_status_obtain(statuses, event->heap, &heap_status);
    if (status == TTD_OK)
        status = errors_state_obtain_hold(statuses, event, &index);
    if (status != TTD_OK)
        return status;
    struct heap_hold *hold = &statuses->holds[index];
    if (!heap_hold_is_active(statuses, hold)) {
        *hold = (struct heap_hold){.heap = event->heap,
                                   .generation = heap_status->generation,
                                   .locked = heap_call_of_event(event)};
        errors_state_heap_status_append(statuses, heap_status, index);
    }
    hold->depth++;
    return TTD_OK;
}

bool heap_status_table_unlock(struct heap_status_table *statuses, const struct ttd_event *event)
{
    uint32_t index = map_get(&statuses->by_thread, event->heap, event->thread);
    if (index == MAP_NONE || !heap_hold_is_active(statuses, &statuses->holds[index]))
        return false;
    if (--statuses->holds[index].depth == 0)
        errors_state_heap_status_take_out(
            statuses, errors_state_heap_status_find(statuses, event->heap), index);
    return true;
}

const struct heap_hold *heap_status_table_held(const struct heap_status_table *statuses,
                                               ttd_id heap)
{
    const struct heap_status *heap_status = errors_state_heap_status_find(statuses, heap);
    if (!heap_status || heap_status->first_hold == HEAP_NO_HOLD)
        return NULL;
    return &statuses->holds[heap_status->first_hold];
}
