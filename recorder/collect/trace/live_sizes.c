/* SPDX-License-Identifier: MIT */
#include "collect/trace/live_sizes.h"

#include <stdlib.h>
#include <sys/random.h>

#include "arrays.h"

/* Slots of a table, powers of two: 64 MB for each process at most. */
enum { SIZES_FIRST = 1 << 10, SIZES_LAST = 1 << 22 };

struct live_sizes *live_sizes_new(enum live_doubt doubt)
{
    struct live_sizes *sizes = calloc(1, sizeof *sizes);
    if (!sizes)
        return NULL;
    sizes->doubt = doubt;
    if (getrandom(&sizes->key, sizeof sizes->key, 0) != sizeof sizes->key)
        sizes->key = (uintptr_t)sizes;
    return sizes;
}

void live_sizes_free(struct live_sizes *sizes)
{
    if (!sizes)
        return;
    free(sizes->slots);
    free(sizes->flights);
    free(sizes);
}

/* Returns the slot where a block is, or belongs. */
static size_t sizes_slot(const struct live_sizes *sizes, uint64_t address)
{
    size_t mask = sizes->room - 1;
    size_t slot = array_hash(address ^ sizes->key, sizes->key | 1) & mask;
    while (sizes->slots[slot].address != 0 && sizes->slots[slot].address != address)
        slot = (slot + 1) & mask;
    return slot;
}

/* Makes room for one more block. Returns false if there can be none. */
static bool sizes_reserve(struct live_sizes *sizes)
{
    struct live_sizes old = *sizes;
    if (sizes->count < sizes->room - sizes->room / 4)
        return true;
    size_t room = old.room != 0 ? 2 * old.room : SIZES_FIRST;
    struct live_size *slots = room <= SIZES_LAST ? calloc(room, sizeof *slots) : NULL;
    if (!slots)
        return false;
    sizes->slots = slots;
    sizes->room = room;
    for (size_t i = 0; i < old.room; i++)
        if (old.slots[i].address != 0)
            slots[sizes_slot(sizes, old.slots[i].address)] = old.slots[i];
    free(old.slots);
    return true;
}

static void sizes_release(struct live_sizes *sizes, uint64_t address)
{
    size_t slot = sizes->room != 0 ? sizes_slot(sizes, address) : 0;
    if (sizes->room == 0 || sizes->slots[slot].address == 0)
        return;
    sizes->bytes -= sizes->slots[slot].size;
    sizes->count--;
    sizes->slots[slot].address = 0;
    /* Closes the gap. */
    for (slot = (slot + 1) & (sizes->room - 1); sizes->slots[slot].address != 0;
         slot = (slot + 1) & (sizes->room - 1)) {
        struct live_size moved = sizes->slots[slot];
        sizes->slots[slot].address = 0;
        sizes->slots[sizes_slot(sizes, moved.address)] = moved;
    }
}

static void sizes_acquire(struct live_sizes *sizes, uint64_t address, uint64_t size)
{
    sizes_release(sizes, address); /* if its release is missing, as in a reader */
    if (!sizes_reserve(sizes)) {
        live_sizes_doubt(sizes, LIVE_NO_ROOM);
        return;
    }
    sizes->slots[sizes_slot(sizes, address)] = (struct live_size){address, size};
    sizes->count++;
    sizes->bytes += size;
}

/* Notes the block of a reallocation whose end is ahead. Its bytes count. */
static void sizes_await(struct live_sizes *sizes, const struct ttd_event *event)
{
    struct live_flight *flights = array_grow(sizes->flights, sizes->flight_count,
                                             &sizes->flight_capacity, sizeof *sizes->flights);
    if (!flights) {
        live_sizes_doubt(sizes, LIVE_UNKNOWN);
        return;
    }
    sizes->flights = flights;
    flights[sizes->flight_count++] =
        (struct live_flight){event->time_end, {event->address, event->size}};
    sizes->bytes += event->size;
}

/* Enters the blocks of reallocations that have ended by a position: others may have released an
 * earlier block at the address since they began. */
static void sizes_land(struct live_sizes *sizes, struct ttd_position position)
{
    size_t left = 0;
    for (size_t i = 0; i < sizes->flight_count; i++) {
        const struct live_flight flight = sizes->flights[i];
        if (ttd_position_compare(flight.end, position) > 0) {
            sizes->flights[left++] = flight;
            continue;
        }
        sizes->bytes -= flight.block.size;
        sizes_acquire(sizes, flight.block.address, flight.block.size);
    }
    sizes->flight_count = left;
}

static void sizes_clear(struct live_sizes *sizes)
{
    free(sizes->slots);
    free(sizes->flights);
    *sizes = (struct live_sizes){.key = sizes->key, .doubt = sizes->doubt};
}

void live_sizes_event(struct live_sizes *sizes, const struct ttd_event *event)
{
    if (event->action == TTD_ACTION_DESTROY) {
        sizes_clear(sizes);
        if (sizes->doubt != LIVE_ABOVE && sizes->doubt != LIVE_SAMPLE)
            sizes->doubt = LIVE_EXACT;
    }
    if (sizes->doubt >= LIVE_UNKNOWN)
        return;
    bool acquires = event->action == TTD_ACTION_ALLOC && ttd_event_returned(event);
    sizes_land(sizes, acquires ? event->time_end : event->time_start);
    /* A reallocation that fails releases nothing. */
    bool has_failed =
        event->action == TTD_ACTION_REALLOC && event->address == 0 && event->size != 0;
    if (event->base_address != 0 && !has_failed)
        sizes_release(sizes, event->base_address);
    if (event->address != 0 && event->action == TTD_ACTION_REALLOC && ttd_event_returned(event))
        sizes_await(sizes, event);
    else if (event->address != 0)
        sizes_acquire(sizes, event->address, event->size);
}

void live_sizes_calls(struct live_sizes *sizes, const struct ttd_calls *calls)
{
    sizes_land(sizes, calls->start);
    for (size_t i = 0; i < calls->count && sizes->doubt < LIVE_UNKNOWN; i++) {
        const struct ttd_call *call = &calls->calls[i];
        if (call->action == TTD_ACTION_FREE)
            sizes_release(sizes, call->address);
        else
            sizes_acquire(sizes, call->address, call->size);
    }
}

const char *live_sizes_reason(enum live_doubt doubt)
{
    static const char *const reasons[] = {
        [LIVE_EXACT] = "",
        [LIVE_BEFORE] = "blocks from before the recording are not known",
        [LIVE_ABOVE] = "small blocks are not recorded",
        [LIVE_NO_ROOM] = "there are too many blocks to count all",
        [LIVE_UNKNOWN] = "calls were lost, or were not recorded",
        [LIVE_SAMPLE] = "a sample of the blocks is recorded",
    };
    return reasons[doubt];
}

void live_sizes_doubt(struct live_sizes *sizes, enum live_doubt doubt)
{
    if (doubt <= sizes->doubt)
        return;
    sizes->doubt = doubt;
    if (doubt >= LIVE_UNKNOWN)
        sizes_clear(sizes);
}
