/* SPDX-License-Identifier: MIT */
/** Seeded random numbers, and the decisions of a fuzzer's input, for whoever is given the source.
 */
#ifndef SUPPORT_ENTROPY_H
#define SUPPORT_ENTROPY_H

#include <stddef.h>
#include <stdint.h>

/** A source of decisions: `data` until it is used up, or a generator if there is none. */
struct entropy {
    const uint8_t *data;
    size_t size;
    uint64_t state;
};

/** A generator that gives the same numbers after the same seed. */
static inline struct entropy entropy_of_seed(uint64_t seed)
{
    return (struct entropy){.state = seed};
}

/** Any number. */
uint64_t entropy_next(struct entropy *entropy);

/** At least 0 and less than `limit`, which is not 0. */
uint64_t entropy_below(struct entropy *entropy, uint64_t limit);

/** entropy_below(), for small numbers. */
static inline unsigned entropy_pick(struct entropy *entropy, unsigned limit)
{
    return (unsigned)entropy_below(entropy, limit);
}

/** Mostly small, at times anything, at times an extreme. */
uint64_t entropy_value(struct entropy *entropy);

#endif
