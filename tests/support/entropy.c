/* SPDX-License-Identifier: MIT */
#include "support/entropy.h"

uint64_t entropy_next(struct entropy *entropy)
{
    if (entropy->data) {
        uint64_t value = 0;
        for (int i = 0; i < 8 && entropy->size > 0; i++, entropy->size--)
            value = value << 8 | *entropy->data++;
        return value;
    }
    uint64_t z = entropy->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint64_t entropy_below(struct entropy *entropy, uint64_t limit)
{
    if (!entropy->data || limit > 256)
        return entropy_next(entropy) % limit;
    if (entropy->size == 0)
        return 0;
    entropy->size--;
    return *entropy->data++ % limit;
}

uint64_t entropy_value(struct entropy *entropy)
{
    static const uint64_t extremes[] = {
        0,         1,          UINT64_MAX,       UINT64_MAX - 1, UINT64_C(1) << 63,
        INT64_MAX, UINT32_MAX, UINT64_C(1) << 32};
    switch (entropy_below(entropy, 8)) {
    case 0:
        return extremes[entropy_below(entropy, sizeof extremes / sizeof *extremes)];
    case 1:
        return entropy_next(entropy);
    case 2:
        return entropy_next(entropy) >> entropy_below(entropy, 64);
    default:
        return entropy_below(entropy, 256);
    }
}
