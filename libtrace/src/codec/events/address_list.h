/* SPDX-License-Identifier: MIT */
/**
 * Lists of addresses in order of use, the newest last (spec, "Addresses"). An address is removed by
 * its place, counted from the newest. The encoder's list holds addresses; the decoder's holds
 * ordinals, which stand for the addresses that a chunk spells out.
 */
#ifndef TTD_CODEC_EVENTS_ADDRESS_LIST_H
#define TTD_CODEC_EVENTS_ADDRESS_LIST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ttd_address_list {
    uint64_t *items;
    size_t count;
    size_t capacity;
};

/** Number of addresses that are moved at once. With single moves the end of the loop would be hard
 * to predict. */
#define TTD_ADDRESS_BLOCK 4

/** Removes and returns the address at `place`, counted from 1 for the newest. */
static inline uint64_t ttd_address_take(struct ttd_address_list *list, size_t place)
{
    uint64_t *taken = list->items + list->count - place;
    uint64_t *end = list->items + list->count;
    uint64_t address = *taken;
    list->count--;
    /* May move what lies behind the end, which is of no account: there is room for a block. */
    do {
        uint64_t a = taken[1], b = taken[2], c = taken[3], d = taken[4];
        taken[0] = a;
        taken[1] = b;
        taken[2] = c;
        taken[3] = d;
        taken += TTD_ADDRESS_BLOCK;
    } while (taken < end);
    return address;
}

static inline void ttd_address_push(struct ttd_address_list *list, uint64_t address)
{
    list->items[list->count++] = address;
}

/** Number of ordinals that are moved at once, for the same reason. */
#define TTD_ORDINAL_BLOCK 16

/** A list of ordinals in order of use, the newest last. */
struct ttd_ordinal_list {
    uint32_t *items;
    size_t count;
    size_t capacity;
};

/** Four ordinals, which fit a vector register. The compiler would copy a larger array by way of
 * memory. */
struct ttd_ordinal_four {
    uint32_t items[4];
};

/** Removes and returns the ordinal at `place`, counted from 1 for the newest. */
static inline uint32_t ttd_ordinal_take(struct ttd_ordinal_list *list, size_t place)
{
    uint32_t *taken = list->items + list->count - place;
    const uint32_t *end = list->items + list->count;
    uint32_t ordinal = *taken;
    list->count--;
    /* May move what lies behind the end, which is of no account: there is room for a block. */
    do {
        struct ttd_ordinal_four a, b, c, d;
        memcpy(&a, taken + 1, sizeof a);
        memcpy(&b, taken + 5, sizeof b);
        memcpy(&c, taken + 9, sizeof c);
        memcpy(&d, taken + 13, sizeof d);
        memcpy(taken, &a, sizeof a);
        memcpy(taken + 4, &b, sizeof b);
        memcpy(taken + 8, &c, sizeof c);
        memcpy(taken + 12, &d, sizeof d);
        taken += TTD_ORDINAL_BLOCK;
    } while (taken < end);
    return ordinal;
}

static inline void ttd_ordinal_push(struct ttd_ordinal_list *list, uint32_t ordinal)
{
    list->items[list->count++] = ordinal;
}

#endif
