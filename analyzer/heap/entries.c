/* SPDX-License-Identifier: MIT */
#include "heap/entries.h"

#include <stdlib.h>

#include "base/grow.h"

/* No chunk has this number. */
#define NO_CHUNK UINT64_MAX

/* Ordinals that room is made for at once. */
#define ORDINALS_AHEAD 256

void heap_entries_init(heap_entries *entries)
{
    *entries = (heap_entries){.chunk = NO_CHUNK};
}

void heap_entries_free(heap_entries *entries)
{
    free(entries->items);
    heap_entries_init(entries);
}

/* Ordinals and entries are good until the next chunk, or the next sweep. */
void heap_entries_begin(heap_entries *entries, heap_live *live, uint64_t chunk)
{
    bool is_littered = heap_live_is_littered(live);
    if (is_littered)
        heap_live_sweep(live);
    if (is_littered || entries->chunk != chunk)
        entries->count = 0;
    entries->chunk = chunk;
}

/* An address that is to be looked up, and where its entry goes. */
typedef struct unknown {
    uint64_t address;
    uint32_t hash;
    uint32_t ordinal;
    uint32_t *entry;
} unknown;

/* Makes room for an ordinal, and for those that will come soon. */
static ttd_status reserve_ordinal(heap_entries *entries, uint32_t ordinal)
{
    size_t wanted = (size_t)ordinal + ORDINALS_AHEAD;
    ttd_status status =
        grow_array((void **)&entries->items, &entries->capacity, wanted, sizeof *entries->items);
    while (status == TTD_OK && entries->count < wanted)
        entries->items[entries->count++] = HEAP_NO_ENTRY;
    return status;
}

/* Takes the entry of an address, or adds the address to the list of those that have none yet. */
static inline ttd_status note(heap_entries *entries, uint64_t address, uint32_t ordinal,
                              uint32_t *entry, unknown *list, size_t *count)
{
    ttd_status status = TTD_OK;
    if (ordinal >= entries->count)
        status = reserve_ordinal(entries, ordinal);
    if (status != TTD_OK)
        return status;
    *entry = entries->items[ordinal];
    list[*count].address = address;
    list[*count].ordinal = ordinal;
    list[*count].entry = entry;
    *count += *entry == HEAP_NO_ENTRY;
    return TTD_OK;
}

static ttd_status find_entry(heap_entries *entries, heap_live *live, const unknown *wanted)
{
    uint32_t *entry = &entries->items[wanted->ordinal];
    ttd_status status = TTD_OK;
    if (*entry == HEAP_NO_ENTRY)
        status = heap_live_entry(live, wanted->address, wanted->hash, entry);
    *wanted->entry = *entry;
    return status;
}

/*
 * Which entries they are does not depend on what happens to them. From far memory come first the
 * slots of those to be looked up, then the records.
 */
ttd_status heap_entries_look_up(heap_entries *entries, heap_live *live, const ttd_event *events,
                                size_t count, heap_entry_pair *pairs)
{
    unknown list[2 * HEAP_ENTRIES_BATCH + 1];
    size_t n = 0;
    ttd_status status = TTD_OK;
    for (size_t i = 0; i < count && status == TTD_OK; i++) {
        const ttd_event *event = &events[i];
        if (event->base_address)
            status =
                note(entries, event->base_address, event->base_ordinal, &pairs[i].base, list, &n);
        if (event->address && status == TTD_OK)
            status =
                note(entries, event->address, event->address_ordinal, &pairs[i].address, list, &n);
    }
    for (size_t i = 0; i < n; i++) {
        list[i].hash = heap_live_hash(live, list[i].address);
        heap_live_prefetch(live, list[i].hash);
    }
    for (size_t i = 0; i < n; i++)
        heap_live_prefetch_record(live, list[i].hash);
    for (size_t i = 0; i < n && status == TTD_OK; i++)
        status = find_entry(entries, live, &list[i]);
    return status;
}
