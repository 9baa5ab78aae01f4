/* SPDX-License-Identifier: MIT */
/**
 * The encoder's view of a list of addresses (spec, "Addresses"): which place an address has in it.
 *
 * Every address that is appended gets the next slot and stays there until it is taken, so that it
 * is found at once by its hash; its place is the number of slots in use from there on. Slots at the
 * end that are free again are used again. Only the newest slots are kept, and of addresses of one
 * hash only the newest: what is not found is coded in another way.
 */
#ifndef TTD_CODEC_PLACES_H
#define TTD_CODEC_PLACES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "layout.h"

#define TTD_PLACES_HASH_BITS 11
#define TTD_PLACES_SLOTS     1024u
#define TTD_PLACES_WORDS     (TTD_PLACES_SLOTS / 64)

typedef struct ttd_places {
    /** Slots so far. They are counted from 1 where 0 means none. */
    uint32_t count;
    /** By hash: the newest slot of an address of that hash. */
    uint32_t newest[1u << TTD_PLACES_HASH_BITS];
    /** By slot, modulo their number: the address, the next older slot of the same hash, and a bit
     * that tells whether it is in use. */
    uint64_t addresses[TTD_PLACES_SLOTS];
    uint32_t older[TTD_PLACES_SLOTS];
    uint64_t used[TTD_PLACES_WORDS];
} ttd_places;

static inline void ttd_places_clear(ttd_places *places)
{
    places->count = 0;
    memset(places->newest, 0, sizeof places->newest);
    memset(places->used, 0, sizeof places->used);
}

static inline uint32_t *ttd_places_hashed(ttd_places *places, uint64_t address)
{
    uint32_t low = (uint32_t)(address >> TTD_ADDRESS_ROTATION);
    return &places->newest[low * UINT32_C(0x9E3779B1) >> (32 - TTD_PLACES_HASH_BITS)];
}

static inline uint64_t *ttd_places_word(ttd_places *places, uint32_t slot)
{
    return &places->used[slot / 64 % TTD_PLACES_WORDS];
}

static inline unsigned ttd_places_bits(uint64_t word)
{
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    return (unsigned)(word * UINT64_C(0x0101010101010101) >> 56);
}

/** Appends an address. */
static inline void ttd_places_push(ttd_places *places, uint64_t address)
{
    uint32_t slot = places->count++;
    uint64_t *word = ttd_places_word(places, slot);
    if (slot % 64 == 0)
        *word = 0; /* what is left of older slots */
    *word |= UINT64_C(1) << slot % 64;
    uint32_t *newest = ttd_places_hashed(places, address);
    places->addresses[slot % TTD_PLACES_SLOTS] = address;
    places->older[slot % TTD_PLACES_SLOTS] = *newest;
    *newest = slot + 1;
}

static inline bool ttd_places_is_used(ttd_places *places, uint32_t slot)
{
    return *ttd_places_word(places, slot) >> slot % 64 & 1;
}

/**
 * Finds an address.
 *
 * @param slot  set to its slot when it is found
 * @return its place, 1 for the newest; 0 if it is not found or its place would exceed `most`
 */
static inline unsigned ttd_places_find(ttd_places *places, uint64_t address, unsigned most,
                                       uint32_t *slot)
{
    uint32_t found = *ttd_places_hashed(places, address);
    for (;;) {
        if (found == 0 || places->count - found >= TTD_PLACES_SLOTS)
            return 0;
        uint32_t i = (found - 1) % TTD_PLACES_SLOTS;
        if (places->addresses[i] == address && ttd_places_is_used(places, found - 1))
            break;
        if (places->older[i] >= found)
            return 0; /* of a slot that has been used again */
        found = places->older[i];
    }
    *slot = --found;
    unsigned place = ttd_places_bits(*ttd_places_word(places, found) >> found % 64);
    for (uint32_t next = (found / 64 + 1) * 64; next < places->count && place <= most; next += 64)
        place += ttd_places_bits(*ttd_places_word(places, next));
    return place <= most ? place : 0;
}

/** Takes the address in a slot that ttd_places_find() gave. */
static inline void ttd_places_take(ttd_places *places, uint32_t slot)
{
    *ttd_places_word(places, slot) &= ~(UINT64_C(1) << slot % 64);
    while (places->count > 0 && !ttd_places_is_used(places, places->count - 1)) {
        uint32_t i = (places->count - 1) % TTD_PLACES_SLOTS;
        uint32_t *newest = ttd_places_hashed(places, places->addresses[i]);
        if (*newest == places->count)
            *newest = places->older[i];
        places->count--;
    }
}

#endif
